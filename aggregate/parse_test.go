package aggregate

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func TestParseTakesVectors(t *testing.T) {
	t.Parallel()
	var a Aggregate // reused for all, so that remains of an earlier payload would be found
	for _, c := range []struct {
		name string
		data []byte
		want []sub
	}{
		{"two records share a key", twoOfOneKey, twoOfOneKeySubs},
		{"explicit hash keys", withHashKeys, withHashKeysSubs},
		{"a single record", single, singleSubs},
		{"tables after the records", tablesLast, tablesLastSubs},
	} {
		if ok, err := a.Parse(c.data); !ok || err != nil {
			t.Errorf("%s: got %v, %v", c.name, ok, err)
		}
		if got := subs(&a); !slices.Equal(got, c.want) || a.Len() != len(c.want) {
			t.Errorf("%s: got %d: %q, want %q", c.name, a.Len(), got, c.want)
		}
		for i := range a.Len() {
			if a.Record(i).Sub() != uint32(i) {
				t.Errorf("%s: record %d has sub-sequence number %d", c.name, i, a.Record(i).Sub())
			}
		}
	}
}

func TestParseTellsPlainFromCorrupt(t *testing.T) {
	t.Parallel()
	badSum := bytes.Clone(twoOfOneKey)
	badSum[len(badSum)-1]++
	badMessage := bytes.Clone(twoOfOneKey)
	badMessage[len(magic)+2]++
	var a Aggregate
	for _, c := range []struct {
		name string
		data []byte
		want error
	}{
		{"no data", nil, nil},
		{"user data", []byte("hello, this is a record of more than twenty bytes"), nil},
		{"the magic but for its last byte", []byte(magic[:3]), nil},
		{"one bit of the magic differs", append([]byte{0xf2}, twoOfOneKey[1:]...), nil},
		{"the magic not at the start", append([]byte{0}, twoOfOneKey...), nil},
		{"the magic alone", []byte(magic), ErrShort},
		{"the magic and 15 bytes", twoOfOneKey[:len(magic)+15], ErrShort},
		{"the magic and the checksum of nothing", seal(), ErrShort},
		{"the magic and 17 bytes of something else", twoOfOneKey[:len(magic)+17], ErrChecksum},
		{"the last byte is missing", twoOfOneKey[:len(twoOfOneKey)-1], ErrChecksum},
		{"one byte too many", append(bytes.Clone(twoOfOneKey), 0), ErrChecksum},
		{"one bit of the checksum differs", badSum, ErrChecksum},
		{"one bit of the message differs", badMessage, ErrChecksum},
		{"a sealed byte that is not a message", seal([]byte{0x0a}), ErrMessage},
	} {
		if ok, err := a.Parse(single); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if ok, err := a.Parse(c.data); ok || !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, %v, want false, %v", c.name, ok, err, c.want)
		}
		if a.Len() != 0 || subs(&a) != nil {
			t.Errorf("%s: %d records are left", c.name, a.Len())
		}
	}
}

// judged is a message with its expected result.
type judged struct {
	name    string
	message []byte
	sound   bool
	want    []sub
}

// Each message gets the right checksum, so that the result only depends on the message.
func TestParseJudgesMessages(t *testing.T) {
	t.Parallel()
	for _, c := range messages() {
		var a Aggregate
		ok, err := a.Parse(seal(c.message))
		if ok != c.sound || (err == nil) != c.sound || (err != nil && !errors.Is(err, ErrMessage)) {
			t.Errorf("%s: got %v, %v, want %v", c.name, ok, err, c.sound)
		}
		if got := subs(&a); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func messages() []judged {
	var (
		keyA   = []byte{0x0a, 1, 'a'}
		keyB   = []byte{0x0a, 1, 'b'}
		hash7  = []byte{0x12, 1, '7'}
		one    = []byte{0x1a, 7, 0x08, 0, 0x1a, 3, 'o', 'n', 'e'}
		hashed = []byte{0x1a, 6, 0x08, 0, 0x10, 0, 0x1a, 0}
		oneOfA = []sub{{"a", "", "one"}}
		huge   = []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}       // 2^63-1
		most   = []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01} // 2^64-1
		// This number does not fit into 64 bits.
		over = []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}
		long = []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}
	)
	record := func(fields ...[]byte) []byte {
		all := slices.Concat(fields...)
		return append([]byte{0x1a, byte(len(all))}, all...)
	}
	groups := func(depth int) []byte {
		return append(bytes.Repeat([]byte{0x2b}, depth), bytes.Repeat([]byte{0x2c}, depth)...)
	}
	index, data := []byte{0x08, 0}, []byte{0x1a, 3, 'o', 'n', 'e'}
	return []judged{
		{"keys without records hold nothing", keyA, true, nil},
		{"a record before its key", slices.Concat(one, keyA), true, oneOfA},
		{"a record between two keys, of which it needs the second", slices.Concat(keyA, record([]byte{0x08, 1}, data), keyB), true, []sub{{"b", "", "one"}}},
		{"equal keys twice in the table", slices.Concat(keyA, keyA, record([]byte{0x08, 1}, data)), true, oneOfA},
		{"an empty key", slices.Concat([]byte{0x0a, 0}, one), true, []sub{{"", "", "one"}}},
		{"a key that is not UTF-8", slices.Concat([]byte{0x0a, 1, 0xff}, one), true, []sub{{"\xff", "", "one"}}},
		{"empty data", slices.Concat(keyA, record(index, []byte{0x1a, 0})), true, []sub{{"a", "", ""}}},
		{"an empty hash key", slices.Concat(keyA, []byte{0x12, 0}, hashed), true, []sub{{"a", "", ""}}},
		{"data before the index", slices.Concat(keyA, record(data, index)), true, oneOfA},
		{"a tag", slices.Concat(keyA, record(index, data, []byte{0x22, 3, 0x0a, 1, 't'})), true, oneOfA},
		{"a tag with a value", slices.Concat(keyA, record(index, data, []byte{0x22, 6, 0x0a, 1, 't', 0x12, 1, 'v'})), true, oneOfA},
		{"the last index of two counts", slices.Concat(keyA, record([]byte{0x08, 9}, index, data)), true, oneOfA},
		{"the last data of two count", slices.Concat(keyA, record(index, []byte{0x1a, 1, 'x'}, data)), true, oneOfA},
		{"an index in ten bytes", slices.Concat(keyA, record([]byte{0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}, data)), true, oneOfA},
		{"unknown fields everywhere", slices.Concat(
			[]byte{0x28, 5}, keyA, []byte{0x2d, 1, 2, 3, 4}, []byte{0x29, 1, 2, 3, 4, 5, 6, 7, 8},
			record([]byte{0x2a, 2, 9, 9}, index, data, []byte{0x2b, 0x08, 1, 0x33, 0x34, 0x2c}),
			[]byte{0xaa, 0x06, 1, 9}), true, oneOfA},
		{"a known number with a wrong type is an unknown field", slices.Concat([]byte{0x08, 1}, keyA, record(index, data, []byte{0x0a, 1, 0}), []byte{0x19, 1, 2, 3, 4, 5, 6, 7, 8}), true, oneOfA},
		{"an unknown number of 2^64-1", slices.Concat([]byte{0x28}, most, keyA, one), true, oneOfA},
		{"groups as deep as allowed", slices.Concat(keyA, groups(maxDepth), one), true, oneOfA},
		{"the largest field number", slices.Concat([]byte{0xf8, 0xff, 0xff, 0xff, 0x0f, 1}, keyA, one), true, oneOfA},

		{"no key", one, false, nil},
		{"an index beyond the keys", slices.Concat(keyA, record([]byte{0x08, 1}, data)), false, nil},
		{"an index beyond the keys after a good record", slices.Concat(keyA, one, record([]byte{0x08, 1}, data)), false, nil},
		{"a hash index without hash keys", slices.Concat(keyA, hashed), false, nil},
		{"a hash index beyond the hash keys", slices.Concat(keyA, hash7, record(index, []byte{0x10, 1}, data)), false, nil},
		{"a hash index of 2^64-1", slices.Concat(keyA, hash7, record(index, []byte{0x10}, most, data)), false, nil},
		{"a key index of 2^64-1", slices.Concat(keyA, record([]byte{0x08}, most, data)), false, nil},
		{"a key index of 2^31-1", slices.Concat(keyA, record([]byte{0x08, 0xff, 0xff, 0xff, 0xff, 0x07}, data)), false, nil},
		{"a key index of 2^32, which is 0 in 32 bits", slices.Concat(keyA, record([]byte{0x08, 0x80, 0x80, 0x80, 0x80, 0x10}, data)), false, nil},
		{"an index of more than 64 bits", slices.Concat(keyA, record([]byte{0x08}, over, data)), false, nil},
		{"an index of eleven bytes", slices.Concat(keyA, record([]byte{0x08}, long, data)), false, nil},
		{"an index of the wrong type", slices.Concat(keyA, record([]byte{0x0a, 1, 0}, data)), false, nil},
		{"a record without an index", slices.Concat(keyA, record(data)), false, nil},
		{"a record without data", slices.Concat(keyA, record(index)), false, nil},
		{"an empty record", slices.Concat(keyA, record()), false, nil},
		{"data longer than its record", slices.Concat(keyA, record(index, []byte{0x1a, 4, 'o', 'n', 'e'}), keyB), false, nil},
		{"a record longer than the message", slices.Concat(keyA, []byte{0x1a, 8}, one[2:]), false, nil},
		{"a key of 2^63-1 bytes", slices.Concat([]byte{0x0a}, huge, one), false, nil},
		{"data of 2^64-1 bytes", slices.Concat(keyA, record(index, []byte{0x1a}, most)), false, nil},
		{"an unknown field of 2^64-1 bytes", slices.Concat(keyA, one, []byte{0x2a}, most), false, nil},
		{"a tag field without its key", slices.Concat(keyA, record(index, data, []byte{0x22, 3, 0x12, 1, 'v'})), false, nil},
		{"an empty tag field", slices.Concat(keyA, record(index, data, []byte{0x22, 0})), false, nil},
		{"a tag field that is cut short", slices.Concat(keyA, record(index, data, []byte{0x22, 2, 0x0a, 1})), false, nil},
		{"a tag field longer than its record", slices.Concat(keyA, record(index, data, []byte{0x22, 3, 0x0a, 1})), false, nil},
		{"a tag field whose key has the wrong type", slices.Concat(keyA, record(index, data, []byte{0x22, 2, 0x08, 1})), false, nil},
		{"a tag field that runs into the data", slices.Concat(keyA, record(index, []byte{0x22, 2, 0x0a, 5}, data)), false, nil},
		{"a key longer than the message", slices.Concat(keyA, one, []byte{0x0a, 2, 'b'}), false, nil},
		{"an unknown number of more than 64 bits", slices.Concat([]byte{0x28}, over, keyA, one), false, nil},
		{"half a tag at the end", slices.Concat(keyA, one, []byte{0x80}), false, nil},
		{"half a tag at the end of a record", slices.Concat(keyA, record(index, data, []byte{0x80})), false, nil},
		{"half an index at the end of a record", slices.Concat(keyA, record(data, []byte{0x08, 0x80})), false, nil},
		{"half a length at the end", slices.Concat(keyA, one, []byte{0x1a, 0x80}), false, nil},
		{"half a varint at the end", slices.Concat(keyA, one, []byte{0x28, 0x80}), false, nil},
		{"a tag without a value at the end", slices.Concat(keyA, one, []byte{0x28}), false, nil},
		{"half a fixed number at the end", slices.Concat(keyA, one, []byte{0x2d, 1, 2, 3}), false, nil},
		{"half a fixed number in a record", slices.Concat(keyA, record(index, data, []byte{0x29, 1, 2, 3, 4}), one), false, nil},
		{"field number 0", slices.Concat(keyA, one, []byte{0x00, 1}), false, nil},
		{"a field number of 30 bits", slices.Concat(keyA, one, []byte{0x80, 0x80, 0x80, 0x80, 0x10, 1}), false, nil},
		{"wire type 6", slices.Concat(keyA, one, []byte{0x2e}), false, nil},
		{"wire type 7", slices.Concat(keyA, one, []byte{0x2f}), false, nil},
		{"the end of a group without a start", slices.Concat(keyA, one, []byte{0x2c}), false, nil},
		{"a group without an end", slices.Concat(keyA, one, []byte{0x2b, 0x08, 1}), false, nil},
		{"a group that the record ends", slices.Concat(keyA, record(index, data, []byte{0x2b}), []byte{0x2c}), false, nil},
		{"a group that another number ends", slices.Concat(keyA, one, []byte{0x2b, 0x34}), false, nil},
		{"groups deeper than allowed", slices.Concat(keyA, groups(maxDepth+1), one), false, nil},
		{"groups that would overflow a stack", slices.Concat(keyA, groups(1<<16), one), false, nil},
	}
}

func TestParseRefusesWhatOffsetsCannotReach(t *testing.T) {
	t.Parallel()
	var a Aggregate
	if ok, err := a.parse(single, len(single)); !ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := a.parse(single, len(single)-1); ok || err != nil || a.Len() != 0 {
		t.Error(ok, err, a.Len())
	}
}

func TestRecordsAliasThePayload(t *testing.T) {
	t.Parallel()
	data := bytes.Clone(withHashKeys)
	var a Aggregate
	if ok, _ := a.Parse(data); !ok {
		t.Fatal("not an aggregate")
	}
	within := func(p *byte, n int) bool {
		start, at := uintptr(unsafe.Pointer(&data[0])), uintptr(unsafe.Pointer(p))
		return at >= start && at+uintptr(n) <= start+uintptr(len(data))
	}
	for r := range a.All() {
		d, k, h := r.Data(), r.PartitionKey(), r.ExplicitHashKey()
		if !within(unsafe.SliceData(d), len(d)) || !within(unsafe.StringData(k), len(k)) {
			t.Errorf("record %d is a copy", r.Sub())
		}
		if h != "" && !within(unsafe.StringData(h), len(h)) {
			t.Errorf("the hash key of record %d is a copy", r.Sub())
		}
		if cap(d) != len(d) {
			t.Errorf("appending to the data of record %d overwrites the payload", r.Sub())
		}
	}
	a.Reset()
	if a.Len() != 0 || a.msg != nil {
		t.Error("Reset holds on to the payload")
	}
}

func TestAllStopsWhenAsked(t *testing.T) {
	t.Parallel()
	var a Aggregate
	if ok, _ := a.Parse(withHashKeys); !ok {
		t.Fatal("not an aggregate")
	}
	seen := 0
	for range a.All() {
		if seen++; seen == 2 {
			break
		}
	}
	if seen != 2 {
		t.Errorf("saw %d records, want 2", seen)
	}
}

func TestTablesOfAFreakPayloadAreNotKept(t *testing.T) {
	t.Parallel()
	// An empty key takes only two bytes, so a table of empty keys has the most rows per byte.
	freak := seal([]byte(strings.Repeat("\x0a\x00", 4*keptRows)), []byte{0x1a, 4, 0x08, 0, 0x1a, 0})
	var a Aggregate
	if ok, err := a.Parse(freak); !ok {
		t.Fatal(err)
	}
	if got := subs(&a); !slices.Equal(got, []sub{{}}) {
		t.Errorf("got %q", got)
	}
	if ok, err := a.Parse(single); !ok || cap(a.keys) > keptRows {
		t.Errorf("%v, %v; %d rows are kept, at most %d are allowed", ok, err, cap(a.keys), keptRows)
	}
}
