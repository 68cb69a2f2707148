package fanout

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/kinesistest"
)

// If workers register the same consumer at the same time, all of them use it in the end.
func TestConsumersRegisterInARace(t *testing.T) {
	for _, delay := range []time.Duration{0, 7 * time.Second} { // duration of CREATING
		fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
			p.srv.SetStateDelay(delay)
			var together sync.WaitGroup // all search before any registers
			together.Add(3)
			p.srv.Control("RegisterStreamConsumer", func(call *kinesistest.Call) kinesistest.Fault {
				if call.N <= 3 {
					together.Done()
					together.Wait()
				}
				return kinesistest.Fault{}
			})
			began := time.Now()
			var arns [3]string
			var errs [3]error
			var workers sync.WaitGroup
			for i := range arns {
				workers.Go(func() {
					c := Consumers{Client: p.client, Name: "c"}
					arns[i], errs[i] = c.ARN(t.Context(), streams.Stream{Name: "s"})
				})
			}
			workers.Wait()
			if err := errors.Join(errs[:]...); err != nil {
				t.Fatal(err)
			}
			if arns[0] == "" || arns[1] != arns[0] || arns[2] != arns[0] {
				t.Errorf("they found %q", arns)
			}
			if took := time.Since(began); took > delay+3*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// However many shards need a consumer, one call registers it. If that call fails, there is no other
// call for a while.
func TestConsumersAskOnceForManyShards(t *testing.T) {
	fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
		c := Consumers{Client: p.client, Name: "c"}
		ask := func() (failed int) {
			var mu sync.Mutex
			var shards sync.WaitGroup
			for range 1000 {
				shards.Go(func() {
					if _, err := c.ARN(t.Context(), streams.Stream{Name: "s"}); err != nil {
						mu.Lock()
						defer mu.Unlock()
						failed++
					}
				})
			}
			shards.Wait()
			return failed
		}
		p.srv.Control("RegisterStreamConsumer", func(*kinesistest.Call) kinesistest.Fault { return refusal("LimitExceededException") })
		if failed := ask(); failed != 1000 {
			t.Errorf("%d of 1000 failed", failed)
		}
		p.srv.Control("RegisterStreamConsumer", nil)
		if failed := ask(); failed != 1000 || p.srv.Requests("RegisterStreamConsumer") != 1 {
			t.Errorf("%d of 1000 failed, and it was tried %d times", failed, p.srv.Requests("RegisterStreamConsumer"))
		}
		time.Sleep(registerAgain)
		if failed := ask(); failed > 0 || p.srv.Requests("RegisterStreamConsumer") != 2 {
			t.Errorf("%d of 1000 failed, and it was tried %d times", failed, p.srv.Requests("RegisterStreamConsumer"))
		}
		if n := p.srv.Requests("DescribeStreamConsumer"); n > 4 {
			t.Errorf("the consumer was described %d times", n)
		}
	})
}

// If a stream does not exist, the next search for its consumer follows soon. The stream may be
// created at any time, and it is not read before that search.
func TestConsumersAskSoonAgainForAStreamThatIsNotThere(t *testing.T) {
	fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
		c := Consumers{Client: p.client, Name: "c"}
		p.srv.Control("DescribeStreamSummary", func(*kinesistest.Call) kinesistest.Fault { return refusal("ResourceNotFoundException") })
		for range 100 {
			if _, err := c.ARN(t.Context(), streams.Stream{Name: "s"}); !errors.Is(err, streams.ErrNoStream) {
				t.Fatal(err)
			}
		}
		p.srv.Control("DescribeStreamSummary", nil)
		if n := p.srv.Requests("DescribeStreamSummary"); n != 1 {
			t.Errorf("the stream was asked for %d times", n)
		}
		time.Sleep(absentAgain)
		if arn, err := c.ARN(t.Context(), streams.Stream{Name: "s"}); err != nil {
			t.Errorf("the stream is there again: %q, %v", arn, err)
		}
	})
}

// A consumer that never becomes ready delays reading only once.
func TestConsumersWaitOnceForOneThatIsNeverReady(t *testing.T) {
	fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
		p.srv.SetStateDelay(time.Hour)
		p.send()
		took := p.all(registerTimeout + 2*time.Second)
		t.Logf("polled after %v", took)
		for range 60 {
			p.follow(9 * time.Second)
			p.send()
			if took := p.all(5 * time.Second); took > 2*time.Second {
				t.Errorf("a record came after %v", took)
			}
		}
		p.follow(55 * time.Minute)
		if len(p.modes) != 2 || p.modes[0] == nil || p.modes[1] != nil || p.ready != 1 {
			t.Errorf("changes %v, %d consumers", p.modes, p.ready)
		}
	})
}

// A reader that has ended still records that its consumer was refused.
func TestARefusalCountsThoughItsReaderHasEnded(t *testing.T) {
	t.Parallel()
	var c Consumers
	s := streams.Stream{Name: "s"}
	ended, end := context.WithCancel(t.Context())
	end()
	con := c.of(s)
	for range 100 { // a random choice would sometimes be right
		con.arn = "refused"
		if c.Forget(ended, s, "refused"); con.arn != "" {
			t.Fatal("it is not forgotten")
		}
	}
	con.turn <- struct{}{} // another search is running
	con.arn = "refused"
	if c.Forget(ended, s, "refused"); con.arn == "" {
		t.Error("it is forgotten without the turn")
	}
}
