package shardrun

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/pull"
)

func TestHowACallOfTheHandlerEnds(t *testing.T) {
	failed, stopped := errors.New("failed"), &StopError{}
	for _, c := range []struct {
		err  error
		want failure.Outcome
	}{
		{nil, failure.Succeeded},
		{failed, failure.Failed},
		{context.Canceled, failure.Failed},
		{stopped, failure.StopsRun},
		{fmt.Errorf("so: %w", stopped), failure.StopsRun},
		{ErrForHeir, failure.WantedBack},
		{pull.ErrNext, failure.AsksForNext},
		{&pull.EndedError{Err: failed}, failure.Failed},
		{&pull.EndedError{Err: stopped}, failure.StopsRun},
	} {
		if got := outcome(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

func TestAHandlersMiddlewareKnowsThatTheLeaseIsWanted(t *testing.T) {
	if !errors.Is(ErrForHeir, ErrHandedOff) {
		t.Errorf("%v does not wrap ErrHandedOff", ErrForHeir)
	}
}
