package history

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-go/weir/lease"
)

func key(n int) lease.Key {
	return lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", n)}
}

// near reports whether two durations are equal within the resolution of a class.
func near(a, b time.Duration) bool {
	if a < 0 || b < 0 || a < finest || b < finest {
		return (a < 0) == (b < 0) && (a < 0 || max(a, b) <= finest*11/10)
	}
	return float64(max(a, b)) <= 1.05*float64(min(a, b))
}

func same(a, b Sample) bool {
	return a.Key == b.Key && a.Minute == b.Minute && near(a.Lag, b.Lag) && near(a.Age, b.Age) && a.Load == b.Load && a.Busy == b.Busy && (a.Throttled+1)/2 == (b.Throttled+1)/2 && a.Marks == b.Marks
}

func TestDurationsAreKeptToWithinAFewPercent(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{-1, 0, 9 * time.Millisecond, 10 * time.Millisecond, time.Second, 59 * time.Second, time.Hour, 24 * time.Hour, 365 * 24 * time.Hour} {
		if got := durationOf(classOf(d)); !near(got, d) {
			t.Errorf("%v is kept as %v", d, got)
		}
	}
	for class := range 256 {
		if got := classOf(durationOf(byte(class))); int(got) != class {
			t.Errorf("class %d stands for %v, which is of class %d", class, durationOf(byte(class)), got)
		}
	}
}

// random returns the minutes of a worker whose shards come and go.
func random(dice *rand.Rand, minutes int) [][]Sample {
	streams := []string{"orders", "a stream with a long name and ünïcode", strings.Repeat("x", 255)}
	all := make([][]Sample, minutes)
	for m := range all {
		for n := range dice.IntN(30) {
			if dice.IntN(3) == 0 {
				continue
			}
			k := lease.Key{Stream: streams[dice.IntN(len(streams))], Shard: fmt.Sprintf("shardId-%012d", n*n*n*1_000_003)}
			if dice.IntN(4) == 0 {
				k.Shard = []string{"shardId-12", "shardId-00000000000x", strings.Repeat("s", 255), "1"}[dice.IntN(4)]
			}
			s := Sample{Key: k, Minute: int64(29_000_000 + m), Lag: -1, Age: time.Duration(dice.IntN(1e12)), Load: lease.Load(dice.IntN(80)), Busy: dice.IntN(101)}
			if dice.IntN(2) == 0 {
				s.Lag = time.Duration(dice.IntN(1e12))
			}
			if dice.IntN(5) == 0 {
				s.Marks = Marks(dice.IntN(256))
			}
			if dice.IntN(3) == 0 {
				s.Throttled = dice.IntN(101)
			}
			if !slices.ContainsFunc(all[m], func(o Sample) bool { return o.Key == k }) {
				all[m] = append(all[m], s)
			}
		}
	}
	return all
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		dice := rand.New(rand.NewPCG(seed, 1))
		minutes := random(dice, 90)
		w := NewWriter(256+dice.IntN(8000), "anna")
		chunks := map[int64][]byte{}
		for m, samples := range minutes {
			if len(samples) == 0 {
				continue
			}
			since, data := w.Add(int64(29_000_000+m), samples)
			chunks[since] = data
		}
		var got []Sample
		for _, since := range sortedKeys(chunks) {
			samples, worker, err := Read(lease.HistoryChunk{Session: "s", Since: since, Data: chunks[since]})
			if err != nil || worker != "anna" {
				t.Fatalf("seed %d: worker %q, %v", seed, worker, err)
			}
			got = append(got, samples...)
		}
		want := slices.Concat(minutes...)
		order := func(a, b Sample) int {
			if a.Minute != b.Minute {
				return int(a.Minute - b.Minute)
			}
			return a.Key.Compare(b.Key)
		}
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
		if !slices.EqualFunc(got, want, same) {
			t.Fatalf("seed %d: %d samples became %d, or others", seed, len(want), len(got))
		}
	}
}

func sortedKeys(chunks map[int64][]byte) []int64 {
	var all []int64
	for since := range chunks {
		all = append(all, since)
	}
	slices.Sort(all)
	return all
}

func TestAMinuteMayBeAddedTo(t *testing.T) {
	t.Parallel()
	w := NewWriter(900, "anna")
	w.Add(7, []Sample{{Key: key(1), Marks: Began}})
	since, data := w.Add(7, []Sample{{Key: key(1), Marks: Ended}, {Key: key(2)}})
	got, _, err := Read(lease.HistoryChunk{Session: "s", Since: since, Data: data})
	if err != nil || since != 7 || len(got) != 3 || got[0].Marks != Began || got[1].Marks != Ended || got[1].Minute != 7 {
		t.Errorf("minute %d, %v: %+v", since, err, got)
	}
}

// data returns a chunk with samples of one shard, one for each minute. The first minute is 5.
func data(samples ...Sample) (all []byte) {
	w := NewWriter(900, "anna")
	for i, s := range samples {
		s.Key = key(1)
		_, all = w.Add(int64(5+i), []Sample{s})
	}
	return all
}

// unthrottled contains samples in the form before throttling was added.
var unthrottled = []byte{1, 5, 4, 'a', 'n', 'n', 'a', 0, 1, 0, 6, 'o', 'r', 'd', 'e', 'r', 's', 3, 0x9f, 0x37, 0x01, 0x22, 0x32, 0x20, 1, 0, 0x90, 0x40}

func TestSamplesWithoutThrottlesAreAsTheyWere(t *testing.T) {
	t.Parallel()
	first, second := Sample{Lag: time.Second, Load: 34, Busy: 50, Marks: Failing}, Sample{Lag: time.Second, Load: 34, Busy: 50, Marks: Unread}
	if got := data(first, second); !bytes.Equal(got, unthrottled) {
		t.Errorf("they are written as %#v", got)
	}
	got, _, err := Read(lease.HistoryChunk{Session: "s", Since: 5, Data: unthrottled})
	if err != nil || len(got) != 2 || got[0].Throttled != 0 || got[1].Throttled != 0 || got[0].Marks != Failing || got[1].Marks != Unread {
		t.Errorf("they are read as %+v, %v", got, err)
	}
}

func TestThrottlesAreKeptToWithinAStep(t *testing.T) {
	t.Parallel()
	idle := len(data(Sample{}, Sample{}))
	for _, c := range []struct {
		name      string
		throttled int
		marks     Marks
		want      int
		bytes     int
	}{
		{"none", 0, 0, 0, 0},
		{"none, and its handler fails", 0, Failing, 0, 1},
		{"a single one", 1, 0, 2, 1},
		{"an even part", 2, 0, 2, 1},
		{"an odd part", 51, 0, 52, 1},
		{"most", 99, 0, 100, 1},
		{"all the time", 100, 0, 100, 1},
		{"more than there is", 1000, 0, 100, 1},
		{"its handler fails, too", 40, Failing, 40, 1},
		{"reading fails, too", 40, Unread, 40, 1},
		{"both fail, too", 40, Failing | Unread, 40, 1},
		{"its owner lost it", 40, Failing | Lost, 40, 2},
		{"all that there is", 100, 0xff, 100, 2},
	} {
		chunk := data(Sample{}, Sample{Throttled: c.throttled, Marks: c.marks})
		if got := len(chunk) - idle; got != c.bytes {
			t.Errorf("%s: takes %d bytes, want %d", c.name, got, c.bytes)
		}
		got, _, err := Read(lease.HistoryChunk{Session: "s", Since: 5, Data: chunk})
		if err != nil || len(got) != 2 || got[1].Throttled != c.want || got[1].Marks != c.marks {
			t.Errorf("%s: read as %+v, %v; want %d", c.name, got, err, c.want)
		}
	}
	for b := range 256 { // any program may have written the byte
		got, _, err := Read(lease.HistoryChunk{Session: "s", Since: 5, Data: []byte{1, 5, 0, 0, 1, 0, 1, 's', 3, 0xa0, byte(b)}})
		if err != nil || len(got) != 1 || got[0].Throttled < 0 || got[0].Throttled > 100 || got[0].Marks&^lasting != 0 {
			t.Errorf("%#x is read as %+v, %v", b, got, err)
		}
	}
}

func TestAClockThatGoesBackBeginsAnotherChunk(t *testing.T) {
	t.Parallel()
	w := NewWriter(900, "anna")
	w.Add(70, []Sample{{Key: key(1)}})
	if since, _ := w.Add(60, []Sample{{Key: key(1)}}); since != 60 {
		t.Errorf("the chunk begins with minute %d", since)
	}
	if since, _ := w.Add(60+MostMinutes, []Sample{{Key: key(1)}}); since != 60+MostMinutes {
		t.Errorf("after an hour the chunk begins with minute %d", since)
	}
}

func TestMoreShardsThanFitAreLeftOut(t *testing.T) {
	t.Parallel()
	var many []Sample
	for n := range 20_000 {
		many = append(many, Sample{Key: key(1_000_000 * n), Lag: time.Minute})
	}
	since, data := NewWriter(900, "anna").Add(5, many)
	got, _, err := Read(lease.HistoryChunk{Session: "s", Since: since, Data: data})
	if err != nil || len(data) > lease.MaxHistoryBytes || len(got) < 5000 || got[0].Key != many[0].Key {
		t.Errorf("%d bytes with %d shards, %v", len(data), len(got), err)
	}
}

func TestWhatIsNoChunkIsRefused(t *testing.T) {
	t.Parallel()
	since, good := NewWriter(900, "anna").Add(5, []Sample{{Key: key(1), Lag: time.Second}, {Key: lease.Key{Stream: "s", Shard: "x"}}})
	for name, c := range map[string]lease.HistoryChunk{
		"nothing":                    {Session: "s", Since: 5},
		"too much":                   {Session: "s", Since: 5, Data: make([]byte, lease.MaxHistoryBytes+1)},
		"no session":                 {Since: since, Data: good},
		"another minute":             {Session: "s", Since: 6, Data: good},
		"a worker that is too long":  {Session: "s", Since: 5, Data: []byte{1, 5, 201, 1}},
		"a worker that is cut off":   {Session: "s", Since: 5, Data: []byte{1, 5, 4, 'a'}},
		"a worker that is no text":   {Session: "s", Since: 5, Data: []byte{1, 5, 1, 0xff, 0, 0}},
		"another version":            {Session: "s", Since: 5, Data: append([]byte{2}, good[1:]...)},
		"a gap of years":             {Session: "s", Since: 5, Data: []byte{1, 5, 0, 200, 200, 1, 0}},
		"more shards than bytes":     {Session: "s", Since: 5, Data: []byte{1, 5, 0, 0, 200, 1}},
		"a stream that is not there": {Session: "s", Since: 5, Data: []byte{1, 5, 0, 0, 1, 3, 1, 1}},
		"a field of a later version": {Session: "s", Since: 5, Data: []byte{1, 5, 0, 0, 1, 0, 1, 's', 3, 0xc0, 1}},
		"a throttle that is cut off": {Session: "s", Since: 5, Data: []byte{1, 5, 0, 0, 1, 0, 1, 's', 3, 0xa0}},
		"an unknown mask":            {Session: "s", Since: 5, Data: []byte{1, 5, 0, 0, 1, 0, 1, 's', 3, 0xff, 1, 1, 1, 1, 1}},
		"a name that is no text":     {Session: "s", Since: 5, Data: []byte{1, 5, 0, 0, 1, 0, 1, 0xff, 3, 0x80}},
	} {
		if got, _, err := Read(c); err == nil {
			t.Errorf("%s is read as %+v", name, got)
		}
	}
	for size := 2; size < len(good); size++ {
		if got, _, err := Read(lease.HistoryChunk{Session: "s", Since: since, Data: good[:size]}); err == nil && len(got) > 0 {
			t.Errorf("of %d bytes the first %d are read as %+v", len(good), size, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	dice := rand.New(rand.NewPCG(1, 1))
	for _, samples := range random(dice, 5) {
		if len(samples) > 0 {
			_, data := NewWriter(4000, "anna").Add(5, samples)
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := lease.HistoryChunk{Session: "s", Since: 5, Data: data}
		before := bytes.Clone(data)
		samples, worker, err := Read(c)
		if len(worker) > lease.MaxWorkerBytes || !utf8.ValidString(worker) {
			t.Errorf("the worker is %q", worker)
		}
		if !bytes.Equal(before, data) {
			t.Error("reading changed the chunk")
		}
		if err != nil && samples != nil || len(samples) > len(data) {
			t.Errorf("%d bytes are %d samples, %v", len(data), len(samples), err)
		}
		for _, s := range samples {
			if s.Minute < 5 || s.Minute >= 5+MostMinutes || s.Load > lease.MaxLoad || s.Busy > 100 || s.Throttled < 0 || s.Throttled > 100 || len(s.Shard) > lease.MaxNameBytes || len(s.Stream) > lease.MaxNameBytes {
				t.Errorf("out of bounds: %+v", s)
			}
		}
	})
}

func TestALongNameIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": "", "anna": "anna", strings.Repeat("ü", 30): strings.Repeat("ü", 20), "a\xff": "a\uFFFD"} {
		since, data := NewWriter(900, name).Add(5, []Sample{{Key: key(1)}})
		if _, worker, err := Read(lease.HistoryChunk{Session: "s", Since: since, Data: data}); worker != want || err != nil {
			t.Errorf("%q is read as %q, %v", name, worker, err)
		}
	}
}
