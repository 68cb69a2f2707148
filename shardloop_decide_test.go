package weir

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/weir-go/weir/internal/failure"
)

func TestHowACallOfTheHandlerEnds(t *testing.T) {
	failed, stopped := errors.New("failed"), Stop(nil)
	for _, c := range []struct {
		err  error
		want failure.Outcome
	}{
		{nil, failure.Succeeded},
		{failed, failure.Failed},
		{context.Canceled, failure.Failed},
		{stopped, failure.StopsRun},
		{fmt.Errorf("so: %w", stopped), failure.StopsRun},
		{errForHeir, failure.WantedBack},
		{errPulled, failure.AsksForNext},
		{&pullEnded{failed}, failure.Failed},
		{&pullEnded{stopped}, failure.StopsRun},
	} {
		if got := outcome(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

func TestAHandlersMiddlewareKnowsThatTheLeaseIsWanted(t *testing.T) {
	if !errors.Is(errForHeir, ErrHandedOff) {
		t.Errorf("%v does not wrap ErrHandedOff", errForHeir)
	}
}
