package sqsletters

import (
	"context"
	"testing"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/boxtest"
	"github.com/weir-go/weir/internal/proof/oldletters"
)

func TestTwoApplicationsShareAQueue(t *testing.T) {
	for _, name := range []string{"dead", "dead.fifo"} {
		q := queue(t, &fake{}, name)
		boxtest.Applications(t, q, func(ctx context.Context) (items []deadletter.Item, err error) {
			_, err = q.Retry(ctx, everything, func(_ context.Context, i deadletter.Item) error {
				items = append(items, i)
				return nil
			})
			return items, err
		})
	}
}

func TestAMessageOfAnEarlierVersionIsRead(t *testing.T) {
	q := queue(t, &fake{messages: []*stored{{id: "1", body: oldletters.Text}}}, "dead")
	peeked, err := q.Peek(t.Context(), 10)
	if err != nil || len(peeked) != 1 || peeked[0].ID != oldletters.ID {
		t.Errorf("%+v, %v", peeked, err)
	}
	o, err := q.Retry(t.Context(), everything, func(_ context.Context, i deadletter.Item) error {
		if i.ID != oldletters.ID || i.RecordID() != oldletters.ID || i.App != oldletters.App || string(i.Data) != "record 1" {
			t.Errorf("%+v", i)
		}
		return nil
	})
	if o.Done != 1 || err != nil {
		t.Errorf("%+v, %v", o, err)
	}
}
