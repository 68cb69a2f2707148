//go:build unix

package bench

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/benchserver"
)

var onlyModes = flag.String("modes", "", "measure only what has this in its name; for profiles")

// mode is a way of reading.
type mode struct {
	name      string
	read      func(tb testing.TB, p *benchserver.Process, c readCase) spent
	most      float64 // target: at most this multiple of the cost of receiving and discarding
	fromSDK   float64 // target: the bare SDK costs at least this many times more
	mostAlloc float64 // target: at most this many allocations per record; 0 means no target
}

const (
	limitMode = "limit: receive and drop"
	sdkMode   = "bare SDK"
)

func limit(tb testing.TB, p *benchserver.Process, c readCase) spent {
	return readPages(tb, limitMode, c, c.read, drop(p.Address, c))
}

func sdk(tb testing.TB, p *benchserver.Process, c readCase) spent {
	return readPages(tb, sdkMode, c, c.readSDK, bareSDK(benchClient(p.Address), c.records))
}

func byWeir(opts weir.Options, client ...func(*kinesis.Options)) func(testing.TB, *benchserver.Process, readCase) spent {
	return func(tb testing.TB, p *benchserver.Process, c readCase) spent {
		return readByWeir(tb, benchClient(p.Address, client...), c, opts)
	}
}

var reuse = weir.Options{ReuseBuffers: true}

// BenchmarkConsumer reads streams through the whole consumer: Run, leases, checkpoints, and a
// handler that counts bytes. It compares the CPU time of this process with that of two other
// programs. One receives the same answers over net/http and discards them. The other is a bare loop
// with the SDK's client. The three programs run alternately. All shards have a backlog. There are
// so many shards that the machine limits the speed, and not the service's limit for each shard. The
// important results are the ratios, which are printed as a table.
//
//	go test -run '^$' -bench Consumer -benchtime 1x ./internal/proof/bench
func BenchmarkConsumer(b *testing.B) {
	for _, t := range []struct {
		readCase
		modes []mode
	}{
		{readCase{"TLS/1KiBx1000", true, 1000, 1024, 1024, 20, 2000, 200, 0}, []mode{
			{limitMode, limit, 0, 0, 0},
			{sdkMode, sdk, 0, 0, 0},
			{"weir", byWeir(weir.Options{}), 2.2, 5, 0.1},
			{"weir, reused buffers", byWeir(reuse), 1.3, 9, 0.1},
			{"weir, reused, net/http", byWeir(reuse, overNetHTTP), 0, 0, 0},
			{"weir, reused, middleware", byWeir(reuse, withMiddleware), 2.0, 6, 0},
		}},
		{readCase{"TLS/100Bx10000", true, 10_000, 100, 512, 12, 1000, 80, 0}, []mode{
			{limitMode, limit, 0, 0, 0},
			{sdkMode, sdk, 0, 0, 0},
			{"weir", byWeir(weir.Options{}), 0, 0, 0.1},
			{"weir, reused buffers", byWeir(reuse), 1.6, 9, 0.1},
			{"weir, reused, net/http", byWeir(reuse, overNetHTTP), 0, 0, 0},
		}},
		{readCase{"HTTP/1KiBx10", false, 10, 1024, 4096, 200, 30_000, 3000, 0}, []mode{
			{limitMode, limit, 0, 0, 0},
			{sdkMode, sdk, 0, 0, 0},
			{"weir", byWeir(weir.Options{}), 0, 0, 0},
			{"weir, reused buffers", byWeir(reuse), 1.6, 3, 0},
			{"weir, reused, net/http", byWeir(reuse, overNetHTTP), 0, 0, 0},
		}},
	} {
		b.Run(t.name, func(b *testing.B) { compare(b, t.readCase, t.modes) })
	}
}

// rounds returns how often each mode runs.
func rounds() int {
	if testing.Short() {
		return 1
	}
	return 3
}

// short returns a smaller case if the tests run with -short, where only correctness matters.
func (c readCase) short() readCase {
	if testing.Short() {
		c.shards, c.read, c.readSDK = min(c.shards, 128), c.read/10, c.readSDK/10
	}
	return c
}

func compare(b *testing.B, c readCase, modes []mode) {
	c = c.short()
	p := serveBench(b, c.config())
	measured := map[string][]spent{}
	for b.Loop() {
		for range rounds() {
			for _, m := range modes {
				if !strings.Contains(m.name, *onlyModes) {
					continue
				}
				if err := p.Reset(); err != nil {
					b.Fatal(err)
				}
				runtime.GC()
				s := m.read(b, p, c)
				stats := serverStats(b, p)
				s.connections = stats.Accepted
				s.reads = float64(stats.Calls["GetRecords"]) / float64(s.all/int64(c.records))
				measured[m.name] = append(measured[m.name], s)
			}
		}
	}
	printTable(b, modes, measured)
}

// printTable prints the measurements, and the ratios with their targets.
func printTable(b *testing.B, modes []mode, measured map[string][]spent) {
	median := func(name string, of func(spent) float64) float64 {
		var all []float64
		for _, s := range measured[name] {
			all = append(all, of(s))
		}
		if len(all) == 0 {
			return 0
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	lowest, bare := median(limitMode, spent.perRecord), median(sdkMode, spent.perRecord)
	table := &strings.Builder{}
	turns := 0
	for _, m := range measured {
		turns = len(m)
	}
	fmt.Fprintf(table, "\n%s, medians of %d\n%-26s %9s %22s %22s %22s %12s %11s\n", b.Name(), turns, "", "ns/record", "÷ limit", "bare SDK ÷", "allocs/record", "connections", "reads/page")
	for _, m := range modes {
		cost, allocs := median(m.name, spent.perRecord), median(m.name, spent.allocs)
		fmt.Fprintf(table, "%-26s %9.0f %s %s %s %12.0f %11.2f\n", m.name, cost,
			beside("%.2f", cost/lowest, m.most, false), beside("%.1f", bare/cost, m.fromSDK, true), beside("%.3f", allocs, m.mostAlloc, false),
			median(m.name, func(s spent) float64 { return float64(s.connections) }), median(m.name, func(s spent) float64 { return s.reads }))
		unit := strings.NewReplacer(" ", "-", ",", "", ":", "").Replace(m.name)
		if m.most > 0 {
			b.ReportMetric(cost/lowest, unit+"/limit")
			b.ReportMetric(bare/cost, "sdk/"+unit)
		}
	}
	fmt.Print(table) // a benchmark's log is cut after ten lines
	b.ReportMetric(0, "ns/op")
}

// beside formats a figure with its target, which is an upper or lower bound. A target of 0 means
// that there is no bound.
func beside(format string, figure, target float64, lower bool) string {
	s := fmt.Sprintf(format, figure)
	if target > 0 {
		sign, missed := "≤", figure > target
		if lower {
			sign, missed = "≥", figure < target
		}
		s += fmt.Sprintf(" (%s %g)", sign, target)
		if missed {
			s = "missed: " + s
		}
	}
	return fmt.Sprintf("%22s", s)
}
