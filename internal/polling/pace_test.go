package polling

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	for name, test := range map[string]struct {
		bytes int
		share float64
		tip   bool
		pause time.Duration
		want  time.Duration
	}{
		"behind, little read":           {1000, 1, false, time.Second, 200 * time.Millisecond},
		"behind, a second's worth":      {2 << 20, 1, false, time.Second, time.Second},
		"behind, a full page":           {10 << 20, 1, false, time.Second, 5 * time.Second},
		"at the tip":                    {0, 1, true, time.Second, time.Second},
		"at the tip after a large page": {10 << 20, 1, true, time.Second, 5 * time.Second},
		"at the tip, never too fast":    {0, 1, true, time.Millisecond, 200 * time.Millisecond},
		"half of the calls":             {1000, .5, false, time.Second, 400 * time.Millisecond},
		"half of the bytes":             {1 << 20, .5, false, time.Second, time.Second},
		"a fifth of the calls":          {0, .2, false, time.Second, time.Second},
		"a fifth of the bytes":          {10 << 20, .2, false, time.Second, 25 * time.Second},
		"a share at the tip":            {0, .1, true, time.Second, 2 * time.Second},
		"a share that is no binary one": {0, 1. / 3, false, 0, 600 * time.Millisecond},
		"the least share":               {10 << 20, .01, false, 0, 500 * time.Second},
	} {
		if got := pace(test.bytes, test.share, test.tip, test.pause); got < test.want || got > test.want+1 {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestAnswersLeaveRoomForTheSharesOfOthers(t *testing.T) {
	for share, want := range map[float64]int{1: 1<<31 - 1, .5: 1 << 20, .25: 512 << 10, .2: 419430, .1: 419430, .01: 419430} {
		if got := answerRoom(share); got < want-1 || got > want+1 {
			t.Errorf("a share of %v has room for %d bytes, want %d", share, got, want)
		}
	}
	if firstLimit(1, 10_000) != 10_000 || firstLimit(.99, 10_000) != 4 || firstLimit(.5, 3) != 3 {
		t.Error("the first read asks for another number of records than it should")
	}
	for name, test := range map[string]struct{ limit, most, room, records, bytes, want int }{
		"full and small":               {16, 10_000, 1 << 20, 16, 1600, 64},
		"full, and as large as it may": {1000, 10_000, 1 << 20, 1000, 1 << 20, 1000},
		"full, and fits three times":   {1000, 10_000, 3 << 20, 1000, 1 << 20, 3000},
		"full, and nearly that":        {1000, 10_000, 1 << 20, 1000, 1e6, 1048},
		"full, at the most":            {8000, 10_000, 1 << 20, 8000, 1000, 10_000},
		"too large":                    {16, 10_000, 1 << 20, 16, 16 << 20, 1},
		"a little too large":           {1000, 10_000, 1 << 20, 1000, 2 << 20, 500},
		"one that is too large":        {1, 10_000, 1 << 20, 1, 10 << 20, 1},
		"not full":                     {16, 10_000, 1 << 20, 3, 300, 16},
		"nothing":                      {16, 10_000, 1 << 20, 0, 0, 16},
		"all of the shard, full":       {500, 10_000, 1<<31 - 1, 500, 10 << 20, 1000},
	} {
		if got := portion(int32(test.limit), int32(test.most), test.room, test.records, test.bytes); int(got) != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// The key lists the results of reads: r has records, e is empty, b is behind the tip, t is
// throttled.
func TestTempo(t *testing.T) {
	const second, idle = time.Second, time.Second
	after := func(reads string) tempo {
		tempo := unsettled
		for _, r := range reads {
			switch r {
			case 't':
				tempo = tempo.throttled()
			default:
				tempo = tempo.after(r != 'b', r != 'e')
			}
		}
		return tempo
	}
	many := func(read string, n int) (all string) {
		for range n {
			all += read
		}
		return all
	}
	for reads, want := range map[string]time.Duration{
		"":                           second,
		"e":                          second,
		"r":                          second / 2,
		"rr":                         second / 2,
		"re":                         second,
		"ere":                        second,
		"rb":                         second / 2,
		"eb":                         second,
		"bbte":                       second, // the shard was not at its tip
		"ete":                        2 * second,
		"etr":                        2 * second,
		"rte":                        2 * second,
		"etb":                        2 * second,
		"etee":                       1750 * time.Millisecond,
		"etrr":                       1750 * time.Millisecond,
		"eteeee":                     1250 * time.Millisecond,
		"ette":                       4 * second,
		"etete":                      4 * second,
		"ettte":                      4 * second,
		"eteete":                     3500 * time.Millisecond,
		"et" + many("e", 5):          second,
		"et" + many("r", 5):          second,
		"et" + many("r", 243):        second,
		"et" + many("r", 244):        second, // normal again
		"et" + many("r", 245):        second / 2,
		"et" + many("r", 100) + "tr": 2 * second,
		"et" + many("r", 100) + "t" + many("r", 200): second,
		"ett" + many("e", 13):                        second,
		"ett" + many("e", 12):                        1250 * time.Millisecond,
	} {
		if got := after(reads).interval(idle, readSpacing); got != want {
			t.Errorf("after %q every %v, want %v", reads, got, want)
		}
	}
	for name, test := range map[string]struct {
		tempo             tempo
		idle, least, want time.Duration
	}{
		"never faster than allowed":             {bringing, 300 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond},
		"never faster than a share":             {bringing, second, 700 * time.Millisecond, 700 * time.Millisecond},
		"a share slower than the idle interval": {calm, second, 2 * second, 2 * second},
		"stretched from what is allowed":        {slowest - 1, second / 5, second, 4 * second},
		"stretched by so much at most":          {slowest, 2 * second, second / 5, 5 * second},
		"a long interval is not shorter":        {slowest, time.Minute, second / 5, time.Minute},
		"a long interval while it brings":       {bringing, time.Minute, second / 5, 30 * second},
	} {
		if got := test.tempo.interval(test.idle, test.least); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// Pauses have jitter, including the shortest one.
func TestPausesKeepShardsOutOfStep(t *testing.T) {
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		tempo                  tempo
		idle, least, low, high time.Duration
		kinds                  int // number of different pauses, in steps of 10 ms
	}{
		"the first":             {unsettled, 1000 * ms, 200 * ms, 200 * ms, 1000 * ms, 60},
		"the first of a share":  {unsettled, 1000 * ms, 2000 * ms, 2000 * ms, 2000 * ms, 1},
		"calm":                  {calm, 1000 * ms, 200 * ms, 900 * ms, 1000 * ms, 8},
		"bringing":              {bringing, 1000 * ms, 200 * ms, 450 * ms, 500 * ms, 4},
		"throttled":             {wary + quarters - 1, 1000 * ms, 200 * ms, 1800 * ms, 2000 * ms, 15},
		"as fast as is allowed": {calm, 200 * ms, 200 * ms, 200 * ms, 240 * ms, 4},
		"a share":               {calm, 1000 * ms, 1000 * ms, 1000 * ms, 1200 * ms, 15},
	} {
		seen := map[time.Duration]bool{}
		for range 1000 {
			p := idlePause(test.idle, test.least, test.tempo)
			if p < test.low || p > test.high {
				t.Fatalf("%s: a pause of %v, want %v to %v", name, p, test.low, test.high)
			}
			seen[p/(10*ms)] = true
		}
		if len(seen) < test.kinds {
			t.Errorf("%s: the jitter has only %d values", name, len(seen))
		}
	}
}
