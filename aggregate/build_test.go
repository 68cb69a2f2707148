package aggregate

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func add(tb testing.TB, b *Builder, records ...sub) {
	tb.Helper()
	for _, s := range records {
		if err := b.Add(s.key, s.hash, []byte(s.data)); err != nil {
			tb.Fatal(err)
		}
	}
}

func TestBuilderMakesVectors(t *testing.T) {
	t.Parallel()
	var b Builder // reused for all, so that remains of earlier records would be found
	for _, c := range []struct {
		name string
		subs []sub
		want []byte
	}{
		{"two records share a key", twoOfOneKeySubs, twoOfOneKey},
		{"explicit hash keys", []sub{{"a", "", "one"}, {"b", "0", "two"}}, seal([]byte{
			0x0a, 1, 'a', 0x0a, 1, 'b', 0x12, 1, '0',
			0x1a, 7, 0x08, 0, 0x1a, 3, 'o', 'n', 'e',
			0x1a, 9, 0x08, 1, 0x10, 0, 0x1a, 3, 't', 'w', 'o',
		})},
		{"a single record", singleSubs, single},
		{"nothing", nil, nil},
		{"two records again", twoOfOneKeySubs, twoOfOneKey},
	} {
		b.Reset()
		add(t, &b, c.subs...)
		got := b.AppendContainer(nil)
		if !bytes.Equal(got, c.want) {
			t.Errorf("%s: got %x, want %x", c.name, got, c.want)
		}
		if b.Size() != len(c.want) || b.Len() != len(c.subs) {
			t.Errorf("%s: size %d and %d records, want %d and %d", c.name, b.Size(), b.Len(), len(c.want), len(c.subs))
		}
	}
}

func TestBuilderAppendsToTheCallersBuffer(t *testing.T) {
	t.Parallel()
	var b Builder
	front := []byte("front")
	if got := b.Append(front); string(got) != "front" {
		t.Errorf("with no record: got %q", got)
	}
	if got := b.AppendContainer(front); string(got) != "front" {
		t.Errorf("with no record, wrapped: got %q", got)
	}
	add(t, &b, singleSubs...)
	if got := b.Append(front); string(got) != "frontone" {
		t.Errorf("one record is not wrapped unless asked: got %q", got)
	}
	if got := b.AppendContainer(front); !bytes.Equal(got, slices.Concat(front, single)) {
		t.Errorf("one record is wrapped when asked: got %x", got)
	}
	add(t, &b, sub{"a", "", "two"})
	if got := b.Append(front); !bytes.Equal(got, slices.Concat(front, twoOfOneKey)) {
		t.Errorf("two records are wrapped: got %x", got)
	}
	if got := b.Append(front); !bytes.Equal(got, slices.Concat(front, twoOfOneKey)) {
		t.Errorf("appending twice gives the same twice: got %x", got)
	}
	b.Reset()
	add(t, &b, sub{"a", "7", ""})
	if got := b.Append(front); string(got) != "front" {
		t.Errorf("one record without data: got %q", got)
	}
}

func TestBuilderCopiesData(t *testing.T) {
	t.Parallel()
	var b Builder
	data := []byte("one")
	for _, text := range []string{"one", "two"} {
		copy(data, text)
		if err := b.Add("a", "", data); err != nil {
			t.Fatal(err)
		}
	}
	copy(data, "xxx")
	if got := b.Append(nil); !bytes.Equal(got, twoOfOneKey) {
		t.Errorf("got %x", got)
	}
}

func TestBuilderKeepsItsLimit(t *testing.T) {
	t.Parallel()
	// The expected size is 20 for magic and checksum, 3 for the key, and for each record its data
	// and 6 more.
	for _, c := range []struct {
		name  string
		limit int
		size  int
		want  int
	}{
		{"exactly as many as fit", 20 + 3 + 5*(6+10), 10, 5},
		{"one byte less", 20 + 3 + 5*(6+10) - 1, 10, 4},
		{"room for one", 20 + 3 + 6 + 10, 10, 1},
		{"room for none", 20 + 3 + 6 + 10 - 1, 10, 0},
		{"lengths of two bytes", 20 + 3 + 2*(8+200), 200, 2},
		{"lengths of two bytes, one byte less", 20 + 3 + 2*(8+200) - 1, 200, 1},
		{"the record's length has two bytes, the data's one", 20 + 3 + 7 + 127, 127, 1},
		{"the record's length has two bytes, the data's one, one byte less", 20 + 3 + 7 + 127 - 1, 127, 0},
		{"no room for a container", 19, 0, 0},
		{"more than Parse accepts, with any limit", math.MaxInt, maxSize, 0},
		{"a negative limit", -1, 0, 0},
		{"a negative size", 1000, -1, 0},
		{"a size beyond all bounds", 1000, int(^uint(0) >> 1), 0},
	} {
		b := Builder{Limit: c.limit}
		for b.Fits("a", "", c.size) {
			if err := b.Add("a", "", make([]byte, c.size)); err != nil {
				t.Fatal(err)
			}
		}
		if b.Len() != c.want || b.Len() > 0 && b.Size() > c.limit {
			t.Errorf("%s: took %d records in %d bytes, want %d", c.name, b.Len(), b.Size(), c.want)
		}
		if c.size < 0 || c.size > 1000 {
			continue // such data cannot be allocated here
		}
		before := b.AppendContainer(nil)
		if err := b.Add("a", "", make([]byte, c.size)); !errors.Is(err, ErrFull) {
			t.Errorf("%s: one more: got %v, want ErrFull", c.name, err)
		}
		if !bytes.Equal(b.AppendContainer(nil), before) {
			t.Errorf("%s: a refused record left something", c.name)
		}
	}
}

func TestBuilderFillsToTheDefaultLimit(t *testing.T) {
	t.Parallel()
	var b Builder
	for b.Fits("key", "", 100) {
		add(t, &b, sub{"key", "", strings.Repeat("x", 100)})
	}
	if b.Size() > DefaultLimit || b.Size() < DefaultLimit-106 {
		t.Errorf("filled %d bytes of %d", b.Size(), DefaultLimit)
	}
	if b.Fits(strings.Repeat("k", DefaultLimit), "", 0) || b.Fits("k", strings.Repeat("1", DefaultLimit), 0) {
		t.Error("keys of the size of the limit fit")
	}
}

func TestALongSharedKeyFitsIntoLittleRoom(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("k", 100)
	b := Builder{Limit: 20 + 102 + 2*(6+10)}
	add(t, &b, sub{key, "", "0123456789"})
	if !b.Fits(key, "", 10) || b.Fits(key, "", 11) || b.Fits(key[1:], "", 0) {
		t.Errorf("Fits says %v, %v, %v", b.Fits(key, "", 10), b.Fits(key, "", 11), b.Fits(key[1:], "", 0))
	}
}

func TestBuilderRefusesKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, key, hash string
		want            string // "" if the keys are accepted
	}{
		{"an ordinary key", "order-1", "", ""},
		{"no key, as on streams that distribute records themselves", "", "", ""},
		{"256 characters", strings.Repeat("é", 256), "", ""},
		{"257 characters", strings.Repeat("é", 257), "", "has 257 characters"},
		{"not UTF-8", "a\xff", "", "not valid UTF-8"},
		{"the smallest hash key", "a", "0", ""},
		{"the largest hash key", "a", "340282366920938463463374607431768211455", ""},
		{"a hash key beyond 2^128-1", "a", "340282366920938463463374607431768211456", "not a decimal number"},
		{"a leading zero", "a", "01", "not a decimal number"},
		{"letters", "a", "1f", "not a decimal number"},
		{"a very long hash key", "a", strings.Repeat("1", 1000), "not a decimal number"},
	} {
		var b Builder
		err := b.Add(c.key, c.hash, []byte("data"))
		switch {
		case c.want == "" && (err != nil || b.Len() != 1):
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || errors.Is(err, ErrFull) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		case c.want != "" && (b.Len() != 0 || len(err.Error()) > 400):
			t.Errorf("%s: %d records, error %v", c.name, b.Len(), err)
		}
	}
}

func TestBuilderSharesKeys(t *testing.T) {
	t.Parallel()
	b := Builder{Limit: 1 << 20}
	var want []sub
	for i := range 3000 { // so many that row numbers take two bytes
		want = append(want, sub{fmt.Sprint("key", i%1000), fmt.Sprint(i % 150), fmt.Sprint("data", i)})
	}
	add(t, &b, want...)
	var a Aggregate
	if ok, err := a.Parse(b.Append(nil)); !ok {
		t.Fatal(err)
	}
	if !slices.Equal(subs(&a), want) {
		t.Error("the records are others after a round trip")
	}
	if len(a.keys) != 1000 || len(a.hashes) != 150 {
		t.Errorf("%d keys and %d hash keys, want 1000 and 150", len(a.keys), len(a.hashes))
	}
}

func TestBuildingAllocatesNothing(t *testing.T) {
	var b Builder
	keys, data, buf := []string{"a", "b", "c"}, make([]byte, 100), make([]byte, 0, DefaultLimit)
	allocs := testing.AllocsPerRun(20, func() {
		b.Reset()
		for i := range 100 {
			if err := b.Add(keys[i%3], "42", data); err != nil {
				t.Error(err)
			}
		}
		buf = b.Append(buf[:0])
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

// naiveContainer is a second encoder. It needs at most 128 records, with keys that Add accepts and
// short data.
func naiveContainer(records []sub) []byte {
	var keys, hashes []string
	row := func(table *[]string, s string) byte {
		if !slices.Contains(*table, s) {
			*table = append(*table, s)
		}
		return byte(slices.Index(*table, s))
	}
	bytesField := func(number byte, s string) []byte {
		if len(s) < 128 {
			return append([]byte{number<<3 | 2, byte(len(s))}, s...)
		}
		return append([]byte{number<<3 | 2, byte(len(s)) | 0x80, byte(len(s) >> 7)}, s...)
	}
	var encoded []byte
	for _, s := range records {
		r := []byte{0x08, row(&keys, s.key)}
		if s.hash != "" {
			r = append(r, 0x10, row(&hashes, s.hash))
		}
		encoded = append(encoded, bytesField(3, string(append(r, bytesField(3, s.data)...)))...)
	}
	var tables []byte
	for _, k := range keys {
		tables = append(tables, bytesField(1, k)...)
	}
	for _, h := range hashes {
		tables = append(tables, bytesField(2, h)...)
	}
	return seal(tables, encoded)
}

func FuzzBuild(f *testing.F) {
	f.Add(uint16(0), []byte("one"))
	f.Add(uint16(40), []byte("\x01\x02\x03one\x11\x22\x33two"))
	f.Add(uint16(9000), bytes.Repeat([]byte("\x04\x86\xfe and more"), 100))
	f.Fuzz(func(t *testing.T, limit uint16, script []byte) {
		b := Builder{Limit: int(limit)}
		var taken []sub
		for len(script) >= 3 && len(taken) < 128 {
			s := sub{key: strings.Repeat("k", int(script[0]%40)), data: string(script[:min(len(script), int(script[2]))])}
			if script[1] >= 64 {
				s.hash = fmt.Sprint(script[1] % 64)
			}
			script = script[3:]
			fits := b.Fits(s.key, s.hash, len(s.data))
			if err := b.Add(s.key, s.hash, []byte(s.data)); (err == nil) != fits || err != nil && !errors.Is(err, ErrFull) {
				t.Fatalf("Fits says %v, Add says %v", fits, err)
			}
			want := naiveContainer(append(slices.Clip(taken), s))
			if room := int(limit); fits != (len(want) <= room) && limit != 0 {
				t.Fatalf("Fits says %v for %d bytes of %d", fits, len(want), room)
			}
			if fits {
				taken = append(taken, s)
			}
		}
		got := b.AppendContainer(nil)
		if len(got) != b.Size() || b.Len() != len(taken) {
			t.Fatalf("%d bytes, Size says %d; %d records, Len says %d", len(got), b.Size(), len(taken), b.Len())
		}
		if len(taken) == 0 {
			if len(got) != 0 {
				t.Fatalf("nothing makes %x", got)
			}
			return
		}
		if want := naiveContainer(taken); !bytes.Equal(got, want) {
			t.Fatalf("got %x, want %x", got, want)
		}
		if alone := b.Append(nil); len(taken) == 1 && string(alone) != taken[0].data {
			t.Fatalf("one record alone is %q, want %q", alone, taken[0].data)
		}
		var a Aggregate
		if ok, err := a.Parse(got); !ok || !slices.Equal(subs(&a), taken) {
			t.Fatalf("%v: %q after a round trip, want %q", err, subs(&a), taken)
		}
	})
}
