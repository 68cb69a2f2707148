package polling

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/shard"
)

// A checkpoint only moves forward. An answer is rejected if it contains repeated records, records
// out of order, or records without a number.
func TestRecordsHaveTheirPlaces(t *testing.T) {
	for _, c := range []struct {
		name, numbers string
		from          string // the position is after this record
		wrong         string
		left          int
	}{
		{"in order", "8 9 10", "7", "", 3},
		{"from the position on", "7 8 9", "7", "", 2},
		{"from before the position", "5 6 7 8", "7", "", 1},
		{"all before the position", "5 6 7", "7", "", 0},
		{"none", "", "7", "", 0},
		{"one twice", "8 9 9 10", "7", "record 9 after 9", 0},
		{"the first two the wrong way round", "9 8 10", "7", "record 8 after 9", 0},
		{"the last two the wrong way round", "8 10 9", "7", "record 9 after 10", 0},
		{"fewer digits", "8 10 9 11", "7", "record 9 after 10", 0},
		{"the first is not a number", "x 8 9", "7", "cannot be placed", 0},
		{"the last is not a number", "8 9 x1", "7", "cannot be placed", 0},
		{"before the position, and out of order", "6 5 8", "7", "record 5 after 6", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, err := shard.After(c.from)
			if err != nil {
				t.Fatal(err)
			}
			w := &codec.Page{Last: true, Next: "iterator"}
			for n := range strings.FieldsSeq(c.numbers) {
				w.Append(source.Record{SequenceNumber: n, Data: []byte("x")})
			}
			p := &Poll{Setup: new(source.Setup), From: from}
			page, err := p.check(t.Context(), w)
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) || p.From != from {
					t.Fatalf("%v, and the position is %s", err, p.From)
				}
				return
			}
			if err != nil || len(page.Records) != c.left {
				t.Fatalf("%d records, %v", len(page.Records), err)
			}
			if err := p.deliver(w, page); err != nil || (c.left > 0) != (p.From != from) {
				t.Errorf("%v, and the position is %s", err, p.From)
			}
		})
	}
}
