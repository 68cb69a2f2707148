package group

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
)

// A term's context ends with the first cause and keeps that cause. Its channel is not allocated
// before a goroutine waits for it.
func TestTheContextOfATerm(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	for _, c := range []struct {
		name string
		ends func(*Term, *validity)
		want error
	}{
		{"nothing", func(*Term, *validity) {}, nil},
		{"the end of the validity", func(_ *Term, v *validity) { v.end(ErrStopping) }, ErrStopping},
		{"a cause of its own", func(t *Term, _ *validity) { t.cancel(own) }, own},
		{"its own cause, then another", func(t *Term, _ *validity) { t.cancel(own); t.cancel(ErrLeaseLost) }, own},
		{"its own cause before the end of the validity", func(t *Term, v *validity) { t.cancel(own); v.end(ErrStopping) }, own},
		{"its own cause after the end of the validity", func(t *Term, v *validity) { v.end(ErrStopping); t.cancel(own) }, ErrStopping},
		{"no cause", func(t *Term, v *validity) { t.cancel(nil); v.end(ErrStopping) }, context.Canceled},
	} {
		for _, waited := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				v := newValidity(time.Hour)
				v.extend(time.Now())
				defer v.end(nil)
				term := newTerm(lease.Lease{}, v, func() {})
				ctx := term.Context()
				var derived context.Context
				if waited {
					var cancel context.CancelFunc
					derived, cancel = context.WithTimeout(ctx, time.Hour)
					defer cancel()
				}
				c.ends(term, v)
				if err := ctx.Err(); (err != nil) != (c.want != nil) {
					t.Errorf("%s: %v", c.name, err)
				}
				if err := term.Check(time.Now()); err != c.want { //nolint:errorlint // the very one
					t.Errorf("%s: Check says %v, want %v", c.name, err, c.want)
				}
				if !waited && term.seldom().waits != nil {
					t.Errorf("%s: there is room for who waits, and nobody does", c.name)
				}
				if err := context.Cause(ctx); err != c.want { //nolint:errorlint // the very one
					t.Errorf("%s: the cause is %v, want %v", c.name, err, c.want)
				}
				select {
				case <-ctx.Done():
					if c.want == nil {
						t.Errorf("%s: it has ended", c.name)
					}
				default:
					if c.want != nil {
						t.Errorf("%s: who waits for the end waits in vain", c.name)
					}
				}
				if waited && context.Cause(derived) != c.want { //nolint:errorlint // the very one
					t.Errorf("%s: a context made from it ends with %v", c.name, context.Cause(derived))
				}
			})
		}
	}
}

// The leases may expire just before the reader returns for that reason. A goroutine that waits for
// the term's context still gets ErrLeaseLost as the cause, even if the end of the validity has not
// reached the derived context yet.
func TestTheCauseOfTheEndOfValidityIsNotReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := newValidity(time.Hour)
		v.extend(time.Now())
		term := newTerm(lease.Lease{}, v, func() {})
		term.rarely().waits = await(context.Background()) // the end of the validity does not arrive by itself
		v.end(ErrLeaseLost)
		term.over(nil)
		if err := context.Cause(term.Context()); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("the cause is %v", err)
		}
	})
}
