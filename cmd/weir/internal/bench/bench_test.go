package bench

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// putJSON is the result of weir bench put for programs.
type putJSON struct {
	Records, Failed, Missed int
	Bytes                   int
	Seconds                 float64
	Rate                    float64        `json:"records_per_second"`
	Latency                 percentiles    `json:"latency_ms"`
	Again                   map[string]int `json:"sent_again"`
	Entries                 int            `json:"stream_records"`
	Units                   int            `json:"payload_units"`
	Dollars                 float64
}

func TestBenchPut(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	args := []string{
		"bench", "put", endpoint, "--stream=s", "--rate=200", "--duration=1s", "--bytes=300",
		"--aggregate", "--price=20", "-o=json",
	}
	got := clitest.Decode[putJSON](t, clitest.MustRun(t, "", args...))
	n := len(server.Records("s"))
	// A slow machine misses some.
	if got.Records == 0 || got.Records+got.Missed != 200 || got.Failed != 0 || n == 0 ||
		got.Entries != n || got.Units != n || math.Abs(got.Dollars-20e-6*float64(n)) > 1e-9 {
		t.Errorf("%+v; the stream has %d records", got, n)
	}
}

func TestWhatBenchPutMeasures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		server.CreateStream("s", 2)
		server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
			code := map[int]string{2: "InternalFailure"}[c.N]
			return kinesistest.Fault{
				Delay: 5 * time.Millisecond, PartialFailure: func(int) string { return code },
			}
		})
		// 30,000 bytes are two units. Two shards take about 70 such records a second.
		out := putMeasured(t, server, &putOptions{
			common: common{stream: "s", lasts: 2 * time.Second, rate: 50, out: cli.FormatJSON},
			bytes:  30_000, keys: 1000, price: usualPrice,
		})
		got := clitest.Decode[putJSON](t, out)
		n := len(server.Records("s"))
		if got.Records != 100 || got.Failed != 0 || got.Missed != 0 || n != 100 || got.Entries != 100 {
			t.Errorf("%+v; the stream has %d records", got, n)
		}
		if got.Units != 200 || got.Dollars < 2.79e-06 || got.Dollars > 2.81e-06 ||
			got.Again["InternalFailure"] == 0 || len(got.Again) != 1 {
			t.Errorf("%+v", got)
		}
		l := got.Latency
		if l.P50 < 5 || l.P50 > l.P90 || l.P90 > l.P99 || l.P99 > l.Max ||
			got.Rate < 40 || got.Rate > 60 {
			t.Errorf("%+v", got)
		}
	})
}

// putMeasured puts records as o says, and returns the report.
func putMeasured(t *testing.T, server *kinesistest.Server, o *putOptions) string {
	t.Helper()
	r, err := o.measure(t.Context(), server.Client())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := o.report(cli.Terminal{Out: &out}, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// If a signal ends a measurement, the command reports that. It does not report that the stream was
// too slow.
func TestBenchPutIsStopped(t *testing.T) {
	t.Parallel()
	server, _ := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	ctx, stop := context.WithCancel(t.Context())
	o := &putOptions{
		common: common{stream: "s", lasts: time.Hour, rate: 20}, bytes: 10, keys: 1, price: 1,
	}
	server.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault {
		stop()
		return kinesistest.Fault{}
	})
	r, err := o.measure(ctx, server.Client())
	if err != nil || !r.stopped || r.counts.Stored == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	var out strings.Builder
	if err := o.report(cli.Terminal{Out: &out}, r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), ": the measurement was stopped before their turn\n") {
		t.Error(out.String())
	}
}

// With --aggregate, the command computes the cost of the packed records.
func TestBenchPutAggregates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		server.CreateStream("s", 1)
		out := putMeasured(t, server, &putOptions{
			common: common{stream: "s", lasts: time.Second, rate: 500},
			bytes:  100, keys: 1000, price: 20, pack: true,
		})
		for _, want := range []string{
			" of the stream\n", "put      500 records, ", " records/s of 500, ", "latency  p50 ",
			"again    nothing\n", "cost     ", " at $20 per million\n",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("it lacks %q:\n%s", want, out)
			}
		}
		for line := range strings.Lines(out) {
			if utf8.RuneCountInString(line) > 81 {
				t.Errorf("a long line: %s", line)
			}
		}
		if n := len(server.Records("s")); n > 100 {
			t.Errorf("500 records were packed into %d", n)
		}
	})
}

func TestBenchPutThatIsRefused(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	server.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault {
		return kinesistest.Fault{Err: &kinesistest.Error{Code: "AccessDeniedException", Message: "no"}}
	})
	args := []string{"bench", "put", endpoint, "--stream=s", "--duration=1s"}
	code, out, said := clitest.Answered(t, "", args...)
	want := "weir: no permission for Kinesis PutRecords"
	if code != cli.ExitFailed || out != "" || !strings.Contains(said, want) {
		t.Errorf("exit code %d; %s%s", code, out, said)
	}
}

// The price is computed from the options, before any record is put. The command prints it only for
// a real endpoint, which a test cannot reach.
func TestBenchPutStatesItsPrice(t *testing.T) {
	o := putOptions{
		common: common{rate: 100, lasts: 10 * time.Second}, bytes: 24_990, keys: 1000, price: usualPrice,
	}
	if got := o.dollars(o.units()); o.units() != 1000 || got != "$0.000014" {
		t.Errorf("%d units cost %s", o.units(), got)
	}
	if o.bytes++; o.units() != 1000*2 && o.recordSize() > unit {
		t.Errorf("%d units for records of %d bytes", o.units(), o.recordSize())
	}
}

func TestBenchRead(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	putThousands(server, 300)
	// The limit ends the measurement on a machine of any speed.
	args := []string{
		"bench", "read", endpoint, "--stream=s", "--from=oldest", "--duration=5m",
		"--max-bytes=100KiB", "-o=json",
	}
	r := clitest.Decode[struct {
		Records, Bytes int
		Latency        percentiles `json:"latency_ms"`
	}](t, clitest.MustRun(t, "", args...))
	if r.Records == 0 || r.Bytes > 100<<10 || r.Latency.Max <= 0 {
		t.Errorf("within 100 KiB: %+v", r)
	}
}

// putThousands puts n records of 1,000 bytes.
func putThousands(server *kinesistest.Server, n int) {
	for i := range n {
		server.Put("s", fmt.Sprint("key-", i), make([]byte, 1000))
	}
}

func TestWhatBenchReadMeasures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		server.CreateStream("s", 2)
		putThousands(server, 300)
		time.Sleep(100 * time.Millisecond) // the age of the records when they are read
		read := func(from shard.Position, c common) (*readOptions, *readResult) {
			t.Helper()
			c.stream = "s"
			o := &readOptions{common: c, idle: time.Second}
			r, err := o.measure(t.Context(), server.Client(), from)
			if err != nil {
				t.Fatal(err)
			}
			return o, r
		}
		const enough = 64 << 20
		_, r := read(shard.Oldest, common{lasts: 2 * time.Second, maxBytes: enough})
		if l := r.latencies.at(1); r.records != 300 || l < 100*time.Millisecond || l > time.Second {
			t.Errorf("%d records with a latency of up to %v", r.records, l)
		}
		_, r = read(shard.Oldest, common{lasts: 2 * time.Second, maxBytes: 100 << 10})
		if r.records == 0 || r.bytes > 100<<10 || r.took > time.Second {
			t.Errorf("%d records, %d bytes in %v", r.records, r.bytes, r.took)
		}
		_, r = read(shard.Oldest, common{lasts: 2 * time.Second, maxBytes: enough, rate: 50})
		if r.records < 99 || r.records > 101 {
			t.Errorf("50 records a second for 2 s are %d", r.records)
		}
		o, r := read(shard.Latest, common{lasts: time.Second, maxBytes: enough})
		var out strings.Builder
		if err := o.report(cli.Terminal{Out: &out}, r); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "read     0 records, 0 B") {
			t.Errorf("nothing arrives: %s", &out)
		}
	})
}

func TestLatencies(t *testing.T) {
	var l latencies
	if l.at(.5) != 0 {
		t.Errorf("without records: %v", l.at(.5))
	}
	for i := range 1000 {
		l.add(time.Duration(i+1) * time.Millisecond)
	}
	for part, ms := range map[float64]time.Duration{.5: 500, .9: 900, .99: 990} {
		want := ms * time.Millisecond
		if got := l.at(part); got < want || got > want*103/100 {
			t.Errorf("p%v is %v, want %v", 100*part, got, want)
		}
	}
	l.add(time.Hour)
	l.add(0)
	if l.at(1) != time.Hour || l.at(0.0001) > 2*time.Microsecond {
		t.Errorf("%v to %v", l.at(0.0001), l.at(1))
	}
}
