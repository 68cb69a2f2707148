package deadletter_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/weir-go/weir/deadletter"
)

func TestLeftOut(t *testing.T) {
	failed := errors.New("failed")
	a, b := &deadletter.LeftOutError{IDs: []string{"a"}}, &deadletter.LeftOutError{IDs: []string{"b"}}
	for _, c := range []struct {
		err  error
		want []string
		ok   bool
	}{
		{nil, nil, true},
		{failed, nil, false},
		{a, []string{"a"}, true},
		{fmt.Errorf("so: %w", a), []string{"a"}, true},
		{fmt.Errorf("so: %w", failed), nil, false},
		{errors.Join(a, b), []string{"a", "b"}, true},
		{errors.Join(a, failed), nil, false},
		{fmt.Errorf("so: %w", errors.Join(failed, a)), nil, false},
	} {
		if ids, ok := deadletter.LeftOut(c.err); !slices.Equal(ids, c.want) || ok != c.ok {
			t.Errorf("LeftOut(%v) = %q, %v; want %q, %v", c.err, ids, ok, c.want, c.ok)
		}
	}
}
