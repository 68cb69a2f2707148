package repeats

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// The text of a set is "1/position/base64". The bytes contain the minute of the newest record, and
// then the series, the newest first. A series has its ID (8 bytes), the minutes between it and the
// series before it in the text, the number of spans, and the spans in descending order. A span has
// its distance to the span before it in the text, and the difference of its ends. The first span
// has its end instead of a distance. All numbers except the ID are varints.
const format = "1/"

// encode returns the text of the set at a position. If it does not fit into [lease.Lease.Numbers],
// encode leaves out the lowest spans of each series, and then the oldest series.
func (s *set) encode(at shard.Position) string {
	if len(s.all) == 0 {
		return ""
	}
	head := format + at.String() + "/"
	room := base64.RawURLEncoding.DecodedLen(lease.MaxNumbersBytes - len(head))
	var b []byte
	for spans := mostSpans; spans > 0; spans /= 2 {
		if b = s.bytes(spans, room); b != nil {
			break
		}
	}
	if b == nil {
		b = s.bytesOfNewest(room)
	}
	return head + base64.RawURLEncoding.EncodeToString(b)
}

// bytes encodes all series with at most the given number of spans each. It returns nil if that does
// not fit.
func (s *set) bytes(spans, room int) []byte {
	minute := s.newest()
	b := binary.AppendUvarint(nil, uint64(minute))
	for _, one := range slices.Backward(s.all) {
		if b, minute = one.appendTo(b, minute, spans); len(b) > room {
			return nil
		}
	}
	return b
}

// bytesOfNewest encodes as many series as fit, with one span each.
func (s *set) bytesOfNewest(room int) []byte {
	minute := s.newest()
	b := binary.AppendUvarint(nil, uint64(minute))
	for _, one := range slices.Backward(s.all) {
		more, before := one.appendTo(b, minute, 1)
		if len(more) > room {
			break
		}
		b, minute = more, before
	}
	return b
}

// newest returns the latest minute of all series. Series are in the order of reading, and arrival
// times may be slightly out of order.
func (s *set) newest() (minute int64) {
	for i := range s.all {
		minute = max(minute, s.all[i].minute)
	}
	return minute
}

func (s *series) appendTo(b []byte, minute int64, spans int) ([]byte, int64) {
	b = binary.LittleEndian.AppendUint64(b, s.id)
	own := min(s.minute, minute)
	b = binary.AppendUvarint(b, uint64(minute-own))
	kept := s.spans[max(0, len(s.spans)-spans):]
	b = binary.AppendUvarint(b, uint64(len(kept)))
	next := uint64(0) // the end of the first span is absolute
	for i, of := range slices.Backward(kept) {
		if i == len(kept)-1 {
			b = binary.AppendUvarint(b, of.to)
		} else {
			b = binary.AppendUvarint(b, next-of.to)
		}
		b = binary.AppendUvarint(b, of.to-of.from)
		next = of.from
	}
	return b, own
}

// parse reads a text. ok is false if it is not a text of this version.
func parse(text string) (at shard.Position, all []series, ok bool) {
	rest, found := strings.CutPrefix(text, format)
	position, body, cut := strings.Cut(rest, "/")
	if !found || !cut || len(text) > lease.MaxNumbersBytes {
		return at, nil, false
	}
	at, err := shard.Parse(position)
	if err != nil {
		return at, nil, false
	}
	b, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return at, nil, false
	}
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > 1<<62 {
			ok, b = false, nil
			return 0
		}
		b = b[n:]
		return v
	}
	ok = true
	minute := number()
	for ok && len(b) > 0 {
		if len(b) < 8 || len(all) == mostSeries {
			return at, nil, false
		}
		s := series{id: binary.LittleEndian.Uint64(b)}
		b = b[8:]
		before, spans := number(), number()
		if before > minute || spans > mostSpans || s.id == 0 {
			return at, nil, false
		}
		minute -= before
		s.minute = int64(minute)
		next := uint64(0)
		for i := range spans {
			to, size := number(), number()
			if i > 0 {
				if to < 2 || to >= next {
					return at, nil, false
				}
				to = next - to
			}
			if size >= to {
				return at, nil, false
			}
			s.spans = append(s.spans, span{to - size, to})
			next = to - size
		}
		slices.Reverse(s.spans)
		all = append(all, s)
	}
	if !ok {
		return at, nil, false
	}
	slices.Reverse(all)
	return at, all, true
}
