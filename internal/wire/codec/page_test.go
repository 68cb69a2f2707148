package codec_test

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/shard"
)

func FuzzAscending(f *testing.F) {
	const usual = "49590338271490256608559692538361571095921575989136588898"
	f.Add(usual, usual)
	f.Add(usual, usual[:55]+"9")
	f.Add(usual, "5"+usual[1:])
	f.Add(usual, usual[:30]+"9"+usual[31:])
	f.Add("9", "10")
	f.Add("", "12345678")
	f.Add("12345678", "12345679")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, c := range [][2]string{{a, b}, {b, a}, {a, a}} {
			if got, want := codec.Ascending(c[0], c[1]), shard.CompareSequence(c[0], c[1]) < 0; got != want {
				t.Errorf("from %q to %q: %v", c[0], c[1], got)
			}
		}
	})
}

// The first misplaced record and the mark of aggregates are recorded for each way to read an
// answer.
func TestWhatIsNotedOfRecords(t *testing.T) {
	const marked = "\xf3\x89\x9a\xc2 and more"
	for _, c := range []struct {
		name    string
		numbers []string
		data    string // data of the last record
		want    int
	}{
		{"in order", []string{"8", "9", "10", "11"}, "plain", 0},
		{"one twice", []string{"8", "9", "9", "10"}, "plain", 2},
		{"the second before the first", []string{"10", "9", "11", "12"}, "plain", 1},
		{"two of them", []string{"7", "6", "5", "4"}, "plain", 1},
		{"the last has no number", []string{"1", "2", "3", ""}, "plain", 3},
		{"an aggregate", []string{"8", "9", "10", "11"}, marked, 0},
		{"too short for one", []string{"8", "9", "10", "11"}, marked[:3], 0},
		{"all", []string{"1", "2", "3", "3"}, marked, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			page := &codec.Page{Behind: -1}
			for i, number := range c.numbers {
				data := "plain"
				if i == len(c.numbers)-1 {
					data = c.data
				}
				page.Append(codec.Record{Data: []byte(data), Key: "k", SequenceNumber: number, Arrival: 1_700_000_000_000, Done: shard.Whole})
			}
			judge := func(how string, p *codec.Page) {
				if p.Misplaced != c.want || p.Marked != strings.HasPrefix(c.data, marked) {
					t.Errorf("%s: misplaced %d, marked %v", how, p.Misplaced, p.Marked)
				}
			}
			judge("appended", page)
			var got codec.Page
			for _, st := range []answers.CBOR{{}, {Open: true, Chunks: true}, {Extra: true}} {
				answers.Decode(t, codec.CBOR, st.Encode(page), &got)
				judge("CBOR", &got)
			}
			answers.Decode(t, codec.JSON, answers.JSON{}.Encode(page), &got)
			judge("JSON", &got)
			answers.Decode(t, codec.CBOR, answers.CBOR{}.Encode(&codec.Page{}), &got)
			if got.Misplaced != 0 || got.Marked {
				t.Error("what was noted of one page is still there in the next")
			}
		})
	}
}

// If a server repeats a member, only the last one counts.
func TestNothingIsNotedOfRecordsThatAreReplaced(t *testing.T) {
	var p codec.Page
	body := "\xa2\x67Records\x82\xa2\x6eSequenceNumber\x612\x64Data\x44\xf3\x89\x9a\xc2\xa1\x6eSequenceNumber\x611\x67Records\x81\xa1\x6eSequenceNumber\x611"
	answers.Decode(t, codec.CBOR, []byte(body), &p)
	if len(p.Records) != 1 || p.Misplaced != 0 || p.Marked {
		t.Errorf("%+v", p)
	}
}
