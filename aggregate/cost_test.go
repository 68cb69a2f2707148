package aggregate

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"slices"
	"testing"
	"time"
)

// shapes are the containers for the allocation test and the benchmarks.
var shapes = []struct {
	name          string
	records, size int
	keys          int
	explicit      bool
}{
	{name: "100x100B", records: 100, size: 100, keys: 100},
	{name: "1000x50B", records: 1000, size: 50, keys: 1000},
	{name: "100x1KiB", records: 100, size: 1024, keys: 100},
	{name: "100x100B-8keys", records: 100, size: 100, keys: 8},
	{name: "100x100B-explicit", records: 100, size: 100, keys: 100, explicit: true},
}

// container returns the payload of n records of size bytes. keys is the number of different keys,
// which have 36 characters.
func container(tb testing.TB, n, size, keys int, explicit bool) []byte {
	tb.Helper()
	b := Builder{Limit: 1 << 30}
	data := make([]byte, size)
	for i := range n {
		for j := range data {
			data[j] = byte(i*31 + j*7)
		}
		key, hash := fmt.Sprintf("order-%030d", i%keys), ""
		if explicit {
			hash = fmt.Sprintf("1%038d", i%keys)
		}
		if err := b.Add(key, hash, data); err != nil {
			tb.Fatal(err)
		}
	}
	return b.AppendContainer(nil)
}

func TestParsingAllocatesNothing(t *testing.T) {
	upper := HashRange{HashKey{Hi: 1 << 63}, FullRange.End}
	for _, s := range shapes {
		data := container(t, s.records, s.size, s.keys, s.explicit)
		corrupt := bytes.Clone(data)
		corrupt[len(corrupt)-1]++
		var a Aggregate
		seen := 0
		allocs := testing.AllocsPerRun(20, func() {
			if ok, _ := a.Parse(corrupt); ok {
				t.Error("took a corrupt payload")
			}
			if ok, err := a.Parse(data); !ok {
				t.Error(err)
			}
			for r := range a.All() {
				seen += len(r.Data()) + len(r.PartitionKey()) + len(r.ExplicitHashKey())
			}
			seen += a.Keep(upper)
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations, want none", s.name, allocs)
		}
		if seen == 0 {
			t.Errorf("%s: nothing was seen", s.name)
		}
	}
}

// BenchmarkParse compares computing only the MD5 with parsing a container and visiting its records.
// Both run in turns, so that other load affects both. The results are medians per record.
func BenchmarkParse(b *testing.B) {
	for _, s := range shapes {
		b.Run(s.name, func(b *testing.B) {
			data := container(b, s.records, s.size, s.keys, s.explicit)
			msg := data[len(magic) : len(data)-md5.Size]
			var a Aggregate
			var hashing, parsing []time.Duration
			rounds, seen, sum := max(1, 200_000/len(data)), 0, byte(0)
			for b.Loop() {
				start := time.Now()
				for range rounds {
					digest := md5.Sum(msg)
					sum += digest[0]
				}
				half := time.Now()
				for range rounds {
					ok, _ := a.Parse(data)
					if !ok {
						b.Fatal("not an aggregate")
					}
					for r := range a.All() {
						seen += len(r.PartitionKey()) + len(r.Data())
						sum += r.Data()[0]
					}
				}
				hashing, parsing = append(hashing, half.Sub(start)), append(parsing, time.Since(half))
			}
			sink = int(sum) + seen
			md5Time, parseTime := median(hashing), median(parsing)
			per := float64(rounds * s.records)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(md5Time)/per, "md5-ns/record")
			b.ReportMetric(float64(parseTime)/per, "parse-ns/record")
			b.ReportMetric(float64(parseTime)/float64(md5Time), "parse/md5")
		})
	}
}

var sink int

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
