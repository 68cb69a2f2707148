package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/producer"
)

type putOptions struct {
	common
	bytes, keys int
	price       float64
	pack, loose bool
}

// usualPrice is the price of a million PUT payload units in us-east-1, in dollars.
const usualPrice = 0.014

// unit is the size of a PUT payload unit in bytes.
const unit = 25_000

// late is how long the measurement may continue after its planned end, to put records that are
// late.
const late = time.Second

// drain is how long the command waits for the outcomes of records after it has put the last one.
const drain = 30 * time.Second

// records returns how many records the measurement puts.
func (o *putOptions) records() int { return int(math.Ceil(o.rate * o.lasts.Seconds())) }

// recordSize returns the maximum size of a record in bytes, including its key.
func (o *putOptions) recordSize() int { return o.bytes + len(key(o.keys-1)) }

func key(i int) string { return "key-" + strconv.Itoa(i) }

// units returns the maximum number of PUT payload units of all records together.
func (o *putOptions) units() int { return o.records() * ((o.recordSize() + unit - 1) / unit) }

// check returns an error if a record would be too large, or if the records could exceed
// --max-bytes.
func (o *putOptions) check() error {
	if o.recordSize() > mostSize {
		return cli.Usagef("--bytes %d: a record has at most 1 MiB with its key", o.bytes)
	}
	n, size := o.records(), o.recordSize()
	if n > o.maxBytes/size {
		return cli.Usagef("%s of %s are more than --max-bytes %s: "+
			"give a lower --rate, --duration or --bytes, or a higher --max-bytes",
			cli.Count(int64(n), "record"), figures.Bytes(int64(size)),
			figures.Bytes(int64(o.maxBytes)))
	}
	return nil
}

// dollars returns the price of a number of PUT payload units.
func (o *putOptions) dollars(units int) string {
	return "$" + strconv.FormatFloat(float64(units)*o.price/1e6, 'f', 6, 64)
}

func (o *putOptions) run(ctx context.Context, t cli.Terminal) error {
	o.aws.Reads = true // for weir's own calls
	client, err := o.aws.Kinesis(ctx, t)
	if err != nil {
		return err
	}
	if err := o.aws.Greet(ctx, client, o.stream); err != nil {
		return err
	}
	if !awsconf.IsLoopback(aws.ToString(client.Options().BaseEndpoint)) {
		t.Note("putting %s into %s, at most %s: about %s at $%v per million",
			cli.Count(int64(o.records()), "record"), o.stream,
			cli.Count(int64(o.units()), "payload unit"), o.dollars(o.units()), o.price)
	}
	r, err := o.measure(ctx, client)
	if err != nil {
		return explain.PlainError{Text: reason(err), Cause: err}
	}
	return o.report(t, r)
}

// putResult is the result of a measurement.
type putResult struct {
	latencies latencies
	counts    producer.Counts
	bytes     int64 // of the stored records
	failed    int64
	took      time.Duration // from the first record to the last confirmation
	err       error         // of a record
	stopped   bool          // a signal ended the measurement early
}

// measure puts each record at its planned time.
func (o *putOptions) measure(ctx context.Context, client *kinesis.Client) (*putResult, error) {
	p, err := producer.New(client, producer.Options{
		Stream: o.stream, Unordered: o.loose, NoAggregation: !o.pack, StopOnFailure: true,
		FirstShare: 1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	var r putResult
	var mu sync.Mutex
	began := time.Now()
	data := make([]byte, o.bytes+1024)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	putting, stop := context.WithDeadlineCause(ctx, began.Add(o.lasts+late), errOver)
	defer stop()
	for i := range o.records() {
		turn := began.Add(time.Duration(float64(i) / o.rate * float64(time.Second)))
		if !sleepUntil(putting, turn) {
			break
		}
		rec := producer.Record{PartitionKey: key(i % o.keys), Data: data[i%1024:][:o.bytes]}
		size := int64(len(rec.Data) + len(rec.PartitionKey))
		rec.Done = func(_ producer.Result, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				r.failed++
				if r.err == nil {
					r.err = err
				}
				return
			}
			now := time.Now()
			r.latencies.add(now.Sub(turn))
			r.bytes += size
			r.took = now.Sub(began)
		}
		if _, err := p.Put(putting, rec); err != nil {
			break // the time is over, or a record failed
		}
	}
	stopped := ctx.Err() != nil
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	_ = p.Close(ending) // the records have their errors
	mu.Lock()
	defer mu.Unlock()
	r.counts, r.stopped = p.Counts(), stopped
	if r.latencies.n == 0 && r.err != nil {
		return nil, r.err
	}
	return &r, nil
}

// reason returns why a record failed. If the service gave a reason, it omits the producer's words.
func reason(err error) string {
	var failed *producer.Error
	if errors.As(err, &failed) && failed.Cause() != nil {
		err = failed.Cause()
	}
	return explain.Error(err)
}

// sleepUntil waits until a time. It returns false if ctx ends earlier.
func sleepUntil(ctx context.Context, at time.Time) bool {
	d := time.Until(at)
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (o *putOptions) report(t cli.Terminal, r *putResult) error {
	c := &r.counts
	again := map[string]uint64{}
	for code, n := range c.Codes {
		if code == "" {
			code = "no answer"
		}
		again[code] = n
	}
	if c.Misplaced > 0 {
		again["split or merge"] = c.Misplaced
	}
	took := max(r.took.Seconds(), 1e-9)
	missed := o.records() - int(c.Records)
	if o.out == cli.FormatJSON {
		return json.NewEncoder(t.Out).Encode(struct {
			Asked   float64           `json:"asked_records_per_second"`
			Records uint64            `json:"records"`
			Bytes   int64             `json:"bytes"`
			Failed  int64             `json:"failed"`
			Missed  int               `json:"missed"`
			Stopped bool              `json:"stopped"`
			Seconds float64           `json:"seconds"`
			Rate    float64           `json:"records_per_second"`
			Speed   float64           `json:"bytes_per_second"`
			Latency percentiles       `json:"latency_ms"`
			Again   map[string]uint64 `json:"sent_again"`
			Entries uint64            `json:"stream_records"`
			Units   uint64            `json:"payload_units"`
			Price   float64           `json:"dollars"`
		}{
			o.rate, c.Stored, r.bytes, r.failed, missed, r.stopped, r.took.Seconds(),
			float64(c.Stored) / took,
			float64(r.bytes) / took, r.latencies.percentiles(), again, c.StoredEntries, c.PayloadUnits,
			float64(c.PayloadUnits) * o.price / 1e6,
		})
	}
	var b strings.Builder
	packed := ""
	if o.pack {
		packed = ", as " + cli.Count(int64(c.StoredEntries), "record") + " of the stream"
	}
	fmt.Fprintf(&b, "put      %s, %s in %s%s\n", cli.Count(int64(c.Stored), "record"),
		figures.Bytes(r.bytes), figures.Duration(r.took), packed)
	fmt.Fprintf(&b, "rate     %s records/s of %s, %s/s\n", perSecond(float64(c.Stored)/took),
		perSecond(o.rate), figures.Bytes(int64(float64(r.bytes)/took)))
	b.WriteString(r.latencies.line())
	if c.Retried == 0 {
		b.WriteString("again    nothing\n")
	}
	for i, why := range slices.Sorted(maps.Keys(again)) {
		head := "again"
		if i > 0 {
			head = ""
		}
		fmt.Fprintf(&b, "%-8s %s: %s\n", head, figures.Count(int64(again[why])), why)
	}
	if r.failed > 0 {
		fmt.Fprintf(&b, "failed   %s: %s\n", figures.Count(r.failed), reason(r.err))
	}
	if missed > 0 {
		why := "not put within the time"
		if r.stopped {
			why = "the measurement was stopped before their turn"
		}
		fmt.Fprintf(&b, "missed   %s: %s\n", figures.Count(missed), why)
	}
	fmt.Fprintf(&b, "cost     %s, %s at $%v per million\n",
		cli.Count(int64(c.PayloadUnits), "payload unit"), o.dollars(int(c.PayloadUnits)), o.price)
	_, err := t.Out.Write([]byte(b.String()))
	return err
}

// line returns the latencies as text.
func (l *latencies) line() string {
	if l.n == 0 {
		return "latency  unknown\n"
	}
	return fmt.Sprintf("latency  p50 %s, p90 %s, p99 %s, max %s\n", figures.Duration(l.at(.5)),
		figures.Duration(l.at(.9)), figures.Duration(l.at(.99)), figures.Duration(l.max))
}

// perSecond formats a rate, with one decimal if the rate is low.
func perSecond(n float64) string {
	if n < 100 {
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return figures.Count(int64(math.Round(n)))
}
