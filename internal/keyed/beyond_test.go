package keyed

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// spanOf returns a span of at least n records with different keys. The records were added in
// chunks. Some of the records are done.
func spanOf(rng *rand.Rand, n int, likely float64) (s *Span, all []source.Record, done []bool) {
	s = NewSpan(n+1, 1)
	for from := 0; from < n; {
		var some []source.Record
		for range 1 + rng.IntN(20) {
			some = append(some, source.Record{SequenceNumber: fmt.Sprint(1000 + from), Key: fmt.Sprint(from), Done: shard.Whole})
			from++
		}
		s.Add(some, len(some), shard.Position{}, 1, nil)
		all = append(all, some...)
	}
	done = make([]bool, len(all))
	index := map[string]int{}
	for i, r := range all {
		index[r.Key] = i
	}
	for l := s.ready.first; l != nil; {
		next := l.next
		s.Begin(l)
		if i := index[l.Records[0].Key]; i > 0 && rng.Float64() < likely { // the first must stay
			done[i] = true
			s.Done(l, 1)
			s.Return(l)
		}
		l = next
	}
	return s, all, done
}

// The next owner skips only done records. If the text has room for all of them, it skips all done
// records.
func TestWhatIsDoneBeyondTheMarkIsTold(t *testing.T) {
	for seed := range rounds() {
		rng := rand.New(rand.NewPCG(seed, 2))
		s, all, done := spanOf(rng, 1+rng.IntN(400), rng.Float64())
		most := rng.IntN(600)
		text := s.Beyond(2, most)
		if len(text) > most {
			t.Fatalf("%d: %d bytes, %d are allowed", seed, len(text), most)
		}
		known := ParseBeyond(text, 2)
		told := 0
		for i := range all {
			if known.Done(&all[i]) {
				if told++; !done[i] {
					t.Fatalf("%d: record %d is not done, and taken to be", seed, i)
				}
			}
		}
		total := 0
		for _, d := range done {
			if d {
				total++
			}
		}
		if whole := s.Beyond(2, 10_000); len(whole) <= most && told != total || text == "" && told > 0 {
			t.Fatalf("%d: %d of %d are told in %q", seed, told, total, text)
		}
	}
}

// Texts from other writers or about other positions or records are ignored.
func TestWhatIsDoneIsBelievedOfTheSameRecordsAlone(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	s, all, _ := spanOf(rng, 100, 0.5)
	text := s.Beyond(1, 300)
	for _, row := range []struct {
		name, text string
		mode       byte
		first      int
	}{
		{"aggregates are made other things of", text, 0, 0},
		{"it is another place", text, 1, 1},
		{"a later form", base64.RawURLEncoding.EncodeToString([]byte("\x02\x0112345678\x01\x01")), 1, 0},
		{"nothing", "", 1, 0},
		{"no base64", "/", 1, 0},
		{"cut off", text[:10], 1, 0},
	} {
		known := ParseBeyond(row.text, row.mode)
		for i := row.first; i < len(all); i++ {
			if known.Done(&all[i]) {
				t.Errorf("%s: record %d is taken to be done", row.name, i)
			}
		}
	}
}

// The mark passes skipped records in the same way as handled ones.
func TestKnownRecordsPassTheMark(t *testing.T) {
	for seed := range rounds() {
		rng := rand.New(rand.NewPCG(seed, 4))
		before, all, _ := spanOf(rng, 1+rng.IntN(200), 0.7)
		known := ParseBeyond(before.Beyond(0, 10_000), 0)
		s, skipped := NewSpan(1000, 1), 0
		for from := 0; from < len(all); {
			n := min(1+rng.IntN(30), len(all)-from)
			skipped += s.Add(all[from:from+n], n, shard.Position{}, 1, &known)
			from += n
		}
		handled := 0
		for l, _ := s.MayBegin(); l != nil; l, _ = s.MayBegin() {
			s.Begin(l)
			handled += len(l.Records)
			s.Done(l, len(l.Records))
			s.Return(l)
		}
		if last := all[len(all)-1].After(); s.Mark() != last || s.Len() != 0 || s.Bytes() != 0 || handled+skipped != len(all) {
			t.Fatalf("%d: the mark is %v, want %v; %d handled, %d skipped of %d, %d left", seed, s.Mark(), last, handled, skipped, len(all), s.Len())
		}
	}
}

// Every text is parsed without a panic. A text that counts no records makes Known skip none.
func FuzzParseBeyond(f *testing.F) {
	s, _, _ := spanOf(rand.New(rand.NewPCG(1, 1)), 50, 0.5)
	f.Add(s.Beyond(0, 300), uint8(0))
	f.Add("", uint8(1))
	f.Fuzz(func(t *testing.T, text string, mode uint8) {
		known := ParseBeyond(text, mode)
		first := known
		for i := range 100 {
			r := source.Record{SequenceNumber: fmt.Sprint(1000 + i), Done: shard.Whole}
			if known.Done(&r) && first.Over() {
				t.Fatalf("%q is of nothing, and record %d is done", text, i)
			}
		}
	})
}

// The same field may contain a text about killed records. ParseBeyond must ignore such a text.
func TestBeyondIsNotReadFromKilledRecords(t *testing.T) {
	p, err := shard.After("1")
	if err != nil {
		t.Fatal(err)
	}
	text := failure.Killed(nil).Add(p).Text(100)
	if known := ParseBeyond(text, 0); text == "" || !known.Over() {
		t.Errorf("%q is read as records that are done", text)
	}
}

// Records that the text counts may expire between two pages. If the last record of the previous
// page may have expired, the rest of the text is dropped. Otherwise a record that is not done would
// be skipped.
func TestRecordsThatExpireBetweenTwoPages(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	for _, row := range []struct {
		name  string
		after time.Duration // from the arrival of the first page to the next page
		gap   int           // number of records that expired before the next page
		want  []bool
	}{
		{"nothing can have expired", Kept - time.Millisecond, 0, []bool{false, true, true, false}},
		{"something may have expired", Kept, 0, []bool{false, true, false, false}},
		{"a record has expired", Kept, 1, []bool{false, true, false}}, // without the drop, the last one would count as done
	} {
		all := run(1, "a b c a")
		for i := range all {
			all[i].Arrival = at.UnixMilli()
		}
		text := append([]byte{beyondForm, 0}, nameOf(&all[0])...)
		known := ParseBeyond(encoded(append(text, 1, 2)), 0) // one record is not done, then two are
		known.Page(at.Add(100 * Kept))                       // the first record's hash verifies the position
		var got []bool
		for i := range 2 {
			got = append(got, known.Done(&all[i]))
		}
		known.Page(at.Add(row.after))
		for i := 2 + row.gap; i < 4; i++ {
			got = append(got, known.Done(&all[i]))
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %v are done, want %v", row.name, got, row.want)
		}
	}
}
