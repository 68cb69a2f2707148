package bench

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/kinesistest"
)

// putJSON is the result of weir bench put for programs.
type putJSON struct {
	Records, Failed int
	Bytes           int
	Seconds         float64
	Rate            float64        `json:"records_per_second"`
	Latency         percentiles    `json:"latency_ms"`
	Again           map[string]int `json:"sent_again"`
	Entries         int            `json:"stream_records"`
	Units           int            `json:"payload_units"`
	Dollars         float64
}

func TestBenchPut(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
		code := map[int]string{2: "InternalFailure"}[c.N]
		return kinesistest.Fault{PartialFailure: func(int) string { return code }}
	})
	args := []string{
		"bench", "put", endpoint, "--stream=s", "--rate=200", "--duration=1s", "--bytes=30000", "-o=json",
	}
	got := clitest.Decode[putJSON](t, clitest.MustRun(t, "", args...))
	n := len(server.Records("s"))
	if got.Records != 200 || got.Failed != 0 || n != 200 || got.Entries != 200 {
		t.Errorf("%+v; the stream has %d records", got, n)
	}
	// 30,000 bytes are two units.
	if got.Units != 400 || got.Dollars > 5.61e-06 ||
		got.Again["InternalFailure"] == 0 || len(got.Again) != 1 {
		t.Errorf("%+v", got)
	}
	l := got.Latency
	if l.P50 <= 0 || l.P50 > l.P90 || l.P90 > l.P99 || l.P99 > l.Max ||
		got.Rate < 20 || got.Rate > 210 {
		t.Errorf("%+v", got)
	}
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
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	out := clitest.MustRun(t, "", "bench", "put", endpoint, "--stream=s", "--rate=500",
		"--duration=1s", "--bytes=100", "--aggregate", "--price=20")
	for _, want := range []string{
		" of the stream\n", "put      500 records, ", "of 500, ", "latency  p50 ",
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
	clitest.MustRun(t, "", "bench", "put", endpoint, "--stream=s", "--rate=300", "--duration=1s",
		"--bytes=1000")
	read := func(args ...string) (r struct {
		Records, Bytes int
		Seconds        float64
		Latency        percentiles `json:"latency_ms"`
	}) {
		args = append(args, "--stream=s", "--from=oldest", "--duration=2s", "-o=json")
		out := clitest.MustRun(t, "", append([]string{"bench", "read", endpoint}, args...)...)
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := read(); r.Records != 300 || r.Latency.Max <= 0 {
		t.Errorf("%+v", r)
	}
	if r := read("--max-bytes=100KiB"); r.Records == 0 || r.Bytes > 100<<10 || r.Seconds > 1 {
		t.Errorf("within 100 KiB: %+v", r)
	}
	if r := read("--rate=50"); r.Records < 10 || r.Records > 110 {
		t.Errorf("50 records a second for 2 s: %+v", r)
	}
	out := clitest.MustRun(t, "", "bench", "read", endpoint, "--stream=s", "--duration=1s")
	if !strings.Contains(out, "read     0 records, 0 B") {
		t.Errorf("nothing arrives: %s", out)
	}
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
