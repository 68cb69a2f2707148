package group

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// A note is sent with the next heartbeat, and a waiting caller gets the result.
func TestANoteIsPartOfTheNextBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term, _ := validTerm(t)
		d := lease.Deaths{At: shard.Oldest, Count: 2, Trial: 1}
		heard := make(chan error, 1)
		go func() { heard <- term.Note(t.Context(), d) }()
		synctest.Wait()
		// These calls do not replace a note that a caller waits for.
		term.NoteSoon(lease.Deaths{At: shard.Oldest})
		term.NoteParked(lease.Deaths{At: shard.Oldest})
		p, said := term.progress()
		if !said || p.Deaths != d.String() || term.Deaths() != d {
			t.Fatalf("it says %+v", p)
		}
		select {
		case err := <-heard:
			t.Fatalf("it was heard before the answer: %v", err)
		default:
		}
		term.settle(lease.Progress{}, true) // the answer to an earlier heartbeat
		synctest.Wait()
		if len(heard) > 0 {
			t.Fatal("another heartbeat's answer counts")
		}
		term.settle(p, true)
		if err := <-heard; err != nil {
			t.Error(err)
		}
		if p, said := term.progress(); said {
			t.Errorf("it says again %+v", p)
		}

		term.NoteParked(d) // no effect, because the reader is running
		if p, said := term.progress(); said {
			t.Errorf("it says %+v", p)
		}
		go func() { heard <- term.Note(t.Context(), d) }()
		synctest.Wait()
		p, _ = term.progress()
		term.settle(p, false)
		if err := <-heard; !errors.Is(err, ErrLeaseLost) {
			t.Errorf("%v", err)
		}
		if err := term.Note(t.Context(), d); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("%v", err)
		}
	})
}
