package main

import (
	"database/sql"
	"fmt"
	unescape "html"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/sqlitefile"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// situation is a state of an application, with the statements about it that every tool must make.
type situation struct {
	name    string
	open    int
	held    int
	living  int
	leader  string
	state   string
	say     string // a part of the sentence of all tools
	cause   health.Cause
	never   []string // what no tool may say
	prepare func(s *stage)
}

// stage prepares the application of one situation in a store. If that fails, the test fails.
type stage struct {
	t      *testing.T
	store  lease.Store
	app    string
	lives  []string // the sessions of the workers that live
	counts map[string]uint64
}

func (s *stage) apply(actions ...lease.Action) {
	s.t.Helper()
	did, err := s.store.Apply(s.t.Context(), s.app, actions)
	if err != nil || slices.Contains(did, false) {
		s.t.Fatalf("%s: %v, %v", s.app, did, err)
	}
}

func (s *stage) beat(r lease.Report) {
	s.t.Helper()
	if _, err := s.store.Heartbeat(s.t.Context(), s.app, r); err != nil {
		s.t.Fatalf("%s: %v", s.app, err)
	}
	s.counts[r.Session]++
}

// worker adds a worker to the application. If lives is true, the worker keeps sending heartbeats
// (see stayAlive). The tools consider another worker dead after its failover time.
func (s *stage) worker(name string, lives bool, change ...func(*lease.Report)) {
	times := lease.Times{Heartbeat: 100 * time.Millisecond, Failover: 600 * time.Millisecond, Handoff: time.Second}
	if lives {
		times.Failover = time.Minute // a slow machine may read the page only once in that time
	}
	r := lease.Report{Session: "s-" + name, Name: name, First: true, Times: times}
	for _, c := range change {
		c(&r)
	}
	s.beat(r)
	if lives {
		s.lives = append(s.lives, r.Session)
	}
}

func (s *stage) leads(name string) {
	if ok, err := s.store.Lead(s.t.Context(), s.app, "s-"+name, 0); !ok || err != nil {
		s.t.Fatal(ok, err)
	}
}

// key returns the key of a shard. Each application has its own stream.
func (s *stage) key(n int) lease.Key {
	return lease.Key{Stream: s.app, Shard: fmt.Sprintf("shardId-%012d", n)}
}

// shard adds a lease to the application. If holder is not "", the worker with this name holds the
// lease.
func (s *stage) shard(n int, holder string, change ...func(*lease.Lease)) {
	l := lease.Lease{Key: s.key(n), Epoch: 1, Position: shard.Oldest}
	for _, c := range change {
		c(&l)
	}
	s.apply(lease.Action{Kind: lease.Create, Lease: l})
	if holder != "" {
		s.apply(lease.Action{Kind: lease.Assign, Key: l.Key, Epoch: 1, Session: "s-" + holder})
	}
}

func (s *stage) end(name string) {
	s.apply(lease.Action{Kind: lease.EndSession, Session: "s-" + name, Heartbeats: s.counts["s-"+name]})
}

func finished(l *lease.Lease) { l.Position = shard.End }

func (s *stage) complains(r *lease.Report) {
	r.Troubles = []lease.Trouble{{Key: s.key(0), State: "in the handler", For: time.Hour, Why: "it hangs"}}
}

// statement contains the parts of a tool's output that are compared.
type statement struct{ open, held, living, leader, state, sentence, verdict string }

const notSaid = "?"

// times matches the parts of a sentence that depend on the moment at which a tool read the store.
var times = regexp.MustCompile(`(, behind)?( since \d\d:\d\d:\d\d UTC| for at least \d+ (s|min)|, since unknown)|\d+ (s|min|h) behind, | in about [^.;]*`)

// lastError matches the error in a sentence.
var lastError = regexp.MustCompile(`; last error: [^;]*`)

func said(state, sentence string) (string, string) {
	words, rest, _ := strings.Cut(sentence, ": ")
	if strings.ReplaceAll(words, " ", "_") != state && !strings.HasPrefix(sentence, "unknown") {
		rest = sentence
	}
	return state, times.ReplaceAllString(rest, "")
}

// words returns the parts of a verdict after its sentence in one line.
func words(v health.Verdict) string {
	var all []string
	if because := v.Because(); because != "" {
		all = append(all, "Cause:", because)
	}
	if outlook := v.Outlook(); outlook != "" {
		all = append(all, "Outlook:", outlook)
	}
	for i, s := range v.Steps {
		if i == 0 {
			all = append(all, "Next steps:")
		}
		if s.Command != "" {
			all = append(all, s.Do+": "+s.Command)
		} else {
			all = append(all, s.Do+".")
		}
	}
	return times.ReplaceAllString(strings.Join(all, " "), "")
}

// wordsOn returns the parts of the verdict on a web page after its sentence, in one line.
func wordsOn(page string) string {
	_, rest, there := strings.Cut(page, `<section class="verdict" aria-label="Verdict">`)
	if !there {
		return ""
	}
	section, _, _ := strings.Cut(rest, "</section>")
	text := regexp.MustCompile(`</?[a-z]+>`).ReplaceAllString(section, "")
	return times.ReplaceAllString(strings.Join(strings.Fields(unescape.UnescapeString(text)), " "), "")
}

// TestToolsSayTheSame compares the statements of the page, the exporter, the doctor, group lag and
// group describe about the same applications.
func TestToolsSayTheSame(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	file := filepath.Join(t.TempDir(), "weir.db")
	store, err := sqlitefile.Open(t.Context(), file, true)
	if err != nil {
		t.Fatal(err)
	}
	all := situations()
	stages := make([]*stage, len(all))
	for i, of := range all {
		stages[i] = &stage{t: t, store: store, app: fmt.Sprintf("app-%02d", i), counts: map[string]uint64{}}
		server.CreateStream(stages[i].app, 4)
		of.prepare(stages[i])
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	stayAlive(t, file, stages)
	flag := "--store=sqlite:" + file
	page, exporter := serving(t, "dashboard", endpoint, flag, "--addr=0"), serving(t, "exporter", endpoint, flag, "--addr=0", "--every=1s", "--read-share=1")
	for range 2 { // a silent worker is known after some looks
		clitest.Get(t, page)
		time.Sleep(5500 * time.Millisecond)
	}
	t.Run("tools", func(t *testing.T) { // it ends when all situations have
		for i, of := range all {
			t.Run(of.name, func(t *testing.T) {
				t.Parallel()
				of.check(t, stages[i].app, page, exporter, endpoint, flag)
			})
		}
	})
}

// stayAlive replaces the table of sessions by a view in which the heartbeat counts of the workers
// that live grow with the time. So each tool sees a heartbeat between two reads, while a goroutine
// that sends heartbeats could be too slow.
func stayAlive(t *testing.T, file string, stages []*stage) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run := func(statement string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	run("CREATE TABLE living (app TEXT, session TEXT)")
	for _, s := range stages {
		for _, session := range s.lives {
			run("INSERT INTO living VALUES (?, ?)", s.app, session)
		}
	}
	var columns string
	const others = "SELECT group_concat('s.' || name, ', ') FROM pragma_table_info('weir_sessions') WHERE name <> 'beat'"
	if err := db.QueryRowContext(t.Context(), others).Scan(&columns); err != nil {
		t.Fatal(err)
	}
	run("ALTER TABLE weir_sessions RENAME TO kept_sessions")
	run("CREATE VIEW weir_sessions AS SELECT " + columns + `, s.beat + CASE WHEN l.app IS NULL THEN 0
		ELSE CAST(1000 * unixepoch('subsec') AS INTEGER) END AS beat
		FROM kept_sessions s LEFT JOIN living l ON l.app = s.app AND l.session = s.session`)
}

// check compares the statements of all tools about the situation with the expected ones.
func (of *situation) check(t *testing.T, app, page, exporter string, flags ...string) {
	t.Helper()
	statements := ask(t, app, page, exporter, flags...)
	if lag := statements["lag"]; strings.Contains(statements["describe"].verdict, "; last error: ") {
		lag.sentence = lastError.ReplaceAllString(lag.sentence, "") // it shows no cause, which quotes the error
		statements["lag"] = lag
	}
	want := statement{
		fmt.Sprint(of.open), fmt.Sprint(of.held), fmt.Sprint(of.living), of.leader, of.state,
		statements["lag"].sentence, statements["describe"].verdict,
	}
	if !strings.Contains(want.verdict, of.cause.String()) || of.cause == health.NoCause && strings.HasPrefix(want.verdict, "Cause: ") {
		t.Errorf("the verdict is %q, want the cause %q", want.verdict, of.cause)
	}
	for tool, got := range statements {
		for _, part := range []struct{ what, got, want string }{
			{"open", got.open, want.open}, {"held", got.held, want.held}, {"living", got.living, want.living},
			{"leader", got.leader, want.leader}, {"state", got.state, want.state},
			{"sentence", got.sentence, want.sentence}, {"verdict", got.verdict, want.verdict},
		} {
			if part.got != notSaid && part.got != part.want {
				t.Errorf("%s: %s is %q, want %q", tool, part.what, part.got, part.want)
			}
		}
		if got.sentence != notSaid && !strings.Contains(got.sentence, of.say) {
			t.Errorf("%s says %q without %q", tool, got.sentence, of.say)
		}
	}
	if len(of.never) == 0 {
		return
	}
	for tool, text := range texts(t, app, page, flags...) {
		for _, never := range of.never {
			if strings.Contains(text, never) {
				t.Errorf("%s says %q: %s", tool, never, text)
			}
		}
	}
}

// serving starts a command that serves over HTTP, and returns its address.
func serving(t *testing.T, args ...string) string {
	t.Helper()
	c := clitest.Start(t, "", args...)
	link := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
	c.Err.Await(t, "the address", link.MatchString)
	t.Cleanup(func() { c.Interrupt(t) })
	return link.FindString(c.Err.String())
}

// texts returns the outputs of the tools that users read.
func texts(t *testing.T, app, page string, flags ...string) map[string]string {
	t.Helper()
	_, shown := clitest.Get(t, page+"app?app="+app)
	_, described, _ := clitest.Answered(t, "", append([]string{"group", "describe", "--app=" + app, "--look=1s"}, flags...)...)
	_, diagnosed, _ := clitest.Answered(t, "", append([]string{"doctor", "--app=" + app, "--look=1s"}, flags...)...)
	return map[string]string{"page": shown, "describe": described, "doctor": diagnosed}
}

// conclude adds a verdict to the statement.
func (s *statement) conclude(v health.Verdict) {
	s.state, s.sentence = said(v.State.Label(), v.Sentence)
	s.verdict = words(v)
}

// ask returns the statement of each tool.
func ask(t *testing.T, app, page, exporter string, flags ...string) map[string]statement {
	t.Helper()
	run := func(args ...string) string {
		_, out, said := clitest.Answered(t, "", append(append(args, "--app="+app, "--look=1s", "-o=json"), flags...)...)
		if out == "" {
			t.Fatal(args, said)
		}
		return out
	}
	type result struct {
		Verdict                       health.Verdict
		Leases, Shards, Held, Workers int
		Leader                        string
	}
	all := map[string]statement{}
	d := clitest.Decode[struct {
		Leader          *struct{ Worker string }
		Workers, Leases []struct{ State string }
		Verdict         health.Verdict
	}](t, run("group", "describe"))
	open, held, living := 0, 0, 0
	for _, l := range d.Leases {
		if l.State != "finished" {
			open++
		}
		if slices.Contains([]string{"held", "moving", "pausing"}, l.State) {
			held++
		}
	}
	for _, w := range d.Workers {
		if w.State == "alive" || w.State == "leaving" {
			living++
		}
	}
	leader := ""
	if d.Leader != nil {
		leader = d.Leader.Worker
	}
	described := statement{open: fmt.Sprint(open), held: fmt.Sprint(held), living: fmt.Sprint(living), leader: leader}
	described.conclude(d.Verdict)
	all["describe"] = described

	l := clitest.Decode[struct {
		State, Sentence string
		Shards          []any
	}](t, run("group", "lag"))
	of := statement{open: fmt.Sprint(len(l.Shards)), held: notSaid, living: notSaid, leader: notSaid, verdict: notSaid}
	of.state, of.sentence = said(l.State, l.Sentence)
	all["lag"] = of

	r := clitest.Decode[result](t, run("doctor"))
	of = statement{open: fmt.Sprint(r.Leases), held: notSaid, living: fmt.Sprint(r.Workers), leader: r.Leader}
	of.conclude(r.Verdict)
	all["doctor"] = of

	_, text := clitest.Get(t, exporter+"lag.json?app="+app)
	r = clitest.Decode[result](t, text)
	of = statement{open: fmt.Sprint(r.Shards), held: fmt.Sprint(r.Held), living: fmt.Sprint(r.Workers), leader: notSaid}
	of.conclude(r.Verdict)
	all["exporter"] = of

	_, list := clitest.Get(t, page)
	row := regexp.MustCompile(`>` + app + `</a></th><td><span class="state (\w+)">[^<]*</span> ([^<]*)</td>.*data-l="Shards">(\d+)</td><td data-l="Workers">(\d+)</td>`).FindStringSubmatch(list)
	if row == nil {
		t.Fatalf("the page does not list %s: %s", app, list)
	}
	state := strings.Replace(row[1], "finished", "ok", 1)
	of = statement{open: row[3], held: notSaid, living: row[4], leader: ""}
	of.state, of.sentence = said(state, unescape.UnescapeString(row[2]))
	_, shown := clitest.Get(t, page+"app?app="+app)
	if leads := regexp.MustCompile(`<th scope="row">([^<]*) <span class="tag">leads</span>`).FindStringSubmatch(shown); leads != nil {
		of.leader = leads[1]
	}
	of.verdict = wordsOn(shown)
	all["page"] = of
	return all
}
