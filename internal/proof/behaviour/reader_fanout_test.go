package behaviour

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
)

// consumersOf waits until removals are complete, and returns the names of the registered consumers.
func consumersOf(t *testing.T, srv *kinesistest.Server) (names []string) {
	t.Helper()
	time.Sleep(time.Minute)
	out, err := srv.Client().ListStreamConsumers(t.Context(), &kinesis.ListStreamConsumersInput{StreamARN: aws.String(srv.StreamARN("s"))})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range out.Consumers {
		names = append(names, *c.ConsumerName)
	}
	return names
}

// A Reader with fan-out reads the same as one that polls: every record once, parents before
// children, and up to the tip.
func TestReaderReadsByFanOut(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		s := newSink(t)
		fill(srv, s, 10, 3)
		open := srv.OpenShards("s")
		merged := srv.Merge("s", open[0], open[1])
		fill(srv, s, 10, 3)
		srv.Split("s", merged)
		fill(srv, s, 10, 3)
		r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{
			Stream: "s", UntilTip: true, FanOut: weir.FanOut{Mode: weir.FanOutTemporary, Name: "me"}, Logger: quiet,
		})
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range r.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if err := s.write(b); err != nil {
				t.Error(err)
			}
		}
		s.judge()
		if s.again != 0 {
			t.Errorf("%d records came twice", s.again)
		}
		if n := srv.Requests("GetRecords"); n > 0 {
			t.Errorf("it polled %d times", n)
		}
		if names := consumersOf(t, srv); len(names) > 0 {
			t.Errorf("registered in the end: %v", names)
		}
	})
}

// A Reader registers a consumer only on request. However reading ends, it deregisters that
// consumer, unless the consumer existed before or the options keep it.
func TestTheConsumerOfAReader(t *testing.T) {
	for name, test := range map[string]struct {
		there bool
		asked weir.FanOutMode
		fails string // text that the error must contain
		left  bool   // the consumer is still registered at the end
	}{
		"not there, and not asked for": {false, weir.FanOutExisting, "not registered", false},
		"there":                        {true, weir.FanOutExisting, "", true},
		"for as long as it is needed":  {false, weir.FanOutTemporary, "", false},
		"there already":                {true, weir.FanOutTemporary, "", true},
		"to be kept":                   {false, weir.FanOutRegister, "", true},
	} {
		for how, end := range map[string]func(cancel func()) (more bool){
			"left":  func(func()) bool { return false },
			"ended": func(cancel func()) bool { cancel(); return true }, // like Ctrl-C
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				bubble(t, 3, func(t *testing.T, srv *kinesistest.Server) {
					if test.there {
						if _, err := srv.Client().RegisterStreamConsumer(t.Context(), &kinesis.RegisterStreamConsumerInput{
							StreamARN: aws.String(srv.StreamARN("s")), ConsumerName: aws.String("me"),
						}); err != nil {
							t.Fatal(err)
						}
					}
					for i := range 10 {
						srv.Put("s", fmt.Sprint(i), []byte("x"))
					}
					r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{
						Stream: "s", FanOut: weir.FanOut{Mode: test.asked, Name: "me"}, Logger: quiet,
					})
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					n, failed := 0, error(nil)
					for _, err := range r.Records(ctx) {
						if err != nil {
							failed = err
							continue
						}
						if n++; n == 5 && !end(cancel) {
							break
						}
					}
					if test.fails != "" {
						if failed == nil || !strings.Contains(failed.Error(), test.fails) || !strings.Contains(failed.Error(), "me") || n > 0 {
							t.Errorf("%d records, %v, want an error with %q", n, failed, test.fails)
						}
					} else if n < 5 {
						t.Errorf("%d records, %v", n, failed)
					}
					synctest.Wait()
					if left := len(srv.Subscriptions("s")); left > 0 {
						t.Errorf("%d subscriptions are left", left)
					}
					if names := consumersOf(t, srv); (len(names) == 1) != test.left || len(names) > 1 {
						t.Errorf("registered in the end: %v", names)
					}
				})
			})
		}
	}
}

// The consumer is also removed if it was not ready when the Reader ended, or if its registration
// was not answered.
func TestAConsumerThatWasNotReadyIsRemoved(t *testing.T) {
	for name, fault := range map[string]kinesistest.Fault{"not ready": {}, "no answer": {LoseAnswer: true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				srv.SetStateDelay(8 * time.Second)
				srv.Control("RegisterStreamConsumer", func(*kinesistest.Call) kinesistest.Fault { return fault })
				r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{
					Stream: "s", FanOut: weir.FanOut{Mode: weir.FanOutTemporary, Name: "me"}, Logger: quiet,
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				for _, err := range r.Records(ctx) {
					if err == nil {
						t.Error("a record of an empty stream")
					}
				}
				if names := consumersOf(t, srv); len(names) > 0 {
					t.Errorf("registered in the end: %v", names)
				}
			})
		})
	}
}

func TestReaderFanOutOptions(t *testing.T) {
	client := kinesis.New(kinesis.Options{})
	for want, opts := range map[string]weir.ReaderOptions{
		"FanOut.Name is empty":               {FanOut: weir.FanOut{Mode: weir.FanOutRegister}},
		"must be 1 to 128":                   {FanOut: weir.FanOut{Mode: weir.FanOutRegister, Name: "a b"}},
		"although ReaderOptions.FanOut.Mode": {FanOut: weir.FanOut{Name: "me"}},
		"FanOut.Mode 7 must be":              {FanOut: weir.FanOut{Mode: 7}},
	} {
		opts.Stream = "s"
		if _, err := weir.NewReader(client, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", opts, err, want)
		}
	}
}
