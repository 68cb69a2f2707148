package repeats

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func at(t *testing.T, text string) shard.Position {
	t.Helper()
	p, err := shard.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var noon = time.Date(2027, 1, 2, 12, 0, 0, 0, time.UTC)

// A text counts only if reading begins at its position or later.
func TestWhereATextCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		saved, start string
		want         bool
	}{
		{"100", "100", true},
		{"100", "101", true},
		{"100", "100+3", false},
		{"100+3", "100+3", true},
		{"100+3", "100+4", true},
		{"100+3", "100+2", false},
		{"100", "99", false},
		{"100", "oldest", false},
		{"100", "2027-01-02T12:00:00.000Z", false},
		{"oldest", "oldest", true},
		{"oldest", "100", true},
		{"end", "100", false},
		{"end", "end", true},
	} {
		var s set
		s.add(7, span{1, 5}, 1)
		text := s.encode(at(t, c.saved))
		tracker := New(text, at(t, c.start))
		if got := tracker.Read("200", 0, aggregate.Number{Series: 7, N: 3}, noon); got != c.want || Known(text, at(t, c.start)) != c.want {
			t.Errorf("saved at %s, read from %s: a repeat is recognized: %t", c.saved, c.start, got)
		}
	}
}

// Texts of another form, or that are damaged, count as none.
func TestDamagedTexts(t *testing.T) {
	t.Parallel()
	var s set
	for id := range uint64(5) {
		s.add(id+1, span{10, 20}, int64(id))
		s.add(id+1, span{30, 30}, int64(id))
	}
	good := s.encode(at(t, "100"))
	if _, all, ok := parse(good); !ok || fmt.Sprint(all) != fmt.Sprint(s.all) {
		t.Fatalf("%q is read as %v", good, all)
	}
	for _, bad := range []string{"", "1", "1/", "1/100", "1/x/", "2" + good[1:], good + "!", good[:len(good)-2], "1/100/AA" + strings.Repeat("A", 20)} {
		if at, all, ok := parse(bad); ok && len(all) > 0 {
			t.Errorf("%q is read as %v at %v", bad, all, at)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 { // no text makes it fail
		b := []byte(good)
		b[rnd.IntN(len(b))] = byte(rnd.IntN(256))
		if p, all, ok := parse(string(b[:1+rnd.IntN(len(b))])); ok {
			one := set{all}
			if again := one.encode(p); again != "" && len(again) > lease.MaxNumbersBytes {
				t.Errorf("%q", again)
			}
		}
	}
}

// Spans are joined when their numbers touch.
func TestSpans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		add  []span
		want string
	}{
		{[]span{{1, 3}, {4, 5}}, "[{1 5}]"},
		{[]span{{1, 3}, {5, 6}}, "[{1 3} {5 6}]"},
		{[]span{{1, 3}, {5, 6}, {4, 4}}, "[{1 6}]"},
		{[]span{{5, 6}, {1, 3}}, "[{1 3} {5 6}]"},
		{[]span{{5, 6}, {1, 4}}, "[{1 6}]"},
		{[]span{{1, 1}, {3, 3}, {5, 5}, {2, 6}}, "[{1 6}]"},
		{[]span{{1, 9}, {3, 4}}, "[{1 9}]"},
		{[]span{{3, 4}, {9, 9}, {1, 12}}, "[{1 12}]"},
	} {
		var s series
		for _, of := range c.add {
			s.add(of)
		}
		if got := fmt.Sprint(s.spans); got != c.want {
			t.Errorf("%v: %s, want %s", c.add, got, c.want)
		}
	}
}

// What exceeds a limit is forgotten, the oldest first. The text always fits.
func TestLimits(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	position := at(t, strings.Repeat("4", 56)+"+355")
	for _, c := range []struct {
		name          string
		series, spans int
		apart         time.Duration // between series
		first, last   bool          // which series is known in the end
		lowest        bool          // whether its lowest number is
		bytes         int
	}{
		{"one producer", 1, 1, 0, true, true, true, 120},
		{"as many as are kept", mostSeries, 1, time.Second, true, true, true, 1500},
		{"one more", mostSeries + 1, 1, time.Second, false, true, true, 1500},
		{"many gaps", 1, mostSpans, 0, true, true, true, 1000},
		{"too many gaps", 1, mostSpans + 1, 0, true, true, false, 1000},
		{"many of both", mostSeries, mostSpans, 0, true, true, false, lease.MaxNumbersBytes},
		{"old ones", 2, 1, 7 * time.Hour, false, true, true, 120},
	} {
		tracker := New("", shard.Oldest)
		ids := make([]uint64, c.series)
		const lowest, length = 100_000, 400
		for i := range ids {
			ids[i] = rnd.Uint64() | 1
			for k := range c.spans {
				for n := range length {
					tracker.Read("1", uint32(n), aggregate.Number{Series: ids[i], N: uint64(lowest + k*2*length + n)}, noon.Add(time.Duration(i)*c.apart))
				}
			}
		}
		text := tracker.Saved(position)
		again := New(text, position)
		if len(text) > c.bytes {
			t.Errorf("%s: the text has %d bytes", c.name, len(text))
		}
		has := func(i, n int) bool { return again.read.has(aggregate.Number{Series: ids[i], N: uint64(n)}) }
		newest := lowest + (c.spans-1)*2*length
		if has(0, newest) != c.first || has(c.series-1, newest) != c.last || has(c.series-1, lowest) != c.lowest || has(c.series-1, lowest-1) {
			t.Errorf("%s: the first series is known: %t, the last: %t, its lowest number: %t", c.name, has(0, newest), has(c.series-1, newest), has(c.series-1, lowest))
		}
	}
}

// Without a checkpoint, the records that were read first are forgotten, and never taken for others.
func TestTooManyAhead(t *testing.T) {
	t.Parallel()
	tracker := New("", shard.Oldest)
	for i := range mostAhead + 1 {
		tracker.Read(fmt.Sprint(1_000_000+i), 0, aggregate.Number{Series: 1, N: uint64(1 + i)}, noon)
	}
	if len(tracker.ahead) > mostAhead {
		t.Fatalf("%d records are ahead", len(tracker.ahead))
	}
	again := New(tracker.Saved(at(t, "2000000")), at(t, "2000000"))
	for n, want := range map[uint64]bool{1: false, mostAhead / 10: false, mostAhead/10 + 1: true, mostAhead + 1: true, mostAhead + 2: false} {
		if got := again.read.has(aggregate.Number{Series: 1, N: n}); got != want {
			t.Errorf("number %d is known: %t", n, got)
		}
	}
}

// The text of any set of numbers that a container can have is read again.
func TestTheLargestNumbersAreStored(t *testing.T) {
	t.Parallel()
	x := New("", shard.Oldest)
	for i := range uint64(3) {
		x.Read("5", uint32(i), aggregate.Number{Series: 1<<64 - 1, N: 1<<62 - 2 + i}, time.Unix(1_800_000_000, 0))
	}
	at, err := shard.After("5")
	if err != nil {
		t.Fatal(err)
	}
	if text := x.Saved(at); !Known(text, at) {
		t.Errorf("%q is not known", text)
	}
}
