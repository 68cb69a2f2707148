package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/wire/codec"
)

// benchCase describes the pages that a benchmark reads.
type benchCase struct {
	name           string
	records, bytes int
	pages          int // number of pages that each shard reads in a turn
}

const benchShards = 8

var benchCases = []benchCase{
	{"1KiBx1000", 1000, 1024, 12},
	{"100Bx10000", 10_000, 100, 4},
	{"10KiBx100", 100, 10 << 10, 12},
	{"1KiBx10", 10, 1024, 250},
	{"1KiBx10000", 10_000, 1024, 2},
}

// benchMode is one way to read pages. prepare returns a function that starts a shard. That function
// returns a function that reads one page.
type benchMode struct {
	name    string
	prepare func(tb testing.TB, url string, roots *x509.CertPool) func() func() (records int, err error)
}

var benchModes = []benchMode{
	{"limit", limitMode},
	{"sdk", sdkMode},
	{"own-fresh", callerMode(Options{Path: OwnCall}, false)},
	{"own-reused", callerMode(Options{Path: OwnCall, Reuse: true}, false)},
	{"parts-fresh", callerMode(Options{Path: OwnCall}, true)},
	{"parts-reused", callerMode(Options{Path: OwnCall, Reuse: true}, true)},
	{"json-reused", callerMode(Options{Path: OwnCall, Reuse: true, Format: codec.JSON}, false)},
	{"under-fresh", callerMode(Options{Path: UnderSDK}, false)},
	{"under-reused", callerMode(Options{Path: UnderSDK, Reuse: true}, false)},
}

func benchTransport(roots *x509.CertPool) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: roots}
	t.MaxIdleConnsPerHost = benchShards
	return t
}

// limitMode measures the cost of net/http. It sends the same request over HTTP/1.1 and drops the
// answer.
func limitMode(tb testing.TB, url string, roots *x509.CertPool) func() func() (int, error) {
	t := benchTransport(roots)
	tune(t, benchShards)
	tb.Cleanup(t.CloseIdleConnections)
	client := &http.Client{Transport: t}
	body := (&Request{Iterator: strings.Repeat("i", 224), Limit: 10_000}).appendTo(nil, codec.CBOR)
	return func() func() (int, error) {
		buf := make([]byte, 64<<10)
		return func() (int, error) {
			r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
			if err != nil {
				return 0, err
			}
			r.Header.Set("Content-Type", codec.CBORType)
			resp, err := client.Do(r)
			if err != nil {
				return 0, err
			}
			for {
				if _, err = resp.Body.Read(buf); errors.Is(err, io.EOF) {
					return 0, resp.Body.Close()
				} else if err != nil {
					return 0, err
				}
			}
		}
	}
}

func benchClient(url string, roots *x509.CertPool) *kinesis.Client {
	return fakeClient(url, func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: benchTransport(roots)} })
}

// sdkMode is a plain loop that calls the SDK and accesses each record.
func sdkMode(_ testing.TB, url string, roots *x509.CertPool) func() func() (int, error) {
	client := benchClient(url, roots)
	in := &kinesis.GetRecordsInput{ShardIterator: aws.String(strings.Repeat("i", 224)), Limit: aws.Int32(10_000)}
	return func() func() (int, error) {
		return func() (int, error) {
			out, err := client.GetRecords(context.Background(), in)
			if err != nil {
				return 0, err
			}
			touched := 0
			for _, r := range out.Records {
				touched += len(r.Data) + int(r.Data[0])
			}
			if touched == 0 {
				return 0, errors.New("no data")
			}
			return len(out.Records), nil
		}
	}
}

// callerMode reads with a Caller. It reads whole pages, or large answers in parts.
func callerMode(opts Options, parts bool) func(testing.TB, string, *x509.CertPool) func() func() (int, error) {
	return func(tb testing.TB, url string, roots *x509.CertPool) func() func() (int, error) {
		c, err := NewCaller(benchClient(url, roots), opts)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(c.Close)
		return reads(c, opts, parts)
	}
}

// reads returns a function that starts a shard. The pages of the shard are read with c.
func reads(c *Caller, opts Options, parts bool) func() func() (int, error) {
	req := Request{Iterator: strings.Repeat("i", 224), Limit: 10_000}
	read := func(p *codec.Page) (*Rest, error) { return nil, c.GetRecords(context.Background(), req, p) }
	if parts {
		read = func(p *codec.Page) (*Rest, error) { return c.Read(context.Background(), req, p) }
	}
	return func() func() (int, error) {
		p := new(codec.Page)
		return func() (int, error) {
			n, touched := 0, 0
			if !opts.Reuse {
				p = new(codec.Page) // the records of the previous page may still be in use
			}
			rest, err := read(p)
			for err == nil {
				for i := range p.Records {
					touched += len(p.Records[i].Data) + int(p.Records[i].Data[0])
				}
				n += len(p.Records)
				if rest == nil || p.Last {
					break
				}
				if !opts.Reuse {
					p = new(codec.Page)
				}
				err = rest.Next(p)
			}
			if p.Release(); err == nil && touched == 0 {
				err = errors.New("no data")
			}
			return n, err
		}
	}
}

// turn reads all pages of a case once. It returns the CPU time and the number of allocations.
func (c *benchCase) turn(tb testing.TB, shard func() func() (int, error)) (cpu time.Duration, allocs uint64) {
	tb.Helper()
	reads := make([]func() (int, error), benchShards)
	for i := range reads {
		reads[i] = shard()
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, _ := cpuTime()
	var wg sync.WaitGroup
	for _, read := range reads {
		wg.Go(func() {
			for range c.pages {
				if n, err := read(); err != nil || (n != c.records && n != 0) {
					tb.Errorf("%d records, %v", n, err)
					return
				}
			}
		})
	}
	wg.Wait()
	ended, _ := cpuTime()
	runtime.ReadMemStats(&after)
	return ended - began, after.Mallocs - before.Mallocs
}

// BenchmarkRead prints a table with a row for each size of record and page, and for each way to
// read. Column "x limit" is the CPU time as a multiple of the time in which net/http receives and
// drops the same bytes. Column "sdk÷" is the factor by which the plain SDK takes longer. The table
// also has the allocations per record. All ways take turns within one run. Only ratios are
// meaningful, because machines differ and their speed varies.
func BenchmarkRead(b *testing.B) { compare(b, benchCases, benchModes) }

// compare runs all modes on all cases in turns.
func compare(b *testing.B, cases []benchCase, modes []benchMode) {
	b.Helper()
	if _, ok := cpuTime(); !ok {
		b.Skip("the CPU time of a process is not known on this system")
	}
	addr, roots := startBenchServer(b)
	for _, base := range []struct{ name, url string }{{"TLS", addr.HTTPS}, {"HTTP", addr.HTTP}} {
		for _, c := range cases {
			b.Run(base.name+"/"+c.name, func(b *testing.B) {
				shards := make([]func() func() (int, error), len(modes))
				for i, m := range modes {
					shards[i] = m.prepare(b, fmt.Sprintf("%s/%d/%d", base.url, c.records, c.bytes), roots)
					// This call opens a connection and prepares the page.
					if _, err := shards[i]()(); err != nil {
						b.Fatalf("%s: %v", m.name, err)
					}
				}
				spent := make([][]float64, len(modes))
				allocs := make([]uint64, len(modes))
				rounds := 0
				for b.Loop() {
					rounds++
					for i := range modes {
						cpu, n := c.turn(b, shards[i])
						spent[i] = append(spent[i], float64(cpu))
						allocs[i] += n
					}
				}
				if b.Failed() {
					return
				}
				records := float64(c.records * c.pages * benchShards)
				median := func(i int) float64 {
					slices.Sort(spent[i])
					return spent[i][len(spent[i])/2]
				}
				limit, sdk := median(0), median(1)
				table := fmt.Sprintf("%s, medians of %d\n%-16s %12s %8s %8s %12s\n", b.Name(), rounds, "", "ns/record", "x limit", "sdk÷", "allocs/record")
				for i, m := range modes {
					table += fmt.Sprintf("%-16s %12.0f %8.2f %8.2f %12.3f\n", m.name, median(i)/records, median(i)/limit, sdk/median(i), float64(allocs[i])/float64(rounds)/records)
					if i > 0 {
						b.ReportMetric(median(i)/limit, m.name+"/limit")
					}
				}
				b.ReportMetric(0, "ns/op") // a round is not an operation
				fmt.Print("\n" + table)    // the log of a benchmark is cut after ten lines
			})
		}
	}
}
