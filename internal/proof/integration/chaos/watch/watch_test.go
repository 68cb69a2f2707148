package watch

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
)

const (
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

var bounds = Bounds{Delay: 2 * time.Second, Over: 2 * time.Second, Under: 2 * time.Second, Silence: 3 * time.Second, Thawed: 5 * time.Second}

// tale is an artificial history: one shard with a record every 100 ms for 30 s. Process a.1 handles
// one record per call and is killed after 10 s. Process b.1 continues after 16 s, and handles the
// last two records of a.1 again. Both are scraped each second.
type tale struct {
	verdict.History
	seen Seen
	now  map[string]*[]Sample // by metric and instance
}

func (t *tale) sample(metric, instance string, at int64, value float64) {
	key := metric + " " + instance
	if t.now[key] == nil {
		t.now[key] = new([]Sample)
	}
	*t.now[key] = append(*t.now[key], Sample{at, value})
}

func put(number int) verdict.Put {
	return verdict.Put{Key: "k", Number: number, At: int64(number) * 100 * ms}
}

func handle(j *verdict.Journal, number int, at int64) {
	epoch := map[string]uint64{"a.1": 1, "b.1": 2}[j.Life]
	j.Handlings = append(j.Handlings, verdict.Handling{Put: put(number), Shard: "one", Epoch: epoch, Start: at, End: at + 2*ms})
	j.Calls = append(j.Calls, verdict.Call{Shard: "one", Epoch: epoch, Start: at, End: at + 3*ms})
}

// newTale creates a tale. change may change or drop a scraped value.
func newTale(change func(metric string, at int64, value float64) (float64, bool)) *tale {
	t := &tale{now: map[string]*[]Sample{}, seen: Seen{}}
	a, b := verdict.Journal{Life: "a.1"}, verdict.Journal{Life: "b.1"}
	for n := 1; n <= 300; n++ {
		t.Puts = append(t.Puts, put(n))
		if n <= 100 {
			handle(&a, n, put(n).At+10*ms)
		}
		if n >= 99 {
			handle(&b, n, max(put(n).At+10*ms, 16*sec+int64(n-99)*5*ms))
		}
	}
	t.Journals = []verdict.Journal{a, b}
	for at := 500 * ms; at < 32*sec; at += sec {
		instance, life, records, lag := "", "", 0.0, 0.0
		switch {
		case at < 10*sec:
			instance, life, records = "1", "a.1", float64((at-13*ms)/(100*ms))
		case at > 17*sec:
			instance, life, records = "2", "b.1", min(202, float64((at-13*ms)/(100*ms)-98))
		default:
			continue
		}
		values := map[string]float64{Build: 1, Handled: records, Lag: lag, Dropped: 0}
		for _, metric := range Metrics() {
			value, told := values[metric], true
			if change != nil {
				value, told = change(metric, at, value)
			}
			if told {
				t.sample(metric, instance+" "+life, at, value)
			}
		}
	}
	for key, samples := range t.now {
		parts := strings.Fields(key)
		t.seen[parts[0]] = append(t.seen[parts[0]], Series{Labels: map[string]string{"instance": parts[1], "worker": parts[2], "shard": "one"}, Samples: *samples})
	}
	return t
}

func TestMetricsThatAgreeWithTheFiles(t *testing.T) {
	tale := newTale(nil)
	r := Compare(tale.History, tale.seen, bounds)
	if len(r.Wrong) > 0 {
		t.Fatalf("%q", r.Wrong)
	}
	counted, written := r.Again(300)
	if counted != 2 || written != 2 || r.Written != 302 || r.Counted != 94+202 || r.Unseen != 6 || r.Lives != 2 || r.Scrapes != 25 {
		t.Errorf("%d and %d again: %+v", counted, written, r)
	}
	if r.Silences != 1 || r.AsAbsent != 1 || r.AsLag != 0 || r.Longest < 5*time.Second || r.LagSamples != 25 {
		t.Errorf("%+v", r)
	}
}

func TestMetricsThatDoNotAgree(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(metric string, at int64, value float64) (float64, bool)
		want   string
	}{
		{"a counter stands still", func(m string, at int64, v float64) (float64, bool) {
			if m == Handled && at < 10*sec {
				v = min(v, 50)
			}
			return v, true
		}, "a.1 counts 50 records, 4.3"},
		{"a counter counts what nobody handled", func(m string, at int64, v float64) (float64, bool) {
			if m == Handled && at > 30*sec {
				v++
			}
			return v, true
		}, "b.1 counts 203 records where the file has 202, of 202 in all"},
		{"a counter counts too early", func(m string, at int64, v float64) (float64, bool) {
			if m == Handled && at < 6*sec {
				v += 30
			}
			return v, true
		}, "a.1 counts 34 records where the file has 4, of 100 in all"},
		{"a gauge tells of lag where there is none", func(m string, at int64, v float64) (float64, bool) {
			if m == Lag && at == 5500*ms {
				v = 4
			}
			return v, true
		}, "a.1 says that one is 4s behind"},
	} {
		tale := newTale(c.change)
		r := Compare(tale.History, tale.seen, bounds)
		if !slices.ContainsFunc(r.Wrong, func(w string) bool { return strings.Contains(w, c.want) }) {
			t.Errorf("%s: %q", c.name, r.Wrong)
		}
	}
}

// A process that reports no lag while it handles nothing is wrong, unless it was frozen.
func TestASilenceThatNobodyTells(t *testing.T) {
	tale := newTale(nil)
	for at := 10500 * ms; at < 17*sec; at += sec { // the process answers scrapes, but does nothing else
		for m, v := range map[string]float64{Build: 1, Handled: 100, Lag: 0, Dropped: 0} {
			tale.seen[m] = append(tale.seen[m], Series{
				Labels: map[string]string{"instance": "1", "worker": "a.1", "shard": "one"}, Samples: []Sample{{at, v}},
			})
		}
	}
	r := Compare(tale.History, tale.seen, bounds)
	if r.Silences != 1 || r.AsAbsent+r.AsLag != 0 || r.Off == 0 || len(r.Wrong) < 2 || !strings.Contains(r.Wrong[len(r.Wrong)-1], "no metric tells of it") {
		t.Errorf("%+v", r)
	}
	tale.Faults = []verdict.Fault{{Kind: "freeze", Lives: []string{"a.1"}, From: 10 * sec, To: 16 * sec, Froze: true}}
	if r := Compare(tale.History, tale.seen, bounds); r.Off > 0 || r.Stale == 0 {
		t.Errorf("of a process that was frozen: %+v", r)
	}
}

func TestWhoseFirstCallIsAtWork(t *testing.T) {
	terms := []term{{10 * sec, 12 * sec}, {30 * sec, 31 * sec}}
	for at, want := range map[int64]bool{0: true, 11 * sec: true, 12 * sec: false, 20 * sec: false, 28*sec + ms: true, 30 * sec: true, 31 * sec: false, 99 * sec: false} {
		if begins(terms, at) != want {
			t.Errorf("at %v: %t", time.Duration(at), !want)
		}
	}
	if !begins(nil, 5*sec) {
		t.Error("without any call it has not begun")
	}
}
