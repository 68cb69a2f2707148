package filter_test

import (
	"testing"

	"github.com/weir-go/weir/filter"
)

// A record that does not match causes no allocation, even with escapes and operators.
func TestWhatDoesNotMatchAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("sync.Pool drops objects under the race detector")
	}
	f := filter.MustCompile(`{"data":{"kind":["refund",{"prefix":"re"},{"suffix":{"equals-ignore-case":"x"}},{"wildcard":"a*b*c"},{"cidr":"10.0.0.0/8"},{"numeric":[">",5]}],
		"o":{"p":[{"anything-but":["a","b"]}]}}}`, `{"partitionKey":["other"],"data":{"kind":["order"]}}`)
	docs := documents()
	docs["escapes"] = []byte(`{"\u006bind":"\u006frder","o":[{"p":"a"},{"p":"\u0062"}]}`)
	docs["no address"] = []byte(`{"kind":"10.0.0.0.0","o":{"p":"c"}}`)
	docs["a number"] = []byte(`{"kind":4.99e0,"o":{"p":"c"}}`)
	docs["dotted names"] = []byte(`{"kind":"other","o.p":"a","o":[{"p":"b"}],"o.q":[{"r":1}],"o.p":"b"}`)
	docs["no JSON"] = []byte(`{"kind":"order"`)
	for name, doc := range docs {
		if n := testing.AllocsPerRun(1000, func() {
			if matches, _ := f.Match(doc, "key", arrived); matches {
				t.Fatalf("%s matches", name)
			}
		}); n >= 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
