package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
)

type readOptions struct {
	common
	idle time.Duration
	from string
}

var errOver = errors.New("the time of the measurement is over")

func (o *readOptions) run(ctx context.Context, t cli.Terminal, from weir.Position) error {
	o.aws.Reads = true
	client, err := o.aws.Kinesis(ctx, t)
	if err != nil {
		return err
	}
	if err := o.aws.Greet(ctx, client, o.stream); err != nil {
		return err
	}
	r, err := o.measure(ctx, client, from)
	if err != nil {
		return err
	}
	return o.report(t, r)
}

// readResult is the result of a measurement.
type readResult struct {
	latencies      latencies
	records, bytes int64
	took           time.Duration // until the last record
}

// measure reads until the time is over or enough records were read.
func (o *readOptions) measure(
	ctx context.Context, client *kinesis.Client, from weir.Position,
) (*readResult, error) {
	reader, err := weir.NewReader(client, weir.ReaderOptions{
		Stream: o.stream, Start: from, Polling: weir.Polling{IdleInterval: o.idle}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, cli.Usage(explain.InFlags(err))
	}
	began := time.Now()
	reading, stop := context.WithDeadlineCause(ctx, began.Add(o.lasts), errOver)
	defer stop()
	var r readResult
	for rec, err := range reader.Records(reading) {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case reading.Err() != nil:
			return &r, nil
		case err != nil:
			return nil, fmt.Errorf("stream %s: %w", o.stream, err)
		}
		size := int64(len(rec.Data) + len(rec.PartitionKey))
		if r.bytes+size > int64(o.maxBytes) {
			break
		}
		now := time.Now()
		r.latencies.add(max(0, now.Sub(rec.ArrivalTime())))
		r.records++
		r.bytes += size
		r.took = now.Sub(began)
		if o.rate > 0 {
			wait := time.Duration(float64(r.records) / o.rate * float64(time.Second))
			if !sleepUntil(reading, began.Add(wait)) {
				break
			}
		}
	}
	return &r, nil
}

func (o *readOptions) report(t cli.Terminal, r *readResult) error {
	took := max(r.took.Seconds(), 1e-9)
	rate, speed := float64(r.records)/took, float64(r.bytes)/took
	if r.records == 0 {
		rate, speed = 0, 0
	}
	if o.out == cli.FormatJSON {
		return json.NewEncoder(t.Out).Encode(struct {
			Asked   float64     `json:"asked_records_per_second"`
			Records int64       `json:"records"`
			Bytes   int64       `json:"bytes"`
			Seconds float64     `json:"seconds"`
			Rate    float64     `json:"records_per_second"`
			Speed   float64     `json:"bytes_per_second"`
			Latency percentiles `json:"latency_ms"`
		}{o.rate, r.records, r.bytes, r.took.Seconds(), rate, speed, r.latencies.percentiles()})
	}
	limit := ""
	if o.rate > 0 {
		limit = " of " + perSecond(o.rate)
	}
	_, err := fmt.Fprintf(t.Out, "read     %s, %s in %s\nrate     %s records/s%s, %s/s\n%s",
		cli.Count(r.records, "record"), figures.Bytes(r.bytes), figures.Duration(r.took),
		perSecond(rate), limit, figures.Bytes(int64(speed)), r.latencies.line())
	return err
}
