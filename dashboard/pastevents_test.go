package dashboard

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/lease"
)

// A dashboard that was just started has the events that the history shows.
func TestTheFirstReadHasTheEventsOfTheHistory(t *testing.T) {
	t.Parallel()
	one, two := lease.Key{Stream: "s", Shard: "1"}, lease.Key{Stream: "s", Shard: "2"}
	m := func(minute int64, session string, marks history.Marks) moment {
		return moment{minute: minute, session: session, marks: marks}
	}
	p := past{workers: map[string]string{"sa": "a", "sb": "b"}, shards: map[lease.Key][]moment{
		one: {
			m(10, "sa", history.Began), m(11, "sa", history.Stalled), m(12, "sa", history.Stalled), m(13, "sa", 0),
			m(20, "sb", history.Began), m(21, "sb", history.Failing), m(22, "sb", history.Lost), m(23, "sb", history.Began),
		},
		two: {m(10, "sa", history.Began), m(20, "sb", history.Began), m(25, "sb", history.Ended), m(25, "sa", history.Began), m(30, "sa", history.Finished)},
	}}
	now := sighting{at: time.Unix(60*100, 0), past: p}
	log := sighting{}.tell(now)
	var got []string
	for _, e := range slices.Backward(log.events) {
		got = append(got, e.at.UTC().Format("15:04 ")+told(e))
	}
	want := []string{
		"00:11 stall: stalled 1 a", "00:13 stall: not stalled any more (over) 1 a",
		"00:20 handover: from a, which died, to b 1 2 a b",
		"00:21 failing: the handler fails 1 b", "00:22 failing: the handler no longer fails (over) 1 b",
		"00:23 handover: to b, after b had lost it 1 b", "00:25 handover: from b to a 2 b a",
		"00:30 shards: read to its end 2 a",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if !log.since.Equal(now.at) || !log.history.Equal(time.Unix(600, 0)) {
		t.Errorf("since %v, and the history since %v", log.since, log.history)
	}
}

func TestTicksAreAtRoundTimes(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		all, err := time.Parse("2006-01-02 15:04:05", "2026-03-01 "+text)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for _, c := range []struct {
		from, to string
		want     []string // text and place
	}{
		{"12:00:00", "12:01:00", []string{"12:00:00 0%", "12:00:10 16.7%", "12:00:20 33.3%", "12:00:30 50%", "12:00:40 66.7%", "12:00:50 83.3%", "12:01:00 100%"}},
		{"11:07:30", "12:07:30", []string{"11:10 4.2%", "11:20 20.8%", "11:30 37.5%", "11:40 54.2%", "11:50 70.8%", "12:00 87.5%"}},
		{"12:00:03", "12:05:03", []string{"12:01 19%", "12:02 39%", "12:03 59%", "12:04 79%", "12:05 99%"}},
		{"00:00:00", "23:00:00", []string{"00:00 0%", "06:00 26.1%", "12:00 52.2%", "18:00 78.3%"}},
	} {
		var got []string
		for _, x := range axis(at(c.from), at(c.to)) {
			got = append(got, x.Text+" "+x.X)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s to %s: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}
