package dashboard

import (
	"context"
	"sync"

	"github.com/weir-go/weir/cmd/weir/internal/queues"
	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/queue"
)

// readsAtOnce is how many queues are read at the same time.
const readsAtOnce = 8

// pageQueues reads queues for the page.
type pageQueues struct{ *queues.Reader }

// Queues returns the queues of the account and region.
func (p pageQueues) Queues(ctx context.Context) ([]dashboard.Queue, error) {
	listed, err := queues.List(ctx, p.Reader.Queues, "")
	if err != nil {
		return nil, err
	}
	all := make([]dashboard.Queue, len(listed))
	errs := make([]error, len(listed))
	var reading sync.WaitGroup
	turns := make(chan struct{}, readsAtOnce)
	for i, q := range listed {
		turns <- struct{}{}
		reading.Go(func() {
			defer func() { <-turns }()
			d, err := p.Reader.Queues.DescribeQueue(ctx, q.ARN)
			if err != nil { // it may have been deleted since the listing
				d, errs[i] = queue.Description{Name: q.Name, ARN: q.ARN, Status: q.Status, Created: q.Created}, err
			}
			all[i] = p.read(ctx, &d)
		})
	}
	reading.Wait()
	for _, e := range errs {
		if e != nil {
			err = e
		}
	}
	return all, err
}

// read returns a queue with its numbers.
func (p pageQueues) read(ctx context.Context, d *queue.Description) dashboard.Queue {
	f := p.Facts(ctx, d)
	return dashboard.Queue{
		Name: f.Name, ARN: f.ARN, Stream: f.Stream, Status: f.Status, Created: f.Created,
		NoDeadLetters: !f.DeadLetters, MaxReceiveCount: f.MaxReceiveCount, Visibility: f.Visibility,
		Retention: f.Retention, StreamMode: f.StreamMode, StreamMissing: f.StreamMissing,
		Metrics: dashboard.QueueMetrics(f.Metrics), MetricsErr: f.MetricsErr,
	}
}

// DeadLetters receives dead letters of a queue, and gives them back.
func (p pageQueues) DeadLetters(ctx context.Context, arn string, most int) (all []dashboard.QueueLetter, err error) {
	err = queues.With(ctx, p.Reader.Queues, arn, func(l *queues.Look) error {
		found, err := l.All(ctx, most)
		for i := range found {
			d := &found[i]
			all = append(all, dashboard.QueueLetter{RecordID: d.RecordID, Arrived: d.Arrived, FirstReceived: d.FirstReceived, Receives: d.ReceiveCount, Data: d.Data})
		}
		return err
	})
	return all, err
}
