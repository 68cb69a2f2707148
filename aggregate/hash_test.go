package aggregate

import (
	"fmt"
	"slices"
	"testing"
)

func TestParseHashKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want HashKey
		ok   bool
	}{
		{"0", HashKey{}, true},
		{"42", HashKey{0, 42}, true},
		{"007", HashKey{0, 7}, true},
		{"18446744073709551615", HashKey{0, 1<<64 - 1}, true},
		{"18446744073709551616", HashKey{1, 0}, true},
		{"170141183460469231731687303715884105728", HashKey{1 << 63, 0}, true},
		{"340282366920938463463374607431768211455", HashKey{1<<64 - 1, 1<<64 - 1}, true},
		{"340282366920938463463374607431768211456", HashKey{}, false},
		{"340282366920938463463374607431768211460", HashKey{}, false},
		{"999999999999999999999999999999999999999", HashKey{}, false},
		{"0340282366920938463463374607431768211455", HashKey{}, false}, // has 40 digits
		{"", HashKey{}, false},
		{"-1", HashKey{}, false},
		{"+1", HashKey{}, false},
		{" 1", HashKey{}, false},
		{"1 ", HashKey{}, false},
		{"1e3", HashKey{}, false},
		{"0x10", HashKey{}, false},
		{"/", HashKey{}, false}, // the character before '0'
		{":", HashKey{}, false}, // the character after '9'
		{"\xff", HashKey{}, false},
	} {
		if got, ok := parseHashKey(c.text); ok != c.ok || ok && got != c.want {
			t.Errorf("%q: got %v, %v, want %v, %v", c.text, got, ok, c.want, c.ok)
		}
	}
}

func TestHashKeyOfARecord(t *testing.T) {
	t.Parallel()
	// The MD5 sums of "a" and "" are test vectors of RFC 1321.
	ofA := HashKey{0x0cc175b9c0f1b6a8, 0x31c399e269772661}
	ofNothing := HashKey{0xd41d8cd98f00b204, 0xe9800998ecf8427e}
	for _, c := range []struct {
		name string
		sub  sub
		want HashKey
		ok   bool
	}{
		{"the partition key decides", sub{key: "a"}, ofA, true},
		{"an empty partition key has a place too", sub{key: ""}, ofNothing, true},
		{"the explicit hash key goes first", sub{key: "a", hash: "42"}, HashKey{0, 42}, true},
		{"an unreadable explicit hash key has no place", sub{key: "a", hash: "x"}, HashKey{}, false},
	} {
		var a Aggregate
		if ok, err := a.Parse(sealed(c.sub)); !ok {
			t.Fatal(err)
		}
		if got, ok := a.Record(0).HashKey(); got != c.want || ok != c.ok {
			t.Errorf("%s: got %x, %v, want %x, %v", c.name, got, ok, c.want, c.ok)
		}
	}
	var a Aggregate
	emptyHash := seal([]byte{0x0a, 1, 'a', 0x12, 0, 0x1a, 6, 0x08, 0, 0x10, 0, 0x1a, 0})
	if ok, err := a.Parse(emptyHash); !ok {
		t.Fatal(err)
	}
	if got, ok := a.Record(0).HashKey(); got != ofA || !ok {
		t.Errorf("an empty explicit hash key is none: got %x, %v, want %x", got, ok, ofA)
	}
}

// sealed returns the payload of records that each have their own rows.
func sealed(records ...sub) []byte {
	msg := []byte{0x28, 1} // an unknown field, so that a message without records is not empty
	for i, s := range records {
		msg = append(append(msg, 0x0a, byte(len(s.key))), s.key...)
		msg = append(append(msg, 0x12, byte(len(s.hash))), s.hash...)
		record := []byte{0x08, byte(i)}
		if s.hash != "" {
			record = append(record, 0x10, byte(i))
		}
		record = append(append(record, 0x1a, byte(len(s.data))), s.data...)
		msg = append(append(msg, 0x1a, byte(len(record))), record...)
	}
	return seal(msg)
}

func TestKeep(t *testing.T) {
	t.Parallel()
	at := func(places ...string) (all []sub) {
		for i, p := range places {
			all = append(all, sub{"k", p, fmt.Sprint(i)})
		}
		return all
	}
	tens := HashRange{HashKey{0, 10}, HashKey{0, 19}}
	// "a" hashes to 0x0c..., and "b" hashes to 0x92...
	lower := HashRange{HashKey{}, HashKey{1<<63 - 1, 1<<64 - 1}}
	upper := HashRange{HashKey{1 << 63, 0}, FullRange.End}
	for _, c := range []struct {
		name    string
		records []sub
		shard   HashRange
		want    []uint32
	}{
		{"both ends belong to the range", at("9", "10", "15", "19", "20"), tens, []uint32{1, 2, 3}},
		{"a stray in the middle costs only itself", at("10", "99", "11"), tens, []uint32{0, 2}},
		{"all inside", at("10", "11"), tens, []uint32{0, 1}},
		{"all outside", at("1", "2"), tens, nil},
		{"no records", nil, tens, nil},
		{"the whole space drops nothing", at("0", "340282366920938463463374607431768211455"), FullRange, []uint32{0, 1}},
		{"the high word decides first", at("18446744073709551631"), tens, nil}, // 2^64+15
		{"unreadable hash keys stay", at("x", "340282366920938463463374607431768211456", "5"), tens, []uint32{0, 1}},
		{"partition keys in the lower half", []sub{{"a", "", ""}, {"b", "", ""}, {"a", "", ""}}, lower, []uint32{0, 2}},
		{"partition keys in the upper half", []sub{{"a", "", ""}, {"b", "", ""}, {"a", "", ""}}, upper, []uint32{1}},
		{"one key, with and without a hash key", []sub{{"a", "", ""}, {"a", "340282366920938463463374607431768211455", ""}, {"a", "", ""}}, upper, []uint32{1}},
		{"an empty range", at("0", "10"), HashRange{HashKey{0, 11}, HashKey{0, 9}}, nil},
	} {
		var a Aggregate
		if ok, err := a.Parse(sealed(c.records...)); !ok {
			t.Fatal(c.name, err)
		}
		// The second call must keep all remaining records.
		for round, want := range []int{len(c.records) - len(c.want), 0} {
			if dropped := a.Keep(c.shard); dropped != want {
				t.Errorf("%s: round %d: dropped %d, want %d", c.name, round, dropped, want)
			}
			var got []uint32
			for r := range a.All() {
				got = append(got, r.Sub())
				if s := c.records[r.Sub()]; string(r.Data()) != s.data || r.PartitionKey() != s.key || r.ExplicitHashKey() != s.hash {
					t.Errorf("%s: sub-record %d has another's content", c.name, r.Sub())
				}
			}
			if !slices.Equal(got, c.want) || a.Len() != len(c.want) {
				t.Errorf("%s: round %d: kept %v of length %d, want %v", c.name, round, got, a.Len(), c.want)
			}
		}
	}
}

func TestKeepTellsRecordsOfOneKeyApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		shard HashRange
		want  []sub
	}{
		{"only the explicit hash key 42", HashRange{HashKey{0, 42}, HashKey{0, 42}}, withHashKeysSubs[1:2]},
		{"only the explicit hash key 0", HashRange{HashKey{0, 0}, HashKey{0, 41}}, withHashKeysSubs[2:]},
		{"only the partition key", HashRange{HashKey{0x0c << 56, 0}, HashKey{0x0d << 56, 0}}, withHashKeysSubs[:1]},
	} {
		var a Aggregate
		if ok, err := a.Parse(withHashKeys); !ok {
			t.Fatal(err)
		}
		if dropped := a.Keep(c.shard); dropped != 2 || !slices.Equal(subs(&a), c.want) {
			t.Errorf("%s: dropped %d, kept %q, want %q", c.name, dropped, subs(&a), c.want)
		}
	}
}

func TestKeepTellsKeysOfOneEmptyHashKeyApart(t *testing.T) {
	t.Parallel()
	var a Aggregate
	if ok, err := a.Parse(seal([]byte{
		0x0a, 1, 'a', 0x0a, 1, 'b', 0x12, 0,
		0x1a, 6, 0x08, 0, 0x10, 0, 0x1a, 0,
		0x1a, 6, 0x08, 1, 0x10, 0, 0x1a, 0,
	})); !ok {
		t.Fatal(err)
	}
	if dropped := a.Keep(HashRange{HashKey{1 << 63, 0}, FullRange.End}); dropped != 1 || a.Len() != 1 || a.Record(0).PartitionKey() != "b" {
		t.Errorf("dropped %d, kept %q, want only b", dropped, subs(&a))
	}
}
