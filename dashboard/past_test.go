package dashboard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestWhoHadAShardTellsWhatHappened(t *testing.T) {
	t.Parallel()
	m := func(minute int64, session string, marks history.Marks) moment {
		return moment{minute: minute, session: session, marks: marks}
	}
	for _, c := range []struct {
		name    string
		moments []moment
		want    []marked
	}{
		{"nothing is known", nil, nil},
		{"one owner has it all the time", []moment{m(1, "a", history.Began), m(2, "a", 0), m(3, "a", 0)}, nil},
		{"it is handed over", []moment{m(1, "a", history.Began), m(2, "a", history.Ended), m(2, "b", history.Began)}, []marked{{minute: 2, what: handedOver}}},
		{"its owner dies", []moment{m(1, "a", history.Began), m(2, "a", 0), m(4, "b", history.Began)}, []marked{{minute: 4, what: takenOver}}},
		{"its owner loses it", []moment{m(1, "a", history.Began), m(2, "a", history.Lost), m(2, "b", history.Began)}, []marked{{minute: 2, what: regainedAfterLoss}}},
		{"its owner loses it in an outage of the store, and gets it again", []moment{m(1, "a", history.Began), m(2, "a", history.Lost), m(3, "a", history.Began)}, []marked{{minute: 3, what: regainedAfterLoss}}},
		{"its owner writes another chunk", []moment{m(1, "a", history.Began), m(2, "b", history.Began), m(3, "b", history.Began)}, []marked{{minute: 2, what: takenOver}}},
		{"it stalls, and goes to another", []moment{m(1, "a", history.Began), m(2, "a", history.Ended|history.Stalled), m(3, "b", history.Began)}, []marked{{minute: 2, what: stalled}, {minute: 3, what: handedOver}}},
		{"it comes back to the first", []moment{m(1, "a", history.Began|history.Ended), m(2, "b", history.Began), m(3, "a", history.Began)}, []marked{{minute: 2, what: handedOver}, {minute: 3, what: takenOver}}},
		{"its handler fails", []moment{m(1, "a", history.Began), m(2, "a", history.Failing)}, nil},
	} {
		got := happenings(c.moments)
		for i := range got {
			got[i].from, got[i].to = "", ""
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestAHandOverWithinAMinuteIsOneWhoeverReportsFirst(t *testing.T) {
	t.Parallel()
	now := time.Unix(60*29_000_000, 0)
	key := lease.Key{Stream: "s", Shard: "1"}
	for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		var chunks []lease.HistoryChunk
		for i, marks := range []history.Marks{history.Began | history.Ended, history.Began} {
			c := lease.HistoryChunk{Session: order[i]}
			c.Since, c.Data = history.NewWriter(1000, "worker "+order[i]).Add(minuteOf(now), []history.Sample{{Key: key, Marks: marks}})
			chunks = append(chunks, c)
		}
		p := past{}.with(chunks, now)
		if got, want := happenings(p.shards[key]), []marked{{minuteOf(now), handedOver, order[0], order[1]}}; !slices.Equal(got, want) || p.workers["a"] != "worker a" {
			t.Errorf("from %s to %s: %v, want %v", order[0], order[1], got, want)
		}
	}
}

func TestTheTrendOfALag(t *testing.T) {
	t.Parallel()
	line := func(from, to time.Duration) (all []time.Duration) {
		for i := range 30 {
			all = append(all, from+(to-from)*time.Duration(i)/29)
		}
		return all
	}
	unknown := line(-1, -1)
	for _, c := range []struct {
		name string
		lags []time.Duration
		want string
	}{
		{"none", nil, ""}, {"not known", unknown, ""},
		{"it rises", line(0, 10*time.Minute), "rising"}, {"it falls", line(10*time.Minute, 0), "falling"},
		{"it stays", line(time.Hour, time.Hour), "steady"}, {"by seconds", line(0, 9*time.Second), "steady"},
		{"by little of much", line(time.Hour, time.Hour+time.Minute), "steady"},
		{"only the end is known", append(slices.Clone(unknown[:15]), line(0, time.Hour)[:15]...), ""},
	} {
		if got := trend(c.lags); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestChunksAreAskedForAgainOnlyWhileTheyGrow(t *testing.T) {
	t.Parallel()
	now := time.Unix(60*29_000_000, 0)
	chunk := func(session string, since int64, minutes ...int64) lease.HistoryChunk {
		w := history.NewWriter(1000, "")
		c := lease.HistoryChunk{Session: session}
		for _, m := range append([]int64{since}, minutes...) {
			c.Since, c.Data = w.Add(m, []history.Sample{{Key: lease.Key{Stream: "s", Shard: session}, Minute: m, Lag: time.Duration(m)}})
		}
		return c
	}
	minute := minuteOf(now)
	var p past
	if got, want := p.next(now), minute-180; got != want {
		t.Errorf("at first since %d, want %d", got, want)
	}
	p = p.with([]lease.HistoryChunk{chunk("dead", minute-90, minute-80), chunk("lives", minute-20, minute-1), {Session: "odd", Since: 7, Data: []byte("?")}}, now)
	if got, want := p.next(now), minute-20; got != want || p.odd != 1 || p.missing == "" {
		t.Errorf("then since %d, want %d; %d odd: %s", got, want, p.odd, p.missing)
	}
	later := now.Add(2 * time.Minute)
	q := p.with([]lease.HistoryChunk{chunk("lives", minute-20, minute-1, minute+1)}, later)
	key := lease.Key{Stream: "s", Shard: "lives"}
	if len(q.shards[key]) != 3 || len(p.shards[key]) != 2 || len(q.chunks) != 2 {
		t.Errorf("a chunk that grew has %d moments, and had %d, of %d chunks", len(q.shards[key]), len(p.shards[key]), len(q.chunks))
	}
	if gone := q.with(nil, now.Add(lease.HistoryKept-time.Hour)); len(gone.chunks) != 1 || len(gone.shards) != 1 {
		t.Errorf("chunks that are too old stay: %d, of %d shards", len(gone.chunks), len(gone.shards))
	}
}

// parts divides the hash keys into n equal ranges.
func parts(n int) (all []shard.HashRange) {
	part := ^uint64(0) / uint64(n)
	for i := range n {
		r := shard.HashRange{Start: shard.HashKey{Hi: uint64(i) * part}, End: shard.HashKey{Hi: uint64(i+1)*part - 1, Lo: ^uint64(0)}}
		if i == n-1 {
			r.End = shard.MaxHashKey
		}
		all = append(all, r)
	}
	return all
}

func TestBrightnessIsAsWideAsItLasted(t *testing.T) {
	t.Parallel()
	key := lease.Key{Stream: "s", Shard: "1"}
	to := time.Unix(60*1000, 0)
	p := past{shards: map[lease.Key][]moment{}}
	for minute := int64(960); minute < 1000; minute++ {
		m := moment{minute: minute, session: "a"}
		if minute >= 970 && minute < 980 {
			m.lag = time.Hour
		}
		p.shards[key] = append(p.shards[key], m)
	}
	picture := draw([]piece{{0, slice(0, 16), time.Time{}, time.Time{}, to, 0}}, to.Add(-100*time.Minute), to, mostRows)
	h := drawHeat(picture.boxes, []shardInfo{{Lease: lease.Lease{Key: key}}}, p, metricOf("lag"), to.Add(-100*time.Minute), to)
	want := [levels]string{0: "M600 0h100v120h-100zM800 0h200v120h-200z", 4: "M700 0h100v120h-100z"}
	if h.Levels != want || !h.Knows {
		t.Errorf("%q, want %q", h.Levels, want)
	}
	if h := drawHeat(picture.boxes, []shardInfo{{Lease: lease.Lease{Key: key}}}, p, metricOf(""), to.Add(-100*time.Minute), to); h.Levels != [levels]string{} {
		t.Errorf("%q where colours are states", h.Levels)
	}
	// The state of each minute comes from its report. An hour of lag appears at once, so it does
	// not grow. The present state begins after the last report.
	now := []shardInfo{{Lease: lease.Lease{Key: key}, standing: standing{State: health.Stalled}}}
	h = drawHeat(picture.boxes, now, past{shards: map[lease.Key][]moment{key: p.shards[key][:35]}}, nil, to.Add(-100*time.Minute), to)
	states := []painted{{"ok", "M600 0h100v120h-100zM800 0h138.9v120h-138.9z"}, {"behind", "M700 0h100v120h-100z"}, {"stalled", "M938.9 0h61.1v120h-61.1z"}}
	if !slices.Equal(h.States, states) || h.Hatch != states[2].Path {
		t.Errorf("%q, hatched %q, want %q", h.States, h.Hatch, states)
	}
}

// A shard that is stalled, unread or paused now was so since the state began, whatever its reports
// say: they cannot show it. The newest part of each shard shows the present state.
func TestTheNewestPartShowsThePresentState(t *testing.T) {
	t.Parallel()
	key := lease.Key{Stream: "s", Shard: "1"}
	to := time.Unix(60*1000, 0)
	from := to.Add(-5 * time.Minute)
	report := func(minute int64, lag time.Duration) moment {
		return moment{minute: minute, session: "a", lag: lag}
	}
	behind := []moment{report(997, time.Minute), report(998, 2*time.Minute), report(999, 3*time.Minute)}
	for _, c := range []struct {
		name  string
		all   []moment
		state health.State
		since time.Duration // before now; 0 if unknown
		want  []painted
	}{
		{"stalled, with reports of a growing lag", behind, health.Stalled, 150 * time.Second,
			[]painted{{"behind", "M400 0h100v120h-100z"}, {"stalled", "M500 0h500v120h-500z"}}},
		{"stalled since an unknown time", behind, health.Stalled, 0,
			[]painted{{"behind", "M400 0h466.7v120h-466.7z"}, {"stalled", "M866.7 0h133.3v120h-133.3z"}}},
		{"unread since its worker stopped", []moment{report(997, -1)}, health.Unread, 150 * time.Second,
			[]painted{{"unknown", "M400 0h100v120h-100z"}, {"unread", "M500 0h500v120h-500z"}}},
		{"paused", []moment{report(997, 0)}, health.Idle, 150 * time.Second,
			[]painted{{"ok", "M400 0h100v120h-100z"}, {"idle", "M500 0h500v120h-500z"}}},
		{"up to date again, after a report of a lag", []moment{report(998, 0), report(999, time.Minute)}, health.OK, 0,
			[]painted{{"ok", "M600 0h200v120h-200zM866.7 0h133.3v120h-133.3z"}, {"behind", "M800 0h66.7v120h-66.7z"}}},
	} {
		shards := []shardInfo{{Lease: lease.Lease{Key: key}, standing: standing{State: c.state}}}
		if c.since > 0 {
			shards[0].Since = to.Add(-c.since)
		}
		picture := draw([]piece{{0, slice(0, 16), time.Time{}, time.Time{}, to, 0}}, from, to, mostRows)
		h := drawHeat(picture.boxes, shards, past{shards: map[lease.Key][]moment{key: c.all}}, nil, from, to)
		if !slices.Equal(h.States, c.want) {
			t.Errorf("%s: %q, want %q", c.name, h.States, c.want)
		}
		if last := c.want[len(c.want)-1].Path; c.state == health.Stalled && h.Hatch != last || c.state == health.Unread && h.Dots != last {
			t.Errorf("%s: hatched %q, dotted %q", c.name, h.Hatch, h.Dots)
		}
	}
}

func TestThePastOfManyShardsIsBounded(t *testing.T) {
	t.Parallel()
	const n = 1000
	dice := rand.New(rand.NewPCG(3, 3))
	to := time.Unix(60*1000, 0)
	p := past{shards: map[lease.Key][]moment{}}
	var pieces []piece
	var shards []shardInfo
	for i, r := range parts(n) {
		key := lease.Key{Stream: "s", Shard: fmt.Sprint(i)}
		shards = append(shards, shardInfo{Lease: lease.Lease{Key: key}})
		pieces = append(pieces, piece{at: i, hashes: r, done: to})
		for minute := int64(820); minute < 1000; minute++ { // random values
			p.shards[key] = append(p.shards[key], moment{minute: minute, session: "a", lag: time.Duration(dice.IntN(4)) * 20 * time.Minute})
		}
	}
	picture := draw(pieces, to.Add(-3*time.Hour), to, mostRows)
	h := drawHeat(picture.boxes, shards, p, metricOf("lag"), to.Add(-3*time.Hour), to)
	if size := len(strings.Join(h.Levels[:], "")); size > 250_000 || size < 1000 {
		t.Errorf("the past of %d shards is drawn by %d bytes", n, size)
	}
}

func TestThePastOfAShardHasGapsWhereNobodyReported(t *testing.T) {
	t.Parallel()
	key := lease.Key{Stream: "s", Shard: "1"}
	p := past{workers: map[string]string{"a": "Anna"}, shards: map[lease.Key][]moment{key: {
		{minute: 100, session: "a", lag: time.Minute}, {minute: 101, session: "a", lag: 2 * time.Minute, busy: 50, throttled: 8},
		{minute: 110, session: "b", lag: 0, age: time.Hour, marks: history.Began | history.Failing}, {minute: 120, session: "b", lag: -1, age: -1},
	}}}
	of := p.shardPast(key)
	if want := "M0 51L50 2M500 100"; of.Line != want {
		t.Errorf("the line is %q, want %q", of.Line, want)
	}
	if want := "M0 51L50 2L50 100L0 100zM500 100L500 100L500 100z"; of.Area != want {
		t.Errorf("the area is %q, want %q", of.Area, want)
	}
	var rows []string
	for _, r := range of.Rows {
		rows = append(rows, fmt.Sprintf("%s %t %v %t %v %d %d %s: %s", r.From.Format("15:04"), r.LagKnown, r.Lag, r.AgeKnown, r.Age, r.Busy, r.Throttled, r.Workers, r.Happened))
	}
	want := []string{
		"02:00 false 0s false 0s 0 0 [b]: ",
		"01:45 true 0s true 1h0m0s 0 0 [b]: taken over from a worker that died, its handler failed",
		"01:30 true 2m0s true 0s 50 8 [Anna]: ",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("%q\nwant %q", rows, want)
	}
}
