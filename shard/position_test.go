package shard_test

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/shard"
)

// must returns a position whose sequence number is known to be valid.
func must(p shard.Position, err error) shard.Position {
	if err != nil {
		panic(err)
	}
	return p
}

var afternoon = time.Date(2026, 1, 2, 15, 4, 5, 678_000_000, time.UTC)

// inOrder contains positions of one shard, each before the next.
var inOrder = []shard.Position{
	{},
	shard.At(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)),
	shard.At(time.Date(1969, 12, 31, 23, 59, 59, 999_000_000, time.UTC)),
	shard.At(time.Unix(0, 0)),
	shard.At(afternoon),
	shard.At(afternoon.Add(time.Millisecond)),
	shard.At(time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)),
	shard.Oldest,
	shard.Latest,
	must(shard.Before("0")),
	must(shard.After("0")),
	must(shard.After("9")),
	must(shard.Before("10")),
	must(shard.Part("10", 1)),
	must(shard.Part("10", 9)),
	must(shard.Part("10", 10)),
	must(shard.Part("10", shard.Whole-1)),
	must(shard.After("10")),
	must(shard.After("11")),
	must(shard.Before("49546986683135544286507457936321625675700192471156785154")),
	must(shard.After("49546986683135544286507457936321625675700192471156785154")),
	must(shard.After(strings.Repeat("9", 129))),
	shard.End,
}

func TestPositionsAreOrdered(t *testing.T) {
	t.Parallel()
	for i, p := range inOrder {
		for j, q := range inOrder {
			want := cmp.Compare(i, j)
			if got := p.Compare(q); got != want {
				t.Errorf("Compare(%q, %q) = %d, want %d", p, q, got, want)
			}
			if got := strings.Compare(p.SortKey(), q.SortKey()); got != want {
				t.Errorf("sort keys of %q and %q compare to %d, want %d: %q, %q", p, q, got, want, p.SortKey(), q.SortKey())
			}
			if (p == q) != (want == 0) {
				t.Errorf("%q == %q is %v", p, q, p == q)
			}
		}
	}
}

// TestPositionsSortAsNumbers compares the order of random sequence numbers with that of big
// integers.
func TestPositionsSortAsNumbers(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	random := func() string {
		digits := []byte{byte('1' + rng.IntN(9))}
		for range rng.IntN(60) {
			digits = append(digits, byte('0'+rng.IntN(10)))
		}
		return string(digits)
	}
	for range 2000 {
		a, b := random(), random()
		if rng.IntN(4) == 0 {
			b = a[:len(a)-1] + string(byte('0'+rng.IntN(10))) // has the same length
			if b == "0" {
				continue
			}
		}
		x, _ := new(big.Int).SetString(a, 10)
		y, _ := new(big.Int).SetString(b, 10)
		p, q := must(shard.Part(a, rng.Uint32N(3))), must(shard.Part(b, rng.Uint32N(3)))
		want := cmp.Or(x.Cmp(y), cmp.Compare(p.Done(), q.Done()))
		if got := shard.CompareSequence(a, b); got != x.Cmp(y) {
			t.Errorf("seed %d: CompareSequence(%s, %s) = %d", seed, a, b, got)
		}
		if got := p.Compare(q); got != want {
			t.Errorf("seed %d: Compare(%s, %s) = %d, want %d", seed, p, q, got, want)
		}
		if got := strings.Compare(p.SortKey(), q.SortKey()); got != want {
			t.Errorf("seed %d: sort keys of %s and %s compare to %d, want %d", seed, p, q, got, want)
		}
	}
}

func TestPositionsSurviveAsText(t *testing.T) {
	t.Parallel()
	for _, p := range inOrder {
		got, err := shard.Parse(p.String())
		if err != nil || got != p {
			t.Errorf("Parse(%q) = %q, %v", p.String(), got, err)
		}
		type row struct {
			Position shard.Position
			ByShard  map[string]shard.Position
		}
		in := row{p, map[string]shard.Position{"a": p}}
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out row
		if err := json.Unmarshal(text, &out); err != nil || out.Position != p || out.ByShard["a"] != p {
			t.Errorf("%s becomes %+v, %v", text, out, err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]shard.Position{
		"":                              {},
		"oldest":                        shard.Oldest,
		"latest":                        shard.Latest,
		"end":                           shard.End,
		"2026-01-02T15:04:05.678Z":      shard.At(afternoon),
		"2026-01-02T16:04:05.678+01:00": shard.At(afternoon),
		// Kinesis stores milliseconds.
		"2026-01-02T15:04:05.678999Z": shard.At(afternoon),
		"0":                           must(shard.After("0")),
		"4959":                        must(shard.After("4959")),
		"4959+0":                      must(shard.Before("4959")),
		"4959+3":                      must(shard.Part("4959", 3)),
		"4959+4294967295":             must(shard.After("4959")),
	} {
		if got, err := shard.Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"newest":                 "want oldest, latest, end, a time, or a sequence number",
		"Oldest":                 "want oldest",
		" oldest":                "want oldest",
		"007":                    "starts with a zero",
		"-5":                     "not a time",
		"2026-01-02":             "not a time such as 2026-01-02T15:04:05Z",
		"2026-13-02T15:04:05Z":   "not a time",
		"4959+":                  "not a number below 2^32",
		"4959+01":                "not a number below 2^32",
		"4959+4294967296":        "not a number below 2^32",
		"4959++3":                "not a number below 2^32",
		"4959+3+3":               "not a number below 2^32",
		"+3":                     "has 1 to 129 digits, this one has 0",
		"0049+3":                 "starts with a zero",
		"12a":                    "not a decimal number",
		"１２":                     "not a decimal number",
		strings.Repeat("1", 130): "1 to 129 digits, this one has 130",
	} {
		got, err := shard.Parse(text)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "shard: ") {
			t.Errorf("Parse(%q) = %q, %v, want an error that says %q", text, got, err, says)
		}
		var p shard.Position
		if p.UnmarshalText([]byte(text)) == nil || !p.IsZero() {
			t.Errorf("UnmarshalText(%q) is %q and no error", text, p)
		}
	}
	// The error is readable for any length of the input.
	if _, err := shard.Parse(strings.Repeat("x", 100_000)); err == nil || len(err.Error()) > 500 {
		t.Errorf("the error of a long text is %.600v", err)
	}
}

func TestPositionTellsWhatItIs(t *testing.T) {
	t.Parallel()
	part := must(shard.Part("4959", 3))
	for _, c := range []struct {
		position shard.Position
		kind     shard.Kind
		sequence string
		done     uint32
		time     time.Time
	}{
		{shard.Position{}, shard.None, "", 0, time.Time{}},
		{shard.Oldest, shard.First, "", 0, time.Time{}},
		{shard.Latest, shard.Tip, "", 0, time.Time{}},
		{shard.End, shard.Finished, "", 0, time.Time{}},
		{shard.At(afternoon.In(time.FixedZone("", 3600))), shard.Time, "", 0, afternoon},
		{part, shard.Sequence, "4959", 3, time.Time{}},
		{must(shard.After("4959")), shard.Sequence, "4959", shard.Whole, time.Time{}},
	} {
		p := c.position
		if p.Kind() != c.kind || p.SequenceNumber() != c.sequence || p.Done() != c.done || !p.Time().Equal(c.time) {
			t.Errorf("%q is %v %q %d %v", p, p.Kind(), p.SequenceNumber(), p.Done(), p.Time())
		}
		if p.IsZero() != (c.kind == shard.None) || p.IsEnd() != (c.kind == shard.Finished) {
			t.Errorf("%q: IsZero %v, IsEnd %v", p, p.IsZero(), p.IsEnd())
		}
	}
	for _, bad := range []string{"", "01", "1.5", "-1", strings.Repeat("1", 130)} {
		for _, f := range []func(string) (shard.Position, error){shard.After, shard.Before} {
			if p, err := f(bad); err == nil || !p.IsZero() {
				t.Errorf("a position was made of %q: %q", bad, p)
			}
		}
	}
}

// TestTimesOutOfRange checks that the position for any time can be stored as text and read again.
func TestTimesOutOfRange(t *testing.T) {
	t.Parallel()
	first := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	last := time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
	for _, c := range []struct{ at, want time.Time }{
		{time.Time{}, time.Time{}},
		{first.Add(-1), first},
		{last.Add(time.Second), last},
		{time.UnixMilli(math.MaxInt64), last},
		{time.UnixMilli(math.MinInt64), first},
	} {
		p := shard.At(c.at)
		if !p.Time().Equal(c.want) {
			t.Errorf("At(%v) is at %v, want %v", c.at, p.Time(), c.want)
		}
		if q, err := shard.Parse(p.String()); err != nil || q != p {
			t.Errorf("Parse(%q) = %q, %v", p, q, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, p := range inOrder {
		f.Add(p.String())
	}
	for _, s := range []string{"0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "4959+4294967295", "T", "-", "+"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := shard.Parse(s)
		if err != nil {
			if !p.IsZero() {
				t.Errorf("Parse(%q) = %q beside an error", s, p)
			}
			return
		}
		q, err := shard.Parse(p.String())
		if err != nil || q != p {
			t.Errorf("Parse(%q) is %q, which is read as %q, %v", s, p, q, err)
		}
		if got := p.Compare(q); got != 0 {
			t.Errorf("%q compares to itself as %d", p, got)
		}
		for i, o := range inOrder {
			if got, want := p.Compare(o), strings.Compare(p.SortKey(), o.SortKey()); got != want {
				t.Errorf("%q compares to %q as %d, the sort keys as %d", p, inOrder[i], got, want)
			}
		}
		if !slices.IsSortedFunc([]shard.Position{{}, p, shard.End}, shard.Position.Compare) {
			t.Errorf("%q is outside of the order", p)
		}
	})
}
