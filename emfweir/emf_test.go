package emfweir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// parsed is a decoded line that conforms to the specification of the format.
type parsed struct {
	dimensions map[string]string
	values     map[string][]float64
	units      map[string]string
	at         time.Time
}

func parse(t *testing.T, text string) parsed {
	t.Helper()
	p, err := check(text)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return p
}

// check decodes a line and returns an error if it violates the specification: its fields, their
// types and their limits.
func check(text string) (p parsed, err error) {
	p = parsed{map[string]string{}, map[string][]float64{}, map[string]string{}, time.Time{}}
	if len(text) > 256<<10 {
		return p, fmt.Errorf("a log event has 256 KiB at most, this one %d bytes", len(text))
	}
	var root map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		return p, err
	}
	var about struct {
		Timestamp         int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct {
				Name, Unit        string
				StorageResolution int
			}
		}
	}
	strict := json.NewDecoder(bytes.NewReader(root["_aws"]))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&about); err != nil {
		return p, err
	}
	p.at = time.UnixMilli(about.Timestamp)
	if len(about.CloudWatchMetrics) != 1 {
		return p, errors.New("want one directive")
	}
	d := about.CloudWatchMetrics[0]
	if len(d.Namespace) < 1 || len(d.Namespace) > 255 || len(d.Dimensions) != 1 || len(d.Dimensions[0]) > 30 || len(d.Metrics) < 1 || len(d.Metrics) > 100 {
		return p, errors.New("the directive is out of bounds")
	}
	members := 1
	for _, name := range d.Dimensions[0] {
		var value string
		if err := json.Unmarshal(root[name], &value); err != nil || value == "" || len(value) > 1024 || len(name) > 250 {
			return p, fmt.Errorf("the dimension %q is %s", name, root[name])
		}
		p.dimensions[name] = value
		members++
	}
	for _, m := range d.Metrics {
		if m.Unit != "Count" && m.Unit != "Bytes" && m.Unit != "Milliseconds" || m.StorageResolution != 0 {
			return p, fmt.Errorf("%s has the unit %q", m.Name, m.Unit)
		}
		var one float64
		var several []float64
		if json.Unmarshal(root[m.Name], &one) == nil {
			several = []float64{one}
		} else if err := json.Unmarshal(root[m.Name], &several); err != nil || len(several) < 1 || len(several) > 100 {
			return p, fmt.Errorf("%s is %s", m.Name, root[m.Name])
		}
		p.values[m.Name], p.units[m.Name] = several, m.Unit
		members++
	}
	if members != len(root) {
		return p, fmt.Errorf("%d members are defined, there are %d", members, len(root))
	}
	return p, nil
}

// emitted returns the lines for the given shards, decoded.
func emitted(t *testing.T, m *Metrics, held ...weir.ShardStatus) (all []parsed) {
	t.Helper()
	for _, l := range m.lines(held) {
		text, err := l.encode(m.namespace, time.UnixMilli(1_700_000_000_123))
		if err != nil || text[len(text)-1] != '\n' || bytes.Count(text, []byte("\n")) != 1 {
			t.Fatalf("%v: %q", err, text)
		}
		p := parse(t, string(text))
		if p.at.UnixMilli() != 1_700_000_000_123 {
			t.Errorf("at %v", p.at)
		}
		all = append(all, p)
	}
	return all
}

func made(t *testing.T, o *weir.Options, c Config) *Metrics {
	t.Helper()
	m, err := New(o, c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestLinesHaveTheNamesAndDimensionsOfTheKCL(t *testing.T) {
	ctx := t.Context()
	o := weir.Options{App: "billing", Streams: []string{"orders"}, Worker: "w1"}
	told := 0
	o.OnEvent = event.Join(o.OnEvent, event.On(func(context.Context, event.BatchHandled) { told++ }))
	m := made(t, &o, Config{ByShard: true})
	o.OnEvent(ctx, event.LeaseTaken{Stream: "orders", Shard: "one"})
	o.OnEvent(ctx, event.LeaseTaken{Stream: "orders", Shard: "two"})
	o.OnEvent(ctx, event.LeaseEnded{Stream: "orders", Shard: "two", Reason: event.EndLost})
	o.OnEvent(ctx, event.LeaseEnded{Stream: "orders", Shard: "three", Reason: event.EndFinished})
	for _, took := range []time.Duration{5 * time.Millisecond, 250 * time.Millisecond} {
		o.OnEvent(ctx, event.BatchHandled{Stream: "orders", Shard: "one", Records: 10, Bytes: 1000, Behind: took * 100, Took: took})
	}
	o.OnEvent(ctx, event.Read{Stream: "orders", Shard: "one", Records: 20, Took: 30 * time.Millisecond})
	o.OnEvent(ctx, event.Read{Stream: "orders", Shard: "one", Records: 20}) // as with fan-out
	o.OnEvent(ctx, event.HandlerFailed{Stream: "orders", Shard: "one"})
	o.OnEvent(ctx, event.DeadLettered{Stream: "orders", Shard: "one", Records: 3})
	o.OnEvent(ctx, event.ReadFailed{Stream: "orders", Shard: "one", Throttled: true})
	o.OnEvent(ctx, event.ReadFailed{Stream: "orders", Shard: "one"})
	if told != 2 {
		t.Errorf("the function that was there is called %d times", told)
	}
	held := []weir.ShardStatus{
		{Stream: "orders", Shard: "one", ReadLag: 3 * time.Second},
		{Stream: "orders", Shard: "gone", ReadLag: time.Hour, Reason: health.Abandoned},
	}
	all := emitted(t, m, held...)
	if len(all) != 4 {
		t.Fatalf("%d lines: %v", len(all), all)
	}
	for i, want := range []struct{ dimensions, values string }{
		{"map[Operation:ProcessTask ShardId:one]", "map[DataBytesProcessed:[2000] HandlerFailures:[1] KinesisDataFetcher.getRecords.Time:[30] MillisBehindLatest:[25000] " +
			"ReadsThrottled:[1] RecordProcessor.processRecords.Time:[5 250] RecordsDeadLettered:[3] RecordsProcessed:[20]]"},
		{"map[Operation:ApplicationTracker]", "map[MillisBehindLatest:[25000]]"},
		{"map[Operation:RenewAllLeases WorkerIdentifier:w1]", "map[CurrentLeases:[1] LostLeases:[1]]"},
		{"map[Operation:TakeLeases WorkerIdentifier:w1]", "map[TakenLeases:[2]]"},
	} {
		if d, v := fmt.Sprint(all[i].dimensions), fmt.Sprint(all[i].values); d != want.dimensions || v != want.values {
			t.Errorf("line %d: %s %s, want %s %s", i, d, v, want.dimensions, want.values)
		}
	}

	// The next lines count only events since the previous lines.
	all = emitted(t, m, held...)
	if v := fmt.Sprint(all[0].values, all[2].values, all[3].values); v != "map[DataBytesProcessed:[0] MillisBehindLatest:[3000] RecordsProcessed:[0]] map[CurrentLeases:[1] LostLeases:[0]] map[TakenLeases:[0]]" {
		t.Error(v)
	}
}

func TestWithoutShardsThereIsALineForEachStream(t *testing.T) {
	o := weir.Options{App: "billing", Streams: []string{"orders", "returns"}, Worker: "w1"}
	m := made(t, &o, Config{Namespace: "shop/billing"})
	for i := range 500 {
		o.OnEvent(t.Context(), event.BatchHandled{Stream: o.Streams[i%2], Shard: fmt.Sprint(i % 7), Records: 1, Took: time.Duration(i) * time.Millisecond, Behind: -1})
	}
	all := emitted(t, m, weir.ShardStatus{Stream: "orders", Shard: "1", ReadLag: -1})
	if len(all) != 4 {
		t.Fatalf("%d lines: %v", len(all), all)
	}
	for i, stream := range o.Streams {
		if d := fmt.Sprint(all[i].dimensions); d != "map[Operation:ProcessTask StreamId:"+stream+"]" {
			t.Error(d)
		}
		times := all[i].values["RecordProcessor.processRecords.Time"]
		longest := 0.0
		for _, ms := range times {
			longest = math.Max(longest, ms)
		}
		if len(times) != most || longest != float64(498+i) || all[i].values["RecordsProcessed"][0] != 250 {
			t.Errorf("%s: %d times, the longest %v, %v records", stream, len(times), longest, all[i].values["RecordsProcessed"])
		}
		if _, told := all[i].values["MillisBehindLatest"]; told {
			t.Errorf("%s: a lag that is not known is told", stream)
		}
	}
	if d := fmt.Sprint(all[2].dimensions); d != "map[Operation:RenewAllLeases]" {
		t.Error(d)
	}
}

func TestConfigsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct {
		app  string
		of   Config
		want string
	}{
		{"billing", Config{Namespace: "AWS/Kinesis"}, `Namespace "AWS/Kinesis"`},
		{"billing", Config{Namespace: ":x"}, `Namespace ":x"`},
		{"billing", Config{Namespace: "ä"}, `Namespace "ä"`},
		{"billing", Config{Namespace: strings.Repeat("x", 256)}, "255"},
		{"größe", Config{}, `Namespace "größe"`},
		{"billing", Config{Every: time.Millisecond}, "Every 1ms: want 1s to 1h"},
		{"billing", Config{Every: -time.Minute}, "Every -1m0s"},
		{"billing", Config{Every: 2 * time.Hour}, "Every 2h"},
	} {
		o := weir.Options{App: c.app}
		if _, err := New(&o, c.of); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.of, err)
		}
		if o.OnEvent != nil {
			t.Errorf("%+v: events are observed all the same", c.of)
		}
	}
}

// check returns an error for lines that violate the specification.
func TestTheSpecificationIsHeld(t *testing.T) {
	text, err := line{[]pair{{"Operation", "x"}}, []metric{{"m", "Count", 1}}}.encode("n", time.Now())
	if _, wrong := check(string(text)); err != nil || wrong != nil {
		t.Fatal(err, wrong)
	}
	for _, change := range [][2]string{{`"Count"`, `"Pieces"`}, {`"m":1`, `"m":"1"`}, {`"Operation":"x"`, `"Operation":""`}, {`"Dimensions":`, `"Dims":`}, {`"m":1`, `"m":[]`}, {`"m":1`, `"m":1,"more":2`}} {
		if broken := strings.Replace(string(text), change[0], change[1], 1); broken == string(text) {
			t.Errorf("%s is not there: %s", change[0], text)
		} else if _, err := check(broken); err == nil {
			t.Errorf("%s is not noticed", change[1])
		}
	}
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }

// written collects the output of a goroutine.
type written struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.Write(p)
}

// take returns the output since its last call.
func (w *written) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.all.Reset()
	return w.all.String()
}

func TestRunWritesEachMinuteAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := weir.Options{App: "billing"}
		m := made(t, &o, Config{ByShard: true})
		ctx, cancel := context.WithCancel(t.Context())
		var out written
		ended := make(chan error)
		go func() { ended <- m.Run(ctx, &out) }()
		o.OnEvent(ctx, event.BatchHandled{Stream: "s", Shard: "1", Records: 5})
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if got := out.take(); got != "" {
			t.Errorf("before a minute: %s", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := out.take(); strings.Count(got, "\n") != 4 {
			t.Errorf("after a minute: %s", got)
		}
		o.OnEvent(ctx, event.BatchHandled{Stream: "s", Shard: "1", Records: 7})
		cancel()
		if err, got := <-ended, out.take(); err != nil || !strings.Contains(got, `"RecordsProcessed":7`) {
			t.Errorf("%v: at the end: %s", err, got)
		}
		full := errors.New("no space left")
		if err := m.Run(ctx, failing{full}); !errors.Is(err, full) {
			t.Errorf("a writer that fails: %v", err)
		}
	})
}

// A running consumer writes one line for each shard. The sum over the lines is the number of
// records that were put.
func TestLinesOfAConsumerThatRuns(t *testing.T) {
	const records = 200
	server := kinesistest.NewServer(t)
	server.CreateStream("orders", 3)
	for i := range records {
		server.Put("orders", fmt.Sprint(i), []byte("0123456789"))
	}
	o := weir.Options{App: "billing", Streams: []string{"orders"}, Worker: "w1"}
	m := made(t, &o, Config{ByShard: true})
	c, err := weir.New(server.Client(), memstore.New(), o)
	if err != nil {
		t.Fatal(err)
	}
	m.Watch(c)
	ctx, cancel := context.WithCancel(t.Context())
	handled := make(chan int, records)
	ran := make(chan error)
	go func() {
		ran <- c.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
			handled <- len(b.Records)
			return nil
		}))
	}()
	for n := 0; n < records; n += <-handled {
	}
	held := emitted(t, m, c.Shards()...)
	cancel()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	sum, lines := 0.0, 0
	for _, p := range append(held, emitted(t, m)...) {
		for _, n := range p.values["RecordsProcessed"] {
			sum += n
		}
		if p.dimensions["ShardId"] != "" {
			lines++
		}
	}
	if sum != records || lines < 3 || lines > 6 {
		t.Errorf("%v records in %d lines", sum, lines)
	}
}
