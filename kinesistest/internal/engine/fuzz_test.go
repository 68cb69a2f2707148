package engine

import (
	"testing"
	"time"
)

// FuzzOpen opens forged or changed iterators and tokens. A sealer must accept only its own, and
// only as the kind that it created.
func FuzzOpen(f *testing.F) {
	s, err := newSealer()
	if err != nil {
		f.Fatal(err)
	}
	other, err := newSealer()
	if err != nil {
		f.Fatal(err)
	}
	issued := time.UnixMilli(1767323045006)
	f.Add("", uint8(1), uint64(1), uint32(2), uint64(3), "x", 5, byte(1))
	f.Add("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", uint8(2), uint64(0), uint32(0), ^uint64(0), "", 0, byte(0x80))
	f.Add("!", uint8(0), uint64(9), uint32(9), uint64(9), "shardId-000000000000", 40, byte(0xff))
	f.Fuzz(func(t *testing.T, made string, kind uint8, stream uint64, shard uint32, index uint64, text string, at int, flip byte) {
		k := ticketKind(kind%4) + iteratorTicket
		if _, ok := s.open(k, made); ok {
			t.Errorf("%q is taken", made)
		}
		want := ticket{kind: k, issued: issued, stream: stream, shard: shard, index: index, text: text}
		sealed := s.seal(want)
		if got, ok := s.open(k, sealed); !ok || got != want {
			t.Errorf("%+v came back as %+v, %v", want, got, ok)
		}
		if _, ok := s.open(k%4+1, sealed); ok {
			t.Error("it is taken for another use")
		}
		if _, ok := other.open(k, sealed); ok {
			t.Error("another server takes it")
		}
		changed := []byte(sealed)
		i := int(uint(at) % uint(len(changed)))
		if changed[i] ^= flip; flip != 0 {
			if _, ok := s.open(k, string(changed)); ok {
				t.Errorf("it is taken with another byte at %d", i)
			}
		}
		if _, ok := s.open(k, sealed[:i]); ok {
			t.Error("half of it is taken")
		}
	})
}

// FuzzSequence parses arbitrary sequence numbers.
func FuzzSequence(f *testing.F) {
	f.Add("49590338271490256608559692538361571095921575989136588898")
	f.Add("0")
	f.Add("-1")
	f.Add("99999999999999999999999999999999999999999999999999999999")
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := parseSequence(s); ok && n.String() != s {
			t.Errorf("%q is read as %s", s, n)
		}
	})
}
