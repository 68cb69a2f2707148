package producer

import (
	"context"
	"time"

	"github.com/weir-go/weir/internal/notify"
)

// Events are functions that a producer calls when something happens, for metrics and tests. Nil
// functions are skipped. A separate goroutine calls the functions one after the other. If the
// functions do not keep up, events are dropped; [Producer.Counts] has exact numbers. A panic is
// logged.
type Events struct {
	// Requested is called after each call of PutRecords.
	Requested func(context.Context, Requested)
	// ShardsListed is called after the shards of the stream were listed.
	ShardsListed func(context.Context, ShardsListed)
}

// Requested is the argument of [Events].Requested.
type Requested struct {
	Time    time.Time     // when the call began
	Took    time.Duration // until its answer
	Entries int           // records of the stream in the request
	Records int           // records passed to Put, including packed ones
	Bytes   int           // of data, keys and tags
	Stored  int           // records with a result
	Failed  int           // records with an error
	Again   int           // records to send again
	Code    string        // of the last record that was not stored
	Err     error         // of the call
}

// ShardsListed is the argument of [Events].ShardsListed.
type ShardsListed struct {
	Time   time.Time
	Shards int // open ones
}

// tellRequest calls the hook of a request and logs its failures.
func (p *Producer) tellRequest(r *request, done settled, began time.Time, took time.Duration) {
	if hook := p.options.Events.Requested; hook != nil {
		e := Requested{
			Time: began, Took: took, Entries: len(r.sendings), Records: r.records, Bytes: r.bytes,
			Stored: done.stored, Failed: done.failed, Again: done.again, Code: done.code, Err: done.err,
		}
		p.queue.Add(notify.Detail, nil, func() { hook(context.Background(), e) })
	}
	switch {
	case done.failed > 0:
		p.repeated.Error("records could not be stored; each record's result has the error", "records", done.failed, "code", done.code, "err", done.err)
	case done.again > 0 && done.code != "ProvisionedThroughputExceededException" && p.ctx.Err() == nil:
		p.repeated.Warn("records were not stored; the producer sends them again", "records", done.again, "code", done.code, "err", done.err)
	}
}

// tellShards calls the hook of a listing.
func (p *Producer) tellShards(shards int) {
	if hook := p.options.Events.ShardsListed; hook != nil {
		e := ShardsListed{time.Now(), shards}
		p.queue.Add(notify.Detail, nil, func() { hook(context.Background(), e) })
	}
}
