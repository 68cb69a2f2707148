package weirtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/queue"
	"github.com/weir-go/weir/weirtest"
)

// book handles an order of a queue. It rejects an unreadable one.
func (t *till) book(_ context.Context, r queue.Record) error {
	var o order
	if err := json.Unmarshal(r.Data, &o); err != nil {
		return weir.Reject(fmt.Errorf("%s is no order: %w", r.Key(), err))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.charged = append(t.charged, o)
	return nil
}

func TestOrdersOfAQueueAreCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		srv.CreateOnDemandStream("orders")
		srv.CreateQueue(kinesistest.Queue{Stream: "orders", Name: "billing", MaxReceiveCount: 10})
		srv.Put("orders", "customer-7", []byte(`{"order": "o-1", "customer": "customer-7"}`))
		srv.Put("orders", "customer-7", []byte("???"))
		srv.Put("orders", "customer-8", []byte(`{"order": "o-2", "customer": "customer-8"}`))

		var till till
		var letters []deadletter.Letter
		options := queue.Options{Queue: "billing"}
		options.OnFailure.Destination = deadletter.Func(func(_ context.Context, l []deadletter.Letter) error {
			letters = append(letters, l...)
			return nil
		})
		consumer, err := queue.New(srv.AWSConfig(), options)
		if err != nil {
			t.Fatal(err)
		}
		running := weirtest.Go(t, func(ctx context.Context) error {
			return consumer.Run(ctx, queue.RecordFunc(till.book))
		})
		running.Until(weirtest.When("three acknowledged records", func() bool {
			return srv.QueueState("billing").Acknowledged == 3
		}))
		running.Stop()

		got := till.orders("")
		slices.Sort(got) // a queue has no order
		if !slices.Equal(got, []string{"o-1", "o-2"}) {
			t.Errorf("charged %q", got)
		}
		if len(letters) != 1 || string(letters[0].Data) != "???" {
			t.Errorf("set aside %v", letters)
		}
	})
}

func TestAnOrderComesTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // virtual time: the end of a hold takes no real time
		srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true, Queues: kinesistest.QueueConfig{ForgetAcknowledgements: 10}})
		srv.CreateOnDemandStream("orders")
		srv.CreateQueue(kinesistest.Queue{Stream: "orders", Name: "billing", MaxReceiveCount: 10})
		var want []string
		for i := range 40 {
			id := fmt.Sprintf("o-%02d", i)
			srv.Put("orders", id, fmt.Appendf(nil, `{"order": %q}`, id))
			want = append(want, id)
		}

		var till till
		consumer, err := queue.New(srv.AWSConfig(), queue.Options{Queue: "billing"})
		if err != nil {
			t.Fatal(err)
		}
		running := weirtest.Go(t, func(ctx context.Context) error {
			return consumer.Run(ctx, queue.RecordFunc(till.book))
		})
		running.Until(weirtest.When("an empty queue", func() bool {
			now := srv.QueueState("billing")
			return now.Undelivered+now.Visible+now.InFlight == 0
		}))
		running.Stop()

		got := till.orders("")
		slices.Sort(got)
		if once := slices.Compact(slices.Clone(got)); !slices.Equal(once, want) {
			t.Errorf("charged %q", once)
		}
		t.Logf("%d orders were charged twice: the handler should ignore a queue.Record.Key that it has handled", len(got)-len(want))
	})
}
