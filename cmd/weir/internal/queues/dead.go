package queues

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/queue"
)

const (
	perCall     = 10              // entries of a call
	deadHold    = 2 * time.Minute // a look extends it while it lasts
	deadWait    = time.Second     // the shortest wait of a receive
	releaseTime = 10 * time.Second
)

// Look is a look at dead letters of a queue. They are hidden from other processes until End.
type Look struct {
	client  *queue.Client
	arn     string
	held    []queue.Delivery
	renewed time.Time // when the holds were extended
	handled map[string]bool
}

// NewLook begins a look at the dead letters of a queue.
func NewLook(client *queue.Client, arn string) *Look {
	return &Look{client: client, arn: arn, renewed: time.Now(), handled: map[string]bool{}}
}

// Next receives further dead letters, at most ten. It returns none if no other is visible.
func (l *Look) Next(ctx context.Context, most int) ([]queue.Delivery, error) {
	if err := l.renew(ctx); err != nil {
		return nil, err
	}
	out, err := l.client.ReceiveDeadLetters(ctx, queue.ReceiveInput{
		QueueARN: l.arn, Limit: min(most, perCall), Wait: deadWait, Hold: deadHold,
	})
	if err != nil {
		return nil, fmt.Errorf("receiving dead letters: %w", err)
	}
	l.held = append(l.held, out.Records...)
	return out.Records, nil
}

// renew extends the holds of all dead letters when half of their time has passed.
func (l *Look) renew(ctx context.Context) error {
	if time.Since(l.renewed) < deadHold/2 {
		return nil
	}
	l.renewed = time.Now()
	return l.hold(ctx, deadHold)
}

// hold sets the time for which the dead letters of the look stay hidden.
func (l *Look) hold(ctx context.Context, d time.Duration) error {
	var entries []queue.Visibility
	for _, r := range l.held {
		if !l.handled[r.ReceiptHandle] {
			entries = append(entries, queue.Visibility{ReceiptHandle: r.ReceiptHandle, Hold: d})
		}
	}
	for some := range slices.Chunk(entries, perCall) {
		if _, err := l.client.SetDeadLetterVisibility(ctx, l.arn, some); err != nil {
			return err
		}
	}
	return nil
}

// All receives dead letters until none is visible, or there are most.
func (l *Look) All(ctx context.Context, most int) (all []queue.Delivery, err error) {
	for len(all) < most {
		some, err := l.Next(ctx, most-len(all))
		if err != nil || len(some) == 0 {
			return all, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// Find receives dead letters until it has those with the given record IDs. The error names the
// missing ones.
func (l *Look) Find(ctx context.Context, ids []string) (found []queue.Delivery, err error) {
	missing := map[string]bool{}
	for _, id := range ids {
		missing[id] = true
	}
	for len(missing) > 0 {
		some, err := l.Next(ctx, perCall)
		if err != nil {
			return found, err
		}
		for _, d := range some {
			if missing[d.RecordID] {
				delete(missing, d.RecordID)
				found = append(found, d)
			}
		}
		if len(some) == 0 {
			var names []string
			for _, id := range ids {
				if missing[id] && !slices.Contains(names, id) {
					names = append(names, id)
				}
			}
			return found, fmt.Errorf("the queue has no visible dead letter %s: \"weir queue dead list\" shows them; another process may have received it", cli.List(names))
		}
	}
	return found, nil
}

// Settle restores or removes dead letters with one of the client's calls. It returns how many dead
// letters the call has changed, also with an error.
func (l *Look) Settle(ctx context.Context, do func(context.Context, string, []string) (queue.BatchOutput, error), of []queue.Delivery) (n int, err error) {
	for some := range slices.Chunk(of, perCall) {
		handles := make([]string, len(some))
		for i := range some {
			handles[i] = some[i].ReceiptHandle
		}
		out, err := do(ctx, l.arn, handles)
		if err != nil {
			return n, err
		}
		failed := map[string]bool{}
		for _, f := range out.Failed {
			failed[f.ReceiptHandle] = true
		}
		for _, h := range handles {
			if !failed[h] {
				l.handled[h] = true
				n++
			}
		}
		if len(out.Failed) > 0 {
			f := out.Failed[0]
			return n, fmt.Errorf("%s could not be changed; the first error is %s (%s)", cli.Count(len(out.Failed), "dead letter"), f.Code, f.Message)
		}
	}
	return n, nil
}

// End makes the dead letters visible that were not restored or removed. It also works after ctx has
// ended.
func (l *Look) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	if err := l.hold(ctx, 0); err != nil {
		return fmt.Errorf("the dead letters stay hidden for up to %v: %w", deadHold, err)
	}
	return nil
}

// With calls do with a look, and ends the look.
func With(ctx context.Context, client *queue.Client, arn string, do func(*Look) error) (err error) {
	l := NewLook(client, arn)
	defer func() { err = errors.Join(err, l.End(ctx)) }()
	return do(l)
}
