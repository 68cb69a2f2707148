package aggregate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func numbersOf(a *Aggregate) (all []Number) {
	for r := range a.All() {
		all = append(all, r.Number())
	}
	return all
}

func TestNumbersTravelWithTheirContainer(t *testing.T) {
	t.Parallel()
	none := Number{}
	many := make([]Number, 300)
	for i := range many {
		many[i] = Number{7, uint64(1000 + i)}
	}
	for _, c := range []struct {
		name    string
		numbers []Number
		bytes   int // of the field
	}{
		{"none", []Number{none, none}, 0},
		{"one", []Number{{5, 1}}, 3 + 1 + 8 + 1},
		{"consecutive", many, 3 + 2 + 8 + 2},
		{"a gap", []Number{{5, 1}, {5, 2}, {5, 9}}, 3 + 10 + 2},
		{"two series", []Number{{5, 1}, {6, 1}, {6, 2}}, 3 + 10 + 10},
		{"backwards", []Number{{5, 9}, {5, 1}}, 3 + 10 + 10},
		{"the same twice", []Number{{5, 9}, {5, 9}}, 3 + 10 + 10},
		{"some without", []Number{none, none, {5, 3}, none, {5, 4}}, 3 + 4*10},
		{"large", []Number{{1<<64 - 1, maxNumber}, {1<<64 - 1, 1}}, 3 + 18 + 10},
	} {
		var b Builder
		for _, n := range c.numbers {
			if err := b.AddNumbered("key", "", []byte("data"), Tags{}, n); err != nil {
				t.Fatal(err)
			}
		}
		payload := b.AppendContainer(nil)
		if len(payload) != b.Size() || b.numbers.size() != c.bytes {
			t.Errorf("%s: %d bytes, Size says %d; the field has %d, want %d", c.name, len(payload), b.Size(), b.numbers.size(), c.bytes)
		}
		var a Aggregate
		agree(t, &a, payload)
		if ok, err := a.Parse(payload); !ok {
			t.Fatal(err)
		}
		if got := numbersOf(&a); !slices.Equal(got, c.numbers) {
			t.Errorf("%s: got %v", c.name, got)
		}
		if a.Numbered() != (c.bytes > 0) {
			t.Errorf("%s: Numbered is %v", c.name, a.Numbered())
		}
	}
}

// A record alone is packed for its number.
func TestARecordAloneIsWrappedForItsNumber(t *testing.T) {
	t.Parallel()
	var b Builder
	if err := b.AddNumbered("key", "", []byte("data"), Tags{}, Number{1, 1}); err != nil {
		t.Fatal(err)
	}
	if !Marked(b.Append(nil)) {
		t.Error("it is not packed")
	}
	b.Reset()
	add(t, &b, sub{"key", "", "data"})
	if got := b.Append(nil); string(got) != "data" {
		t.Errorf("the next one is %q", got)
	}
}

// Random numbers come back, sizes are exact, and the limit is kept.
func TestRandomNumbers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := Builder{Limit: 100 + r.IntN(2000)}
		var want []Number
		at := map[uint64]uint64{}
		for {
			n := Number{Series: 1 + uint64(r.IntN(3))}
			switch r.IntN(6) {
			case 0:
				at[n.Series] += uint64(r.IntN(300))
			case 1:
				at[n.Series] = uint64(r.IntN(40))
			case 2:
				n = Number{}
			}
			if !n.IsZero() {
				at[n.Series]++
				n.N = at[n.Series]
			}
			data := []byte(strings.Repeat("d", r.IntN(20)))
			before := b.Size()
			err := b.AddNumbered("key", "", data, Tags{}, n)
			if errors.Is(err, ErrFull) {
				if b.Size() != before {
					t.Fatalf("seed %d: a refused record changed the size", seed)
				}
				limit := b.Limit
				b.Limit = 1 << 20
				if err := b.AddNumbered("key", "", data, Tags{}, n); err != nil || b.Size() <= limit {
					t.Fatalf("seed %d: refused, although it fits", seed)
				}
				want = append(want, n)
				break
			}
			if err != nil || b.Size() > b.Limit {
				t.Fatalf("seed %d: %v, %d bytes", seed, err, b.Size())
			}
			want = append(want, n)
		}
		payload := b.AppendContainer(nil)
		var a Aggregate
		if ok, err := a.Parse(payload); !ok || len(payload) != b.Size() {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got := numbersOf(&a); !slices.Equal(got, want) {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
	}
}

func TestDroppedRecordsDoNotMoveNumbers(t *testing.T) {
	t.Parallel()
	var b Builder
	for i, key := range []string{"0", "9999999999999999999", "0", "9999999999999999999"} {
		if err := b.AddNumbered("k", key, nil, Tags{}, Number{3, uint64(10 + i)}); err != nil {
			t.Fatal(err)
		}
	}
	var a Aggregate
	if ok, err := a.Parse(b.AppendContainer(nil)); !ok {
		t.Fatal(err)
	}
	if n := a.Keep(HashRange{Start: HashKey{Lo: 1}, End: FullRange.End}); n != 2 {
		t.Fatalf("dropped %d", n)
	}
	if got := numbersOf(&a); !slices.Equal(got, []Number{{3, 11}, {3, 13}}) {
		t.Errorf("got %v", got)
	}
}

// A consumer drops records by their numbers, so numbers that are not certain do not count.
func TestInvalidNumbersAreNone(t *testing.T) {
	t.Parallel()
	series := binary.LittleEndian.AppendUint64(nil, 5)
	run := func(head byte, rest ...byte) []byte { return slices.Concat([]byte{head}, series, rest) }
	for name, field := range map[string][]byte{
		"empty":                   {},
		"too few":                 run(3, 1),
		"too many":                run(7, 1),
		"no records":              run(1, 1),
		"cut in the series":       {5, 1, 2},
		"cut before the number":   run(5),
		"a head that is too long": bytes.Repeat([]byte{0xff}, 11),
		"number 0":                run(5, 0),
		"a large number":          run(5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
		"beyond the last number":  run(5, binary.AppendUvarint(nil, maxNumber)...),
		"a huge count":            slices.Concat([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, series, []byte{1}),
	} {
		var b Builder
		add(t, &b, sub{"a", "", "1"})
		add(t, &b, sub{"b", "", "2"})
		plain := b.AppendContainer(nil)
		message := plain[4 : len(plain)-16]
		payload := seal(message, appendVarint(appendVarint(nil, numbersTag), len(field)), field)
		var a Aggregate
		agree(t, &a, payload)
		if ok, err := a.Parse(payload); !ok || a.Len() != 2 || a.Numbered() {
			t.Errorf("%s: %v, %v", name, err, numbersOf(&a))
		}
	}
}
