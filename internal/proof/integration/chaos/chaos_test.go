package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/leaktest"
)

// TestMain runs the test binary as a worker if it was started as a worker.
func TestMain(m *testing.M) {
	if told := os.Getenv(workerVariable); told != "" {
		os.Exit(runWorker(told))
	}
	flag.Parse()
	os.Exit(leaktest.Run(m))
}

// TestAShortStorm runs the command itself with short times. The store is a file.
func TestAShortStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	keep := t.TempDir()
	var out bytes.Buffer
	args := []string{
		"-store", "sqlite", "-for", "22s", "-beat", "300ms", "-failover", "1500ms", "-workers", "4", "-rate", "200", "-seed", "7", "-o", "json", "-allowance", "6s",
		"-profile", "kill the leader;freeze, long;split while the owner is frozen;the store's file is locked", "-keep", keep,
	}
	code := command(args, &out, logger{t})
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("exit code %d: %v: %s", code, err, &out)
	}
	if code != 0 || !r.clean() {
		t.Fatalf("exit code %d: %q %q", code, r.Violations, r.Wrong)
	}
	if r.Reading != byBoth || r.Subscribed == 0 || r.Polled == 0 {
		t.Errorf("read by %s, with %d subscriptions and %d polls", r.Reading, r.Subscribed, r.Polled)
	}
	if len(r.Kinds) < 2 || r.Put < 1000 || r.Handled < r.Put || r.Saves == 0 {
		t.Errorf("too little happened: %s", &out)
	}

	// Compute the verdict for the same files again, with one line removed.
	dir := filepath.Join(keep, servers.SQLiteStore)
	journals, err := filepath.Glob(filepath.Join(dir, "*"+journalSuffix))
	if err != nil || len(journals) < 4 {
		t.Fatalf("%q, %v", journals, err)
	}
	for _, path := range journals {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var kept []string
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "record\tkey-007\t3\t") {
				kept = append(kept, line)
			}
		}
		if err := os.WriteFile(path, []byte(strings.Join(kept, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out.Reset()
	if code := command([]string{"-judge", dir}, &out, logger{t}); code != broken || !strings.Contains(out.String(), "lost: number 3 of key key-007") {
		t.Errorf("a record less: exit code %d: %s", code, &out)
	}
}

// TestAStormThatIsWatched compares the metrics in Prometheus with the files.
func TestAStormThatIsWatched(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	servers.Promtool(t) // without Prometheus, the test is skipped or fails
	var out bytes.Buffer
	args := []string{
		"-watched", "-store", "sqlite", "-for", "12s", "-beat", "300ms", "-failover", "1500ms", "-workers", "3", "-rate", "200", "-seed", "7", "-o", "json", "-allowance", "6s",
		"-profile", "kill;freeze, long", "-keep", t.TempDir(),
	}
	code := command(args, &out, logger{t})
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Metrics == nil {
		t.Fatalf("exit code %d: %v: %s", code, err, &out)
	}
	if code != 0 {
		t.Fatalf("exit code %d: %q %q %q", code, r.Violations, r.Wrong, r.Metrics.Wrong)
	}
	counted, written := r.Metrics.Again(r.Put)
	t.Logf("%d records, %d handled again by the counters, %d by the files; %d scrapes of counters, %d of gauges", r.Put, counted, written, r.Metrics.Scrapes, r.Metrics.LagSamples)
	if r.Metrics.Scrapes < 20 || r.Metrics.LagSamples < 20 || r.Metrics.Lives < 3 || counted < 0 {
		t.Errorf("too little was seen: %+v", r.Metrics)
	}
}

type logger struct{ *testing.T }

func (l logger) Write(p []byte) (int, error) {
	l.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func TestTheScriptIsTheSeeds(t *testing.T) {
	text := func(seed uint64, store string) string {
		s, err := newScript(settings{Seed: seed, Profile: "all", Store: store, Reading: byBoth, Sink: s3Sink, Failing: true})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for range 100 {
			r := s.next()
			fmt.Fprintln(&b, r.kind.name, r.mode, r.pick, r.long, r.late)
		}
		return b.String()
	}
	for _, store := range []string{servers.SQLiteStore, servers.PostgresStore, servers.DynamoDBStore, servers.RedisStore} {
		one := text(1, store)
		if one != text(1, store) {
			t.Errorf("%s: not the same twice", store)
		}
		if one == text(2, store) {
			t.Errorf("%s: the seed decides nothing", store)
		}
		for _, k := range kinds {
			there := strings.Count(one, k.name+" ")
			if can := k.stores == nil || strings.Contains(strings.Join(k.stores, ","), store); can != (there > 0) {
				t.Errorf("%s: %d times %q", store, there, k.name)
			}
			for _, mode := range k.modes {
				if there > 0 && there >= 2*len(k.modes) && !strings.Contains(one, k.name+" "+mode+" ") {
					t.Errorf("%s: never %q with %q in %d", store, k.name, mode, there)
				}
			}
		}
	}
}

func TestWrongEffectsAreNoticed(t *testing.T) {
	put := func(numbers ...int) (all []verdict.Put) {
		for _, n := range numbers {
			all = append(all, verdict.Put{Key: "a", Number: n})
		}
		return append(all, verdict.Put{Key: "b", Number: 1})
	}
	puts := put(1, 2, 3)
	for i := range puts {
		puts[i].At = 7 // rows do not contain it
	}
	for _, c := range []struct {
		rows []verdict.Put
		want string
	}{
		{put(1, 2, 3), ""},
		{put(1, 2), "4 records have 3 effects: 1 have none, 0 are there again, 0 are out of order, 0 are of no record"},
		{put(1, 2, 2, 3), "4 records have 5 effects: 0 have none, 1 are there again, 0 are out of order, 0 are of no record"},
		{put(1, 3, 2), "4 records have 4 effects: 0 have none, 0 are there again, 2 are out of order, 0 are of no record"},
		{put(1, 2, 3, 4), "4 records have 5 effects: 0 have none, 0 are there again, 0 are out of order, 1 are of no record"},
	} {
		if got := wrongEffects(puts, c.rows); got != c.want {
			t.Errorf("%v: %q, want %q", c.rows, got, c.want)
		}
	}
}

func TestProfiles(t *testing.T) {
	for _, c := range []struct {
		profile, store, reading string
		kinds                   int
		err                     string
	}{
		{"workers", servers.SQLiteStore, "", 11, ""},
		{"store", servers.SQLiteStore, "", 4, ""},
		{"store", servers.PostgresStore, "", 5, ""},
		{"kinesis", servers.SQLiteStore, "", 4, ""},
		{"kinesis", servers.SQLiteStore, byFanOut, 4, ""},
		{"kinesis", servers.SQLiteStore, byPolling, 3, ""},
		{"kill; freeze, long", servers.SQLiteStore, "", 2, ""},
		{"kill;workers", servers.SQLiteStore, "", 11, ""},
		{"kill the store", servers.SQLiteStore, "", 0, "for a store of the kind SQLite"},
		{"subscriptions end", servers.SQLiteStore, byPolling, 0, "with -reading polling"},
		{"weather", servers.SQLiteStore, "", 0, `"weather"`},
	} {
		s, err := newScript(settings{Seed: 1, Profile: c.profile, Store: c.store, Reading: cmp.Or(c.reading, byBoth)})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", c.profile, err)
			}
			continue
		}
		if err != nil || len(s.kinds) != c.kinds {
			t.Errorf("%s: %v, %v", c.profile, s, err)
		}
	}
}

func TestWhoHoldsAFile(t *testing.T) {
	f := &sqlite{dir: t.TempDir()}
	for _, want := range []bool{false, true, false} {
		unlock := func() error { return nil }
		if want {
			var err error
			if unlock, err = f.lock(); err != nil {
				t.Fatal(err)
			}
		}
		if held, err := f.held(); held != want || err != nil {
			t.Errorf("held: %t, %v, want %t", held, err, want)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBounds(t *testing.T) {
	b := times{beat: time.Second, failover: 5 * time.Second}
	for _, c := range []struct {
		what      string
		got, want time.Duration
	}{
		{"taken over", b.takenOver(), 7 * time.Second},
		{"moved", b.moved(), 2 * time.Second},
		{"children", b.children(), 3 * time.Second},
		{"Kinesis back", b.kinesisBack(), 12 * time.Second},
		{"Kinesis dead", b.kinesisDead(false), 7 * time.Second},
		{"Kinesis dead, by fan-out", b.kinesisDead(true), 23 * time.Second},
		{"taken over from one that is frozen", b.fromFrozen(false), 7 * time.Second},
		{"the same by fan-out", b.fromFrozen(true), 7 * time.Second},
		{"the same by fan-out, in a hurry", times{beat: 300 * time.Millisecond, failover: 1500 * time.Millisecond}.fromFrozen(true), 6500 * time.Millisecond},
		{"subscribed again", b.subscribedAgain(), 3 * time.Second},
		{"silent", b.silent(), 33 * time.Second},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, the documentation says %v", c.what, c.got, c.want)
		}
	}
}

func TestBadCommandLines(t *testing.T) {
	for _, line := range []string{"-store tape", "-workers 0", "-beat 2s", "-o xml", "more", "-seed x", "-profile weather", "-reading tapes", "-reading polling -profile subscriptions", "-sink", "-store all -sink", "-watched -failing"} {
		if code := command(strings.Fields(line), logger{t}, logger{t}); code != misused {
			t.Errorf("%s: exit code %d", line, code)
		}
	}
	if code := command([]string{"-judge", t.TempDir()}, logger{t}, logger{t}); code != failed {
		t.Errorf("a directory without a run: exit code %d", code)
	}
}
