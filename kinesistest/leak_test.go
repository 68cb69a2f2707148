package kinesistest_test

import (
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/kinesistest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// TestCloseLeavesNothing closes servers that have connections in every state. The bubble fails the
// test if a goroutine remains.
func TestCloseLeavesNothing(t *testing.T) {
	for name, cfg := range map[string]kinesistest.Config{
		"HTTP":  {InMemory: true, NoLimits: true},
		"HTTPS": {InMemory: true, NoLimits: true, TLS: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := ok[*kinesistest.Server](t)(kinesistest.Start(cfg))
				h2 := s.Transport()
				h2.Protocols = new(http.Protocols)
				h2.Protocols.SetHTTP2(true)
				h2.Protocols.SetUnencryptedHTTP2(true)
				clients := []*kinesis.Client{s.Client(), s.Client(noRetry), s.Client(noRetry, func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: h2} })}
				var wg sync.WaitGroup
				call := func() {
					for _, c := range clients {
						wg.Go(func() { _, _ = c.ListStreams(t.Context(), &kinesis.ListStreamsInput{}) })
					}
				}
				call()
				wg.Wait() // these calls leave idle connections
				s.Control("", func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Delay: time.Hour} })
				call()
				synctest.Wait() // these calls are in progress
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				wg.Wait()
			})
		})
	}
}

// TestManyServersAtOnce starts and closes many servers in parallel. Some are closed during calls.
func TestManyServersAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := kinesistest.Start(kinesistest.Config{InMemory: i%2 == 0, TLS: i%4 < 2, NoLimits: true})
			if err != nil {
				t.Error(err)
				return
			}
			c := s.Client(noRetry)
			var calls sync.WaitGroup
			for range 4 {
				calls.Go(func() {
					for range 20 {
						if _, err := c.ListStreams(t.Context(), &kinesis.ListStreamsInput{}); err != nil {
							return // the server was closed
						}
					}
				})
			}
			for range 3 { // a repeated or concurrent Close is harmless
				calls.Go(func() {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			calls.Wait()
		})
	}
	wg.Wait()
}
