package codec

import (
	"testing"

	"github.com/weir-go/weir/internal/proof/pooled"
)

// A reused object equals a new one.
func TestWhatIsUsedAgainIsAsGoodAsNew(t *testing.T) {
	d := decodings.New().(*decoding)
	pooled.Fill(d, "member")
	d.end()
	for _, diff := range pooled.Differences(d, new(decoding), "member") {
		t.Errorf("%s of a decoding is not reset", diff)
	}
	put := putReadings.New().(*putReading)
	pooled.Fill(put, "member", "field", "element")
	put.end()
	for _, diff := range pooled.Differences(put, new(putReading), "member", "field", "element") {
		t.Errorf("%s of a reading of results is not reset", diff)
	}
	p := new(Page)
	pooled.Fill(p, "memory", "lent", "Memory", "held")
	p.Reset()
	for _, diff := range pooled.Differences(p, &Page{Behind: -1}) {
		t.Errorf("%s of a page is not reset", diff)
	}
	// A page's memory keeps its bytes and records. The page stores how many of them are valid.
	m := &memory{body: make([]byte, LeastBody), records: make([]Record, 3)}
	m.lent.Store(1)
	if m.release(1, m.records); len(m.records) != 0 || m.lent.Load() != 2 {
		t.Errorf("%d records are left of a page, whose number is %d", len(m.records), m.lent.Load())
	}
}
