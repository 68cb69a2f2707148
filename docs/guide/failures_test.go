package guide

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

// lenient gives up on an order after three failures, and on an invalid order at once.
var lenient = weir.Options{
	Streams: []string{"orders"}, App: "billing",
	OnFailure: weir.FailurePolicy{Destination: deadletter.File("orders.dead.ndjson"), MaxAttempts: 3},
}

// chargeOrReject calls charge for each order. It rejects an order that can never be charged.
func chargeOrReject(charge weir.RecordFunc) weir.RecordFunc {
	return func(ctx context.Context, r weir.Record) error {
		err := charge(ctx, r)
		if errors.Is(err, errNoOrder) {
			return weir.Reject(err)
		}
		return err
	}
}

// chargeAgain calls charge for the orders in dead letters that nobody has retried or dropped.
func chargeAgain(
	ctx context.Context, box deadletter.Box, charge weir.RecordFunc,
) (deadletter.Outcome, error) {
	var letters []deadletter.Item
	for letter, err := range box.Items(ctx) {
		if err != nil {
			return deadletter.Outcome{}, err
		}
		if letter.State == deadletter.Kept {
			letters = append(letters, letter)
		}
	}
	return deadletter.Retry(ctx, box, letters, func(ctx context.Context, l deadletter.Item) error {
		return charge(ctx, weir.Record{Data: l.Data, PartitionKey: l.PartitionKey})
	})
}

// tellLikeLambda sends the messages that Lambda sends about dropped records.
func tellLikeLambda(send func(ctx context.Context, message []byte) error) (deadletter.Destination, error) {
	form := deadletter.Lambda{
		FunctionARN: "arn:aws:lambda:eu-west-1:111122223333:function:billing",
		StreamARN:   "arn:aws:kinesis:eu-west-1:111122223333:stream/orders",
	}
	return deadletter.Func(func(ctx context.Context, letters []deadletter.Letter) error {
		message, err := form.Message(letters)
		if err != nil {
			return err
		}
		return send(ctx, message)
	}), form.Check()
}

func TestGivingUpIsToldLikeLambda(t *testing.T) {
	var sent []string
	to, err := tellLikeLambda(func(_ context.Context, message []byte) error {
		sent = append(sent, string(message))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Put(t.Context(), []deadletter.Letter{{Stream: "orders", Shard: "shardId-000000000000", SequenceNumber: "7", Reason: deadletter.Attempts}}); err != nil {
		t.Fatal(err)
	}
	if len(sent) != 1 || !strings.Contains(sent[0], `"condition":"RetryAttemptsExhausted"`) || !strings.Contains(sent[0], `:stream/orders"`) {
		t.Errorf("%q", sent)
	}
}

func TestWhatFailsIsGivenUpAndChargedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := deadletter.File(filepath.Join(t.TempDir(), "orders.dead.ndjson"))
		options := lenient
		options.OnFailure.Destination, options.OnFailure.OutageGrace = box, -1
		srv := shop(t, 1, "o-1", "???", "o-2", "o-3")
		unknown := errors.New("the bank does not know the card")
		bank := &bank{fails: func(_ context.Context, id string) error {
			if id == "o-2" {
				return unknown
			}
			return nil
		}}
		worker := weirtest.Start(t, srv.Client(), memstore.New(), options, chargeOrReject(bank.charge))
		worker.Until(weirtest.AtTip(srv, "orders", worker))
		worker.Stop()
		if got := bank.charged(); !slices.Equal(got, []string{"o-1", "o-3"}) {
			t.Errorf("charged %q", got)
		}
		var reasons []string
		for letter, err := range box.Items(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			reasons = append(reasons, string(letter.Reason)+": "+letter.Error)
		}
		if want := []string{"rejected: that is no order", "attempts: the bank does not know the card"}; !slices.Equal(reasons, want) {
			t.Errorf("given up: %q", reasons)
		}
		bank.fails = nil
		if o, err := chargeAgain(t.Context(), box, bank.charge); o != (deadletter.Outcome{Done: 1, Failed: 1}) || !errors.Is(err, errNoOrder) {
			t.Errorf("%+v, %v", o, err)
		}
		if got := bank.charged(); !slices.Equal(got, []string{"o-1", "o-3", "o-2"}) {
			t.Errorf("charged %q", got)
		}
	})
}
