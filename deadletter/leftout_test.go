package deadletter_test

import (
	"context"
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

// A destination that counts the dead letters which another destination has stored.
func ExampleLeftOut() {
	stored := 0
	counting := func(to deadletter.Destination) deadletter.Destination {
		return deadletter.Func(func(ctx context.Context, letters []deadletter.Letter) error {
			err := to.Put(ctx, letters)
			if ids, ok := deadletter.LeftOut(err); ok {
				stored += len(letters) - len(ids)
			}
			return err
		})
	}
	// This destination leaves out the first dead letter, because its record is already handled.
	to := deadletter.Func(func(_ context.Context, letters []deadletter.Letter) error {
		return &deadletter.LeftOutError{IDs: []string{letters[0].ID}}
	})
	err := counting(to).Put(context.Background(), []deadletter.Letter{{ID: "a"}, {ID: "b"}, {ID: "c"}})
	fmt.Println(stored, err)
	// Output: 2 weir: 1 dead letters were left out, because their records are already handled: a
}
