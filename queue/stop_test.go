package queue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
)

// A handler ends Run. The other handlers finish, and their records are acknowledged. The record of
// the call stays in the queue.
func TestAHandlerStopsTheConsumer(t *testing.T) {
	for _, cause := range []error{errors.New("the database is read-only"), nil} {
		synctest.Test(t, func(t *testing.T) {
			q := newFakeQueue()
			q.put(4, nil, nil)
			c := q.consumer(t, Options{})
			began := time.Now()
			err := c.Run(t.Context(), RecordFunc(func(_ context.Context, r Record) error {
				if r.ID == "r2" {
					return weir.Stop(cause)
				}
				time.Sleep(5 * time.Second)
				return nil
			}))
			if !errors.Is(err, cause) || len(q.left()) != 1 || q.left()[0] != "r2" || c.Counts().Acknowledged != 3 {
				t.Errorf("%v, left %v, %+v", err, q.left(), c.Counts())
			}
			if took := time.Since(began); took > 6*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}
