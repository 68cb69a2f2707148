package engine

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// The numbers come from AWS's documentation, which also states the shard and the arrival of each.
func TestSequenceNumbersOfTheRealService(t *testing.T) {
	for text, want := range map[string]struct {
		shard   uint32
		arrival uint64
	}{
		"49590338271490256608559692538361571095921575989136588898": {6, 1545084650},
		"49590338271490256608559692540925702759324208523137515618": {6, 1545084711},
	} {
		s, ok := parseSequence(text)
		if !ok {
			t.Errorf("%s is refused", text)
			continue
		}
		if off := int64(s.arrival - want.arrival); s.shard != want.shard || off < -2 || off > 2 {
			t.Errorf("%s: shard %d, arrival %d (%+d), index %x", text, s.shard, s.arrival, off, s.index)
		}
		if got := s.String(); got != text {
			t.Errorf("%s came back as %s", text, got)
		}
	}
}

func TestSequenceLayout(t *testing.T) {
	s := sequence{created: 0x123456789, index: 0x0102030405060708, arrival: 0xabcdef012, shard: 0xfedcba98}
	n, _ := new(big.Int).SetString(s.String(), 10)
	//             2 created   ^ index            00 arrival  shard    2
	want := "2" + "123456789" + "8" + "0102030405060708" + "00" + "abcdef012" + "fedcba98" + "2"
	if got := fmt.Sprintf("%x", n); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		s := sequence{created: rng.Uint64() & bits36, index: rng.Uint64(), arrival: rng.Uint64() & bits36, shard: rng.Uint32()}
		if back, ok := parseSequence(s.String()); !ok || back != s {
			t.Fatalf("%+v came back as %+v, %v", s, back, ok)
		}
	}
	good := sequence{created: 1.6e9, index: 5, arrival: 1.6e9, shard: 3}.String()
	for _, bad := range []string{"", "0", "1", "-" + good, "0" + good, good + "0", good[:55], good[:55] + "x", strings.Repeat("9", 56), strings.Repeat("9", 57), strings.Repeat("9", 200)} {
		if s, ok := parseSequence(bad); ok {
			t.Errorf("%q is taken for %+v", bad, s)
		}
	}
}

func TestSequenceNumbersGrow(t *testing.T) {
	less := func(a, b sequence) {
		t.Helper()
		if x, y := a.String(), b.String(); len(x) != 56 || len(y) != 56 || x >= y {
			t.Errorf("%s (%+v) is not below %s (%+v)", x, a, y, b)
		}
	}
	const now = 1_700_000_000
	less(sequence{now, 0, now, 1}, sequence{now, 1, now, 1})
	less(sequence{now, 1, now + 100, 1}, sequence{now, 2, now, 1})
	less(sequence{now, 1 << 40, now, 1}, sequence{now, closingIndex, now, 1})
	less(sequence{now, closingIndex, now, 200}, sequence{now + 1, 0, now, 201})
	less(sequence{now, closingIndex, now, 15}, sequence{now + 1, 0, now, 16})
}

func TestTicketsAreTamperSafe(t *testing.T) {
	s, err := newSealer()
	if err != nil {
		t.Fatal(err)
	}
	other, err := newSealer()
	if err != nil {
		t.Fatal(err)
	}
	want := ticket{kind: iteratorTicket, issued: time.UnixMilli(1234567), stream: 7, shard: 9, index: 1 << 50, text: "x"}
	sealed := s.seal(want)
	if got, ok := s.open(iteratorTicket, sealed); !ok || got != want {
		t.Errorf("opened as %+v, %v", got, ok)
	}
	if again := s.seal(want); again == sealed {
		t.Error("two tickets look alike")
	}
	if _, ok := s.open(shardsTicket, sealed); ok {
		t.Error("a ticket was taken for one of another kind")
	}
	if _, ok := other.open(iteratorTicket, sealed); ok {
		t.Error("a ticket of another server was taken")
	}
	for i := range sealed {
		for bit := range 7 {
			changed := []byte(sealed)
			changed[i] ^= 1 << bit
			if got, ok := s.open(iteratorTicket, string(changed)); ok {
				t.Fatalf("bit %d of character %d was changed and it opened as %+v", bit, i, got)
			}
		}
		if _, ok := s.open(iteratorTicket, sealed[:i]); ok {
			t.Fatalf("it opened when cut to %d characters", i)
		}
	}
}

func TestHashKeys(t *testing.T) {
	for _, s := range []string{"0", "1", "18446744073709551615", "18446744073709551616", "340282366920938463463374607431768211455"} {
		h, ok := parseHashKey(s)
		if !ok || h.String() != s {
			t.Errorf("%s came back as %s, %v", s, h, ok)
		}
		if h != maxHashKey && h.next().prev() != h {
			t.Errorf("%s: next and prev differ", s)
		}
	}
	for _, s := range []string{"340282366920938463463374607431768211456", "-1", "", "x"} {
		if h, ok := parseHashKey(s); ok {
			t.Errorf("%q is taken for %s", s, h)
		}
	}
	// MD5 of "abc" is 900150983cd24fb0d6963f7d28e17f72.
	if got := hashOf("abc"); got != (hashKey{0x900150983cd24fb0, 0xd6963f7d28e17f72}) {
		t.Errorf("got %x", got)
	}
}

func TestBordersToMove(t *testing.T) {
	for _, tc := range []struct{ have, want, splits, merges int }{
		{1, 1, 0, 0},
		{1, 2, 1, 0},
		{2, 4, 2, 0},
		{4, 2, 0, 2},
		{2, 3, 2, 1},
		{3, 2, 1, 2},
		{3, 6, 3, 0}, // although floor(2^128/3) is not twice floor(2^128/6)
		{6, 3, 0, 3},
		{1000, 2000, 1000, 0},
		{999, 1998, 999, 0},
		{7, 7, 0, 0},
	} {
		splits, merges := bordersToMove(uniformStarts(tc.have), uniformStarts(tc.want))
		if len(splits) != tc.splits || len(merges) != tc.merges {
			t.Errorf("%d to %d: %d splits and %d merges, want %d and %d", tc.have, tc.want, len(splits), len(merges), tc.splits, tc.merges)
		}
		if !slices.IsSortedFunc(splits, hashKey.compare) || !slices.IsSortedFunc(merges, hashKey.compare) {
			t.Errorf("%d to %d: out of order", tc.have, tc.want)
		}
	}
}

func TestBuckets(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	var b bucket
	used := 0
	for range 20 { // two seconds, with an attempt every 100 ms
		for b.has(now, 5, 1) {
			b.use(now, 5, 1)
			used++
		}
		now = now.Add(100 * time.Millisecond)
	}
	if used != 5+9 { // the burst, and the refill of 1.9 seconds
		t.Errorf("%d uses in two seconds", used)
	}
	b = bucket{}
	b.useRead(now, 100, 500)
	if b.hasAny(now.Add(4900*time.Millisecond), 100) || !b.hasAny(now.Add(5*time.Second), 100) {
		t.Error("five seconds' worth does not block for five seconds")
	}
	b = bucket{}
	if !b.has(now, 100, 1000) {
		t.Error("a large use of a full bucket is refused")
	}
	b.use(now, 100, 1000)
	if b.has(now.Add(9*time.Second), 100, 1) || !b.has(now.Add(10*time.Second), 100, 100) {
		t.Error("a large use is not paid back")
	}
	b.use(now, 100, 100)
	if b.level(now.Add(-time.Hour), 100) > 100 { // a clock that goes back adds no tokens
		t.Error("overfull")
	}
}

// TestMemoryOfExpiredRecordsIsGivenBack reads a shard whose records expire one by one. It checks
// that the array of records shrinks.
func TestMemoryOfExpiredRecordsIsGivenBack(t *testing.T) {
	sh := &shard{number: 1, id: shardID(1), nextIndex: 1, base: 1}
	now := time.UnixMilli(0)
	for i := range 1000 {
		sh.append(now.Add(time.Duration(i)*time.Millisecond), []byte("data"), codec.Some("k"), false)
	}
	var freed int64
	for i := range 1000 {
		freed += sh.trim(int64(i))
		if sh.dead > len(sh.records) {
			t.Fatalf("%d dead records for %d live ones", sh.dead, len(sh.records))
		}
		if len(sh.records) != 999-i || sh.base != uint64(i+2) {
			t.Fatalf("after %d: %d records from %d", i, len(sh.records), sh.base)
		}
	}
	if freed != 5000 || sh.bytes != 0 {
		t.Errorf("freed %d, kept %d", freed, sh.bytes)
	}
}

// TestPagesStayAsTheyWere checks that a page does not change while records are added and dropped.
func TestPagesStayAsTheyWere(t *testing.T) {
	sh := &shard{nextIndex: 1, base: 1}
	now := time.UnixMilli(1000)
	put := func(n int) {
		for range n {
			sh.append(now, fmt.Appendf(nil, "%d", sh.nextIndex), codec.Some("k"), false)
			now = now.Add(time.Millisecond)
		}
	}
	put(10)
	p := sh.read(now, 1, 5, 1<<20)
	put(100)
	sh.trim(now.UnixMilli() - 3)
	put(100)
	for i, r := range p.records {
		if string(r.data) != fmt.Sprint(i+1) {
			t.Errorf("record %d is now %s", i+1, r.data)
		}
	}
	if p.next != 6 || len(p.records) != 5 || p.end {
		t.Errorf("got %+v", p)
	}
	if late := sh.read(now, 2, 3, 1<<20); late.next != sh.base+3 {
		t.Errorf("a trimmed position reads on at %d, the oldest is %d", late.next, sh.base)
	}
	if one := sh.read(now, sh.base, 10, 1); len(one.records) != 1 {
		t.Errorf("a record larger than the page: %d records", len(one.records))
	}
}

func TestEveryOperationIsNamedInTheLimitsOrHasOneOfItsOwn(t *testing.T) {
	own := []string{"GetRecords", "GetShardIterator", "PutRecord", "PutRecords", "SubscribeToShard", "StartStreamEncryption", "StopStreamEncryption", "UpdateStreamMode"}
	for _, name := range Operations() {
		if strings.Contains(name, "Queue") {
			continue // no limit of these operations is documented
		}
		if _, limited := callLimits[name]; limited == slices.Contains(own, name) {
			t.Errorf("%s: limited %v", name, limited)
		}
	}
	for name := range callLimits {
		if _, served := NewRequest(name); !served {
			t.Errorf("%s has a limit and is not served", name)
		}
	}
}
