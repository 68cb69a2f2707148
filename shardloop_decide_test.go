package weir

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestWhatFollowsACallOfTheHandler(t *testing.T) {
	failed, stopped := errors.New("failed"), Stop(nil)
	for _, c := range []struct {
		name               string
		err                error
		done, pulled, over bool
		want               next
	}{
		{"it returns nil", nil, false, false, false, advance},
		{"… although it noted less", nil, false, false, true, advance},
		{"it fails", failed, false, false, false, again},
		{"it fails when all is done", failed, true, false, false, advance},
		{"it fails when all is done, as the term ends", failed, true, false, true, advance},
		{"it fails because the term is over", context.Canceled, false, false, true, abort},
		{"it stops Run", stopped, false, false, false, stop},
		{"it stops Run when all is done", fmt.Errorf("so: %w", stopped), true, false, false, stop},
		{"it stops Run when the term is over", stopped, false, false, true, stop},
		{"the lease is wanted between two records", errForHeir, false, false, false, leave},
		{"a batch was pulled", errPulled, false, true, false, passOn},
		{"… and all of it was done before the next is asked for", errPulled, true, true, false, passOn},
		{"the function that pulls has returned", &pullEnded{failed}, false, true, false, leave},
		{"… with Stop", &pullEnded{stopped}, false, true, false, stop},
		{"… when the term was over", &pullEnded{failed}, false, true, true, abort},
	} {
		if got := decide(c.err, c.done, c.pulled, c.over); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestAHandlersMiddlewareKnowsThatTheLeaseIsWanted(t *testing.T) {
	if !errors.Is(errForHeir, ErrHandedOff) {
		t.Errorf("%v does not wrap ErrHandedOff", errForHeir)
	}
}
