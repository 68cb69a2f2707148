// Command chaos runs an application of real worker processes on a real store. For some minutes it
// makes processes, connections, disks, the store and Kinesis fail. Then it reports whether weir
// kept its promises, according to the output of the handlers.
//
// A seed determines the faults, with their order, kinds and durations. The timing of real processes
// is not reproducible. The same seed therefore gives the same faults, but not the same run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// settings are the settings of a run.
type settings struct {
	Store     string        `json:"store"`
	Reading   string        `json:"reading"`
	For       time.Duration `json:"for_ns"`
	Workers   int           `json:"workers"`
	Shards    int           `json:"shards"`
	Rate      int           `json:"rate"`
	Seed      uint64        `json:"seed"`
	Profile   string        `json:"profile"`
	Sink      string        `json:"sink,omitempty"`    // "" means a journal
	Failing   bool          `json:"failing,omitempty"` // handlers fail, and records are dead-lettered
	Watched   bool          `json:"watched,omitempty"` // a Prometheus server scrapes the workers
	Beat      time.Duration `json:"beat_ns"`
	Failover  time.Duration `json:"failover_ns"`
	Allowance time.Duration `json:"allowance_ns"`
}

var stores = map[string][]string{
	"sqlite": {servers.SQLiteStore}, "postgres": {servers.PostgresStore}, "dynamodb": {servers.DynamoDBStore}, "redis": {servers.RedisStore},
	"all": {servers.SQLiteStore, servers.PostgresStore, servers.DynamoDBStore, servers.RedisStore},
}

const (
	broken  = 1 // exit code: a promise was broken
	failed  = 1 // exit code: the run failed
	misused = 2 // exit code: the command line is wrong
)

func main() {
	if told := os.Getenv(workerVariable); told != "" {
		os.Exit(runWorker(told))
	}
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

// runWorker is the main function of a worker process.
func runWorker(told string) int {
	var w worker
	err := json.Unmarshal([]byte(told), &w)
	if err == nil {
		err = w.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return failed
	}
	return 0
}

func command(args []string, out, log io.Writer) int {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(log)
	var s settings
	store := flags.String("store", "sqlite", "sqlite, postgres, dynamodb, redis, or all, one after the other")
	flags.StringVar(&s.Reading, "reading", byBoth, "how workers read: polling, fanout, or both, every other one by fan-out")
	flags.DurationVar(&s.For, "for", 2*time.Minute, "how long faults are inflicted on each store; the last one is played to its end")
	flags.IntVar(&s.Workers, "workers", 5, "worker processes")
	flags.IntVar(&s.Shards, "shards", 8, "shards at first; splits and merges keep them between half and three times that")
	flags.IntVar(&s.Rate, "rate", 300, "records a second")
	flags.Uint64Var(&s.Seed, "seed", uint64(time.Now().UnixNano())%1_000_000, "decides the faults; by default by chance")
	flags.StringVar(&s.Profile, "profile", "all", "kinds of fault: all, workers, store, kinesis, shards, or names, with ; between them; list shows them")
	flags.StringVar(&s.Sink, "sink", "", "what is judged is that each record is there once: sqlsink for a row of the store's database, with -store postgres; s3sink for a line of an object in S3")
	flags.BoolVar(&s.Failing, "failing", false, "handlers fail at some records for ever, at some by chance, and at all for a while; records are given up to a destination that fails too")
	flags.BoolVar(&s.Watched, "watched", false, "a Prometheus scrapes the workers each second, and what it has seen is compared with what handlers wrote")
	flags.DurationVar(&s.Beat, "beat", time.Second, "the workers' heartbeat interval")
	flags.DurationVar(&s.Failover, "failover", 5*time.Second, "the workers' failover time")
	flags.DurationVar(&s.Allowance, "allowance", 4*time.Second, "what the machine and the handlers, which are slow on purpose, may add to each bound")
	keep := flags.String("keep", "", "directory for the files, a new one; by default they are kept only when a promise was broken")
	format := flags.String("o", "table", "table or json")
	again := flags.String("judge", "", "judge the files in this directory, of an earlier run, instead of making one")
	if err := flags.Parse(args); err != nil {
		return misused
	}
	if s.Profile == "list" {
		for _, k := range kinds {
			fmt.Fprintf(out, "%-10s %s\n", k.profile, k.name)
		}
		return 0
	}
	if stores[*store] == nil || !slices.Contains(readings, s.Reading) || s.Workers < 1 || s.Shards < 1 || s.Rate < 1 || flags.NArg() > 0 || *format != "table" && *format != "json" {
		fmt.Fprintln(log, "chaos: the command line makes no sense; see -help")
		return misused
	}
	for _, name := range stores[*store] {
		s := s
		s.Store = name
		if _, err := newScript(s); err != nil && *again == "" {
			fmt.Fprintln(log, "chaos:", err)
			return misused
		}
	}
	if wrong := s.sinkMisused(*store); wrong != "" {
		fmt.Fprintln(log, "chaos:", wrong)
		return misused
	}
	if s.Failover < 3*s.Beat {
		fmt.Fprintln(log, "chaos: -failover has to be three times -beat at least")
		return misused
	}
	if *again != "" {
		r, err := judgeAgain(*again)
		return show(r, err, *format, out, log)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // a second Ctrl-C ends the program immediately
	worst := 0
	for _, s.Store = range stores[*store] {
		if ctx.Err() != nil {
			break
		}
		r, err := run(ctx, s, *keep, log)
		worst = max(worst, show(r, err, *format, out, log))
	}
	return worst
}

func show(r *report, err error, format string, out, log io.Writer) int {
	if err != nil {
		fmt.Fprintln(log, "chaos:", err)
		return failed
	}
	if format == "json" {
		err = r.writeJSON(out)
	} else {
		r.write(out)
	}
	if err != nil || !r.clean() {
		return broken
	}
	return 0
}

// sinkMisused returns the reason why settings cannot be combined. It returns "" if they can.
func (s *settings) sinkMisused(store string) string {
	switch {
	case s.Sink != "" && s.Sink != sqlSink && s.Sink != s3Sink:
		return fmt.Sprintf("-sink %q is neither %s nor %s", s.Sink, sqlSink, s3Sink)
	case s.Sink == sqlSink && store != "postgres":
		return "-sink sqlsink needs -store postgres"
	case s.Watched && (s.Sink != "" || s.Failing):
		return "-watched goes with neither -sink nor -failing: metrics are compared with journals of handlers that succeed"
	case s.Sink != "" && s.Failing:
		return "-failing and -sink exclude each other: what handlers fail at is judged by their journals"
	}
	return ""
}

// judge computes the verdict for a history and adds it to the report.
func (r *report) judge(h verdict.History, dir string) (err error) {
	switch {
	case r.Sink != "":
		r.Put, r.faults = len(h.Puts), len(h.Faults)
	case r.Failing:
		h.Letters, err = readLetters(dir)
		h.Poison, h.AnyWait = poison, true
		r.Letters = len(h.Letters)
		r.Verdict = verdict.Judge(h)
	default:
		r.Verdict = verdict.Judge(h)
		r.Metrics, err = compare(h, dir, watchedBounds(r.settings))
	}
	return err
}

// run makes one run and computes its verdict.
func run(ctx context.Context, s settings, keep string, log io.Writer) (*report, error) {
	dir, err := directory(keep, s.Store)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, settingsFile), text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	st := &stage{settings: s, ctx: ctx, dir: dir, log: log, times: times{beat: s.Beat, failover: s.Failover}, skipped: map[string]bool{}, started: time.Now()}
	r := &report{settings: s, Dir: dir}
	began := time.Now()
	var failed error
	err = servers.Run(ctx, func(t testing.TB) {
		failed = errors.New("it ended early")
		_, r.Machine, failed = st.play(t)
	})
	if err = errors.Join(failed, err); err != nil {
		return nil, fmt.Errorf("%s: %w (the files are in %s)", s.Store, err, dir)
	}
	r.Took, r.Wrong, r.Subscribed, r.Polled, r.Effects = time.Since(began), st.wrong, st.subscribed, st.polled, st.effects
	h, err := readHistory(dir, s.Allowance)
	if err != nil {
		return nil, err
	}
	if err := r.judge(h, dir); err != nil {
		return nil, err
	}
	if keep == "" && r.clean() {
		r.Dir = ""
		return r, os.RemoveAll(dir)
	}
	return r, nil
}

// directory creates the directory for the files of a run.
func directory(keep, store string) (string, error) {
	if keep == "" {
		return os.MkdirTemp("", "weir-chaos-")
	}
	if err := os.MkdirAll(keep, 0o700); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(filepath.Join(keep, store))
	if err != nil {
		return "", err
	}
	return dir, os.Mkdir(dir, 0o700)
}

// judgeAgain computes the verdict for the files of an earlier run.
func judgeAgain(dir string) (*report, error) {
	text, err := os.ReadFile(filepath.Join(dir, settingsFile))
	if err != nil {
		return nil, err
	}
	r := &report{Dir: dir}
	if err := json.Unmarshal(text, &r.settings); err != nil {
		return nil, err
	}
	if r.Sink != "" {
		return nil, errors.New("what a run with -sink is judged by is gone with its database or bucket")
	}
	h, err := readHistory(dir, r.Allowance)
	if err != nil {
		return nil, err
	}
	return r, r.judge(h, dir)
}
