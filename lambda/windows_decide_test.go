package lambda

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestWhichRecordsAreOfOneWindow(t *testing.T) {
	s := func(of float64) time.Time {
		return time.Unix(1_800_000_000, 0).Add(time.Duration(of * float64(time.Second)))
	}
	for _, c := range []struct {
		name    string
		arrived []float64
		latest  float64 // a negative value means zero time
		same    int
		start   float64
		last    float64
	}{
		{"all of them", []float64{10, 12, 19.999}, -1, 3, 10, 19.999},
		{"those up to the next window", []float64{10, 19, 20, 21}, 9, 2, 10, 19},
		{"those up to a gap", []float64{10, 45}, 9, 1, 10, 10},
		{"one that is a moment older than the one before it, too", []float64{10, 9.999, 11}, 8, 3, 10, 11},
		{"one that is a moment older than those before counts with them", []float64{9.999, 10.001}, 10, 2, 10, 10.001},
		{"without those before it is of its own time", []float64{9.999, 10.001}, -1, 1, 0, 9.999},
	} {
		t.Run(c.name, func(t *testing.T) {
			latest := s(c.latest)
			if c.latest < 0 {
				latest = time.Time{}
			}
			same, of, last := sameWindow(len(c.arrived), func(i int) time.Time { return s(c.arrived[i]) }, latest, 10*time.Second)
			if same != c.same || !of.start.Equal(s(c.start)) || !of.end.Equal(s(c.start+10)) || !last.Equal(s(c.last)) {
				t.Errorf("%d of %v, the last at %v", same, of, last)
			}
		})
	}
}

func TestAWindowHasPassedWhenNothingMoreCame(t *testing.T) {
	of := spanOf(time.Unix(1_800_000_000, 0), time.Minute)
	for _, c := range []struct {
		tip  time.Time
		want bool
	}{
		{time.Time{}, false}, {of.end, false}, {of.end.Add(windowAllowance - time.Millisecond), false}, {of.end.Add(windowAllowance), true},
	} {
		if got := of.passed(c.tip); got != c.want {
			t.Errorf("at %v: %v", c.tip, got)
		}
	}
}

func TestAnEventNamesItsWindowInLambdasForm(t *testing.T) {
	a := about{spanOf(time.Date(2020, 12, 9, 7, 4, 30, 5, time.UTC), 2*time.Minute), []byte(`{"1":282}`), "shardId-000000000006", "arn:s", false, false}
	event, n := fill(Source{}, nil, a.tail())
	const want = `{"Records":[],"window":{"start":"2020-12-09T07:04:00Z","end":"2020-12-09T07:06:00Z"},"state":{"1":282},` +
		`"shardId":"shardId-000000000006","eventSourceARN":"arn:s","isFinalInvokeForWindow":false,"isWindowTerminatedEarly":false}`
	if string(event) != want || n != 0 {
		t.Errorf("got  %s\nwant %s", event, want)
	}
	if a.final, a.early = true, true; !strings.HasSuffix(a.tail(), `"isFinalInvokeForWindow":true,"isWindowTerminatedEarly":true}`) {
		t.Error(a.tail())
	}
}

func TestTheStateInAnAnswer(t *testing.T) {
	for answer, want := range map[string]string{
		`{"state":{"a":1}}`:                          `{"a":1}`,
		`{"batchItemFailures":[],"state": {"a": 1}}`: `{"a": 1}`,
		`{"state":{}}`:                               `{}`,
		`{"state":[1]}`:                              `[1]`,
		// All other answers fail the call.
		``: "", ` `: "", `null`: "", `{}`: "", `{"state":null}`: "", `{"State":{}}`: "", `"x"`: "", `[]`: "", `{"state":`: "", `done`: "",
	} {
		got, err := stateOf([]byte(answer))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v", answer, got, err)
		}
	}
}

func FuzzStateOf(f *testing.F) {
	f.Add([]byte(`{"state":{"a":1}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		state, err := stateOf(answer)
		if err == nil && (len(state) == 0 || bytes.Equal(state, []byte("null"))) {
			t.Fatalf("%q", state)
		}
	})
}
