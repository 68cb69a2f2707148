package s3_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/sink/s3sink/s3letters"
)

// Letters on a real server: several people handle all of them at once, each with what they listed
// before, while one letter comes again.
func TestLettersAreHandedOutOnce(t *testing.T) {
	addr := servers.S3(t).Addr
	open := func() *s3letters.Box {
		b, err := s3letters.New(servers.S3Client(addr), servers.Bucket, "dead")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	list := func(b *s3letters.Box) (all []deadletter.Item) {
		for i, err := range b.Items(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			all = append(all, i)
		}
		return all
	}
	var letters []deadletter.Letter
	for i := range 50 {
		letters = append(letters, deadletter.Letter{Version: 1, ID: fmt.Sprintf("s/shardId-000000000000/%d", 1000+i), Data: []byte("x")})
	}
	for range 2 { // a repeat overwrites
		if err := open().Put(t.Context(), letters); err != nil {
			t.Fatal(err)
		}
	}
	var handed, refused atomic.Int32
	var listed, all sync.WaitGroup
	listed.Add(4)
	for range 4 {
		all.Go(func() {
			b := open()
			letters := list(b)
			listed.Done()
			listed.Wait()
			for _, l := range letters {
				_, err := deadletter.Retry(t.Context(), b, []deadletter.Item{l}, func(context.Context, deadletter.Item) error {
					handed.Add(1)
					return nil
				})
				switch {
				case errors.Is(err, s3letters.ErrChanged):
					refused.Add(1)
				case err != nil:
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if handed.Load() != 50 || refused.Load() != 150 {
		t.Errorf("50 letters were handed out %d times, %d marks were refused", handed.Load(), refused.Load())
	}
	for _, l := range list(open()) {
		if l.State != deadletter.Done || l.Since.IsZero() {
			t.Errorf("%+v", l)
		}
	}
}
