package pull

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

var errExit = errors.New("the function ended its goroutine")

// isLast reports whether a batch is the last one. In these tests a batch is a number, and 3 is the
// last.
func isLast(n int) bool { return n == 3 }

// drain returns a function that asks for batches until the last one.
func drain(got *[]int, why *error) func(p *Puller[int]) error {
	return func(p *Puller[int]) error {
		for {
			n, some, err := p.Next(isLast)
			if !some {
				*why = err
				return nil
			}
			*got = append(*got, n)
		}
	}
}

// A function gets the batches in order. It is done when it returns nil after the last one.
func TestAFunctionGetsAllBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []int
		var why error
		woken := make(chan struct{})
		p := Start(drain(&got, &why), errExit, func() { close(woken) })
		for n := 1; n <= 2; n++ {
			if err := p.Hand(t.Context(), n, false); !errors.Is(err, ErrNext) {
				t.Errorf("batch %d: %v", n, err)
			}
		}
		if err := p.Returned(); err != nil {
			t.Errorf("it has not returned: %v", err)
		}
		if err := p.Hand(t.Context(), 3, true); err != nil {
			t.Errorf("the last batch: %v", err)
		}
		p.End(nil)
		<-woken
		if len(got) != 3 || why != nil {
			t.Errorf("got %v, %v", got, why)
		}
	})
}

// A function may return before the shard ends in several ways. Package pull detects each of them.
func TestAFunctionReturnsTooEarly(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		f    func(p *Puller[int]) error
		want error
	}{
		"at once":                {func(*Puller[int]) error { return nil }, nil},
		"at once, with an error": {func(*Puller[int]) error { return failed }, failed},
		"with a batch":           {func(p *Puller[int]) error { _, _, _ = p.Next(isLast); return failed }, failed},
		"with its goroutine":     {func(*Puller[int]) error { runtime.Goexit(); return nil }, errExit},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := Start(c.f, errExit, func() {})
			err := p.Hand(t.Context(), 1, false)
			if ended := (*EndedError)(nil); !errors.As(err, &ended) || !errors.Is(ended.Err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
			if p.Returned() == nil {
				t.Errorf("%s: it is not seen that it returned", name)
			}
			p.End(nil)
		})
	}
}

// When the term ends, the function keeps its batch until it asks for the next one. Then it gets the
// reason.
func TestABatchIsTheFunctionsUntilItComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("lost")
		holds := make(chan struct{})
		var why error
		p := Start(func(p *Puller[int]) error {
			_, _, _ = p.Next(isLast)
			<-holds
			_, _, why = p.Next(isLast)
			return why
		}, errExit, func() {})
		ctx, cancel := context.WithCancelCause(t.Context())
		handed := make(chan error, 1)
		go func() { handed <- p.Hand(ctx, 1, false) }()
		synctest.Wait()
		cancel(lost)
		synctest.Wait()
		select {
		case err := <-handed:
			t.Fatalf("the batch was taken back: %v", err)
		default:
		}
		close(holds)
		if err := <-handed; !errors.Is(err, lost) {
			t.Errorf("handed over with %v", err)
		}
		p.End(lost)
		if !errors.Is(why, lost) {
			t.Errorf("the function got %v", why)
		}
	})
}

// Dropped records are done when the function has done all records before them.
func TestDroppedRecordsAreDoneWithWhatIsBeforeThem(t *testing.T) {
	at := func(n string) shard.Position { return source.After(n, shard.Whole) }
	p := new(Progress)
	if got := p.Past(at("4")); got != at("4") {
		t.Errorf("without dropped records: %v", got)
	}
	p.HandedOver(&source.Record{SequenceNumber: "5", Done: shard.Whole})
	p.Dropped(at("9"))
	for done, want := range map[string]string{"4": "4", "5": "9", "7": "9", "9": "9", "12": "12"} {
		if got := p.Past(at(done)); got != at(want) {
			t.Errorf("past %s is %v, want %s", done, got, want)
		}
	}
}
