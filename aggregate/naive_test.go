package aggregate

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"
)

// This is a second decoder that is obviously correct. It splits a message into lists of fields and
// then interprets these.

type field struct {
	number, wire uint64
	value        uint64 // for wire type 0
	bytes        []byte // for wire type 2
}

var errNaive = errors.New("malformed")

// fields parses b up to its end. Inside a group it parses up to the end of the group.
func fields(b []byte, group uint64, depth int) (all []field, rest []byte, err error) {
	take := func(n uint64) []byte {
		if n > uint64(len(b)) {
			err = errNaive
			return nil
		}
		taken := b[:n]
		b = b[n:]
		return taken
	}
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			err = errNaive
			return 0
		}
		b = b[n:]
		return v
	}
	for err == nil && len(b) > 0 {
		tag := number()
		f := field{number: tag >> 3, wire: tag & 7}
		if f.number < 1 || f.number > 1<<29-1 {
			return nil, nil, errNaive
		}
		switch f.wire {
		case 0:
			f.value = number()
		case 1:
			take(8)
		case 2:
			f.bytes = take(number())
		case 3:
			if depth == 0 {
				return nil, nil, errNaive
			}
			if _, b, err = fields(b, f.number, depth-1); err != nil {
				return nil, nil, err
			}
		case 4:
			if group == 0 || f.number != group {
				return nil, nil, errNaive
			}
			return all, b, nil
		case 5:
			take(4)
		default:
			return nil, nil, errNaive
		}
		all = append(all, f)
	}
	if group != 0 {
		err = errNaive
	}
	return all, nil, err
}

func naiveParse(payload []byte) (all []sub, ok bool, err error) {
	message, found := bytes.CutPrefix(payload, []byte{0xf3, 0x89, 0x9a, 0xc2})
	if !found {
		return nil, false, nil
	}
	if len(message) <= 16 {
		return nil, false, ErrShort
	}
	message, sum := message[:len(message)-16], message[len(message)-16:]
	hash := md5.New()
	hash.Write(message)
	if !bytes.Equal(hash.Sum(nil), sum) {
		return nil, false, ErrChecksum
	}
	if all, err = naiveMessage(message); err != nil {
		return nil, false, ErrMessage
	}
	return all, true, nil
}

func naiveMessage(message []byte) (all []sub, err error) {
	top, _, err := fields(message, 0, 100)
	if err != nil {
		return nil, err
	}
	tables := map[uint64][]string{}
	var records [][]field
	for _, f := range top {
		switch {
		case f.wire == 2 && (f.number == 1 || f.number == 2):
			tables[f.number] = append(tables[f.number], string(f.bytes))
		case f.wire == 2 && f.number == 3:
			r, _, err := fields(f.bytes, 0, 100)
			if err != nil {
				return nil, err
			}
			records = append(records, r)
		}
	}
	row := func(table uint64, f field) string {
		if f.value >= uint64(len(tables[table])) {
			err = errNaive
			return ""
		}
		return tables[table][f.value]
	}
	for _, r := range records {
		var s sub
		last := map[uint64]field{}
		for _, f := range r {
			switch {
			case f.wire == 0 && (f.number == 1 || f.number == 2), f.wire == 2 && f.number == 3:
				last[f.number] = f
			case f.wire == 2 && f.number == 4:
				tag, _, err := fields(f.bytes, 0, 100)
				if err != nil || !slices.ContainsFunc(tag, func(f field) bool { return f.number == 1 && f.wire == 2 }) {
					return nil, errNaive
				}
			}
		}
		key, hasKey := last[1]
		hash, hasHash := last[2]
		data, hasData := last[3]
		if !hasKey || !hasData {
			return nil, errNaive
		}
		s.key, s.data = row(1, key), string(data.bytes)
		if hasHash {
			s.hash = row(2, hash)
		}
		all = append(all, s)
	}
	return all, err
}

// naiveTags returns the tags of each record of a valid payload.
func naiveTags(payload []byte) (all []string) {
	top, _, _ := fields(payload[len(magic):len(payload)-md5.Size], 0, 100)
	for _, record := range top {
		if record.wire != 2 || record.number != 3 {
			continue
		}
		inside, _, _ := fields(record.bytes, 0, 100)
		tags := ""
		for _, f := range inside {
			if f.wire != 2 || f.number != 4 {
				continue
			}
			var pair [3]string
			parts, _, _ := fields(f.bytes, 0, 100)
			for _, part := range parts {
				if part.wire == 2 && part.number < 3 {
					pair[part.number] = string(part.bytes)
				}
			}
			tags += fmt.Sprintf("%q=%q ", pair[1], pair[2])
		}
		all = append(all, tags)
	}
	return all
}

// told formats tags in the same way as naiveTags.
func told(tags Tags) (s string) {
	for key, value := range tags.All() {
		s += fmt.Sprintf("%q=%q ", key, value)
	}
	return s
}

// naivePlace returns the hash key of s, or nil if it is invalid.
func naivePlace(s sub) *big.Int {
	if s.hash == "" {
		sum := md5.Sum([]byte(s.key))
		return new(big.Int).SetBytes(sum[:])
	}
	for _, digit := range []byte(s.hash) {
		if digit < '0' || digit > '9' {
			return nil
		}
	}
	n, ok := new(big.Int).SetString(s.hash, 10)
	if !ok || len(s.hash) > 39 || n.BitLen() > 128 {
		return nil
	}
	return n
}

func (k HashKey) big() *big.Int {
	n := new(big.Int).SetUint64(k.Hi)
	return n.Add(n.Lsh(n, 64), new(big.Int).SetUint64(k.Lo))
}

// agree fails the test if the results of Parse and Keep for payload differ from those of the naive
// decoder.
func agree(t *testing.T, a *Aggregate, payload []byte) {
	t.Helper()
	before := bytes.Clone(payload)
	want, wantOK, wantErr := naiveParse(payload)
	ok, err := a.Parse(payload)
	if ok != wantOK || !errors.Is(err, wantErr) {
		t.Fatalf("%x: got %v, %v, want %v, %v", payload, ok, err, wantOK, wantErr)
	}
	if got := subs(a); !slices.Equal(got, want) {
		t.Fatalf("%x: got %q, want %q", payload, got, want)
	}

	if ok {
		var tags []string
		for r := range a.All() {
			tags = append(tags, told(r.Tags()))
			if r.Tags().IsZero() != (tags[len(tags)-1] == "") {
				t.Fatalf("%x: IsZero of %q", payload, tags[len(tags)-1])
			}
		}
		if want := naiveTags(payload); !slices.Equal(tags, want) {
			t.Fatalf("%x: got tags %q, want %q", payload, tags, want)
		}
	}

	sum := md5.Sum(payload) // any two values can be the ends of a range
	r := HashRange{
		HashKey{binary.BigEndian.Uint64(sum[:]) >> 1, 0},
		HashKey{binary.BigEndian.Uint64(sum[8:]) | 1<<63, 0},
	}
	var kept []string
	for i, s := range want {
		place := naivePlace(s)
		if place == nil || place.Cmp(r.Start.big()) >= 0 && place.Cmp(r.End.big()) <= 0 {
			kept = append(kept, fmt.Sprint(i, s, naiveTags(payload)[i]))
		}
	}
	dropped := a.Keep(r)
	var got []string
	for r := range a.All() {
		got = append(got, fmt.Sprint(r.Sub(), sub{r.PartitionKey(), r.ExplicitHashKey(), string(r.Data())}, told(r.Tags())))
	}
	if !slices.Equal(got, kept) || dropped != len(want)-len(kept) {
		t.Fatalf("%x: in %v: got %q, dropped %d, want %q of %d", payload, r, got, dropped, kept, len(want))
	}
	if !bytes.Equal(payload, before) {
		t.Fatalf("%x was changed to %x", before, payload)
	}
}

func FuzzParse(f *testing.F) {
	for _, payload := range [][]byte{twoOfOneKey, withHashKeys, single, tablesLast} {
		f.Add(payload)
		f.Add(payload[len(magic) : len(payload)-md5.Size])
	}
	for _, c := range messages() {
		if len(c.message) < 1<<12 {
			f.Add(c.message)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var a Aggregate
		agree(t, &a, data)
		// A fuzzer cannot find a valid checksum. The test therefore adds one: to the data alone,
		// and to a message of some keys and the data.
		agree(t, &a, seal(data))
		agree(t, &a, seal([]byte{0x0a, 1, 'a', 0x0a, 2, 'b', 'c', 0x12, 1, '9', 0x12, 0}, data))
		agree(t, &a, data)
	})
}
