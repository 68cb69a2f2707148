package filter_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/filter"
)

// documents returns documents of about 1 KiB with the field of the pattern at the end.
func documents() map[string][]byte {
	dense := strings.Builder{}
	dense.WriteString("{")
	for i := 0; dense.Len() < 980; i++ {
		fmt.Fprintf(&dense, `"k%d":%d,"b%d":[true,null,%d.5,"v%d"],`, i, i*37, i, i, i)
	}
	dense.WriteString(`"kind":"order"}`)
	long := strings.Builder{}
	long.WriteString("{")
	for i := 0; long.Len() < 800; i++ {
		fmt.Fprintf(&long, `"text%d":"%s",`, i, strings.Repeat("lorem ipsum ", 20))
	}
	long.WriteString(`"kind":"order"}`)
	return map[string][]byte{"dense": []byte(dense.String()), "strings": []byte(long.String())}
}

func BenchmarkMatch(b *testing.B) {
	no := filter.MustCompile(`{"data":{"kind":["refund"]}}`)
	wide := filter.MustCompile(`{"data":{"kind":["refund",{"prefix":"re"}],"customer":{"country":["ch","de"]},"amount":[{"numeric":[">",100]}]}}`, `{"data":{"test":[true]}}`)
	for _, of := range []string{"dense", "strings"} {
		doc := documents()[of]
		b.Run(of+"/valid", func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				if !json.Valid(doc) {
					b.Fatal("not valid")
				}
			}
		})
		for name, f := range map[string]*filter.Filter{"filter": no, "wide": wide} {
			b.Run(of+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(doc)))
				b.ReportAllocs()
				for b.Loop() {
					if matches, isJSON := f.Match(doc, "key", arrived); matches || !isJSON {
						b.Fatal("matches")
					}
				}
			})
		}
	}
}

// BenchmarkBesideValid reports the time of a match relative to json.Valid. Both are measured in
// turns, and the minimum of each counts. Other load on the machine therefore affects both equally.
func BenchmarkBesideValid(b *testing.B) {
	f := filter.MustCompile(`{"data":{"kind":["refund"]}}`)
	for _, of := range []string{"dense", "strings"} {
		b.Run(of, func(b *testing.B) {
			doc, rounds := documents()[of], 20
			least := func(best time.Duration, do func() bool) time.Duration {
				began := time.Now()
				for range rounds {
					if !do() {
						b.Fatal("the document is not what it was")
					}
				}
				return min(best, time.Since(began))
			}
			valid, match := time.Hour, time.Hour
			for b.Loop() {
				valid = least(valid, func() bool { return json.Valid(doc) })
				match = least(match, func() bool {
					matches, isJSON := f.Match(doc, "key", arrived)
					return !matches && isJSON
				})
			}
			b.ReportMetric(float64(match)/float64(valid), "of-json.Valid")
			b.ReportMetric(0, "ns/op")
		})
	}
}
