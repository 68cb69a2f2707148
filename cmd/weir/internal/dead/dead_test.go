//go:build unix

package dead

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/deadletter"
)

// A batch contains a bad record. The other records are handled, and the bad record becomes a dead
// letter with its payload. A retry handles the dead letter later, when the command can handle the
// record.
func TestABadRecordIsGivenUpAndHandledLater(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	text, lines := clitest.Numbered(200)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	dir := t.TempDir()
	dead := "--dead=file:" + filepath.Join(dir, "dead.ndjson")
	// Each batch is written to a new file, unless it contains the bad record.
	load := fmt.Sprintf(`cat >%s/in.$$; if grep -q '"n":57}' %[1]s/in.$$; then rm %[1]s/in.$$; echo "cannot read it" >&2; exit 3; fi; cat %[1]s/in.$$`, dir)
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--retry-min=1ms", "--retry-max=10ms", "--exec", load,
		dead, "--max-attempts=3", "--bisect", "--outage-grace=0")
	c.Out.Await(t, "all other records", func(s string) bool { return strings.Count(s, "\n") >= len(lines)-1 })
	c.Err.Await(t, "the letter", func(s string) bool { return strings.Contains(s, "records were dead-lettered") })
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d: %s", code, c.Err)
	}
	bad := slices.Index(lines, `{"key":"c","n":57}`)
	got, want := c.Out.Lines(), slices.Delete(slices.Clone(lines), bad, bad+1)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d records handled, want %d", len(got), len(want))
	}

	list := clitest.MustRun(t, "", "dead", "list", dead)
	if strings.Count(list, "\n") != 2 || !strings.Contains(list, "kept") || !strings.Contains(list, "exit status 3") || strings.Contains(list, "key") {
		t.Errorf("%s", list)
	}
	var letter deadletter.Item
	if err := json.Unmarshal([]byte(clitest.MustRun(t, "", "dead", "list", dead, "-o=json")), &letter); err != nil {
		t.Fatal(err)
	}
	if string(letter.Data) != lines[bad] || letter.Attempts != 3 || letter.Reason != deadletter.Attempts || letter.App != "a" || letter.PartitionKey != "c" {
		t.Errorf("%+v", letter)
	}
	if got := clitest.MustRun(t, "", "dead", "show", dead, "--data", letter.ID); got != lines[bad] {
		t.Errorf("its payload is %q", got)
	}
	if got := clitest.MustRun(t, "", "dead", "show", dead, letter.ID); !strings.Contains(got, `"error": "the command failed: exit status 3"`) {
		t.Errorf("%s", got)
	}

	// The first retry fails and keeps the letter. The second retry succeeds, and no dead letter is
	// left.
	if _, said := clitest.MustExit(t, cli.ExitFailed, "dead", "retry", dead, "--all", "--yes", "--exec", load); !strings.Contains(said, "letter "+letter.ID+": the command failed: exit status 3") {
		t.Errorf("%s", said)
	}
	handled := clitest.MustRun(t, "", "dead", "retry", dead, "--all", "--yes", "--exec", `cat; echo "$WEIR_STREAM $WEIR_SHARD $WEIR_LETTER"`)
	if want := lines[bad] + "\ns " + letter.Shard + " " + letter.ID + "\n1 of 1 dead letter handled.\n"; handled != want {
		t.Errorf("%q, want %q", handled, want)
	}
	if got := clitest.MustRun(t, "", "dead", "list", dead); got != "No dead letters.\n" {
		t.Errorf("%s", got)
	}
	if got := clitest.MustRun(t, "", "dead", "retry", dead, "--all", "--yes", "--exec=exit 1"); got != "No dead letters: nothing to do.\n" {
		t.Errorf("%s", got)
	}
	if got := clitest.MustRun(t, "", "dead", "list", dead, "--state=done"); !strings.Contains(got, letter.ID) {
		t.Errorf("%s", got)
	}
}

// letters writes n dead letters to a file. It returns the flag for the file and the IDs of the
// letters.
func letters(t *testing.T, n int) (flag string, ids []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dead.ndjson")
	var all []deadletter.Letter
	for i := range n {
		all = append(all, deadletter.Letter{
			Version: deadletter.Version, ID: fmt.Sprintf("s/shardId-%012d/%d", i%2, i), Stream: "s", Shard: fmt.Sprintf("shardId-%012d", i%2),
			SequenceNumber: fmt.Sprint(i), Position: fmt.Sprint(i), PartitionKey: fmt.Sprint("key ", i), Data: fmt.Append(nil, "record ", i),
			GivenUp: time.Now().Add(-time.Duration(n-i) * time.Hour), Reason: deadletter.Attempts, Attempts: 3, Error: "refused\x1b[2J",
		})
		ids = append(ids, all[i].ID)
	}
	if err := deadletter.File(path).Put(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	return "--dead=file:" + path, ids
}

func TestDeadLettersAreChosen(t *testing.T) {
	dead, ids := letters(t, 6)
	count := func(args ...string) int {
		return strings.Count(clitest.MustRun(t, "", append([]string{"dead", "list", dead, "-o=json"}, args...)...), "\n")
	}
	for args, want := range map[string]int{
		"": 6, "--shard=1": 3, "--shard=shardId-000000000000 --since=3h30m": 1, "--key=key": 0, "--error=refused": 6, "--error=timeout": 0,
		"--reason=age": 0, "--until=2h30m": 4, "--stream=other": 0, "--state=done": 0, "--state=kept --state=done": 6, ids[2] + " " + ids[3]: 2,
	} {
		if got := count(strings.Fields(args)...); got != want {
			t.Errorf("%s: %d letters, want %d", args, got, want)
		}
	}
	if got := count("--key", "key 4"); got != 1 {
		t.Errorf("a key: %d", got)
	}
	if list := clitest.MustRun(t, "", "dead", "list", dead); strings.Contains(list, "\x1b") {
		t.Errorf("%q", list)
	}
}

func TestDroppingAsksAndKeepsThePayload(t *testing.T) {
	dead, ids := letters(t, 30)
	code, out, said := clitest.Answered(t, "no\n", "dead", "drop", dead, "--all")
	if code != cli.ExitFailed || out != "" || !strings.Contains(said, "… and 10 more") || !strings.Contains(said, "This will drop 30 dead letters. Type drop") || !strings.Contains(said, "nothing was changed") {
		t.Errorf("%d %q %q", code, out, said)
	}
	if got := clitest.MustRun(t, "", "dead", "drop", dead, "--all", "--dry-run"); strings.Count(got, "\n") != 31 {
		t.Errorf("%s", got)
	}
	code, out, said = clitest.Answered(t, "drop\n", "dead", "drop", dead, ids[1], ids[3], ids[5])
	if code != cli.ExitDone || out != "3 of 3 dead letters dropped.\n" {
		t.Errorf("%d %q %q", code, out, said)
	}
	if got := clitest.MustRun(t, "", "dead", "drop", dead, "--shard=1", "--yes", "-o=json"); got != `{"letters":12,"done":12,"failed":0,"taken":0}`+"\n" {
		t.Errorf("%s", got)
	}
	if got := clitest.MustRun(t, "", "dead", "show", dead, "--data", ids[1]); got != "record 1" {
		t.Errorf("%s", got)
	}
	if got := clitest.MustRun(t, "", "dead", "list", dead); strings.Count(got, "\n") != 16 || strings.Contains(got, "dropped") {
		t.Errorf("%s", got)
	}
}

// Several processes retry the same dead letters at the same time. Each dead letter is handled once.
func TestLettersThatSeveralRetryAreHandledOnce(t *testing.T) {
	dead, _ := letters(t, 3)
	into := filepath.Join(t.TempDir(), "handled")
	args := []string{"dead", "retry", dead, "--all", "--yes", "--exec"}
	c := clitest.Start(t, "", append(args, "echo first >> "+into+"; echo begun; until [ -e "+into+".go ]; do sleep 0.01; done; echo ready")...)
	c.Out.Await(t, "the first dead letter", func(s string) bool { return strings.Contains(s, "begun") })
	if got := clitest.MustRun(t, "", append(args, "echo second >> "+into)...); got != "2 of 2 dead letters handled.\n" {
		t.Errorf("%s", got)
	}
	if err := os.WriteFile(into+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := c.Wait(t); code != cli.ExitDone || !strings.Contains(c.Out.String(), "1 of 3 dead letters handled.\n2 dead letters skipped because of changes by another process.\n") {
		t.Errorf("exit code %d: %s", code, c.Out)
	}
	if got, err := os.ReadFile(into); err != nil || string(got) != "first\nsecond\nsecond\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// If a retry is interrupted, the dead letter keeps the state begun. A person has to decide what to
// do with it.
func TestALetterThatWasInterruptedStaysBegun(t *testing.T) {
	dead, ids := letters(t, 3)
	c := clitest.Start(t, "", "dead", "retry", dead, "--all", "--yes", "--exec", `echo ready; case $WEIR_LETTER in *1) sleep 600;; esac`)
	c.Out.Await(t, "the second dead letter", func(s string) bool { return strings.Count(s, "ready") == 2 })
	c.Interrupt(t)
	states := func() (all []string) {
		for line := range strings.Lines(clitest.MustRun(t, "", "dead", "list", dead, "-o=json", "--state=kept", "--state=begun", "--state=done")) {
			var i deadletter.Item
			if err := json.Unmarshal([]byte(line), &i); err != nil {
				t.Fatal(err)
			}
			all = append(all, string(i.State))
		}
		return all
	}
	if got := states(); !slices.Equal(got, []string{"done", "begun", "kept"}) {
		t.Errorf("%q", got)
	}
	if got := clitest.MustRun(t, "", "dead", "retry", dead, "--all", "--yes", "--exec", "cat"); got != "record 2\n1 of 1 dead letter handled.\n" {
		t.Errorf("%q", got)
	}
	if got := clitest.MustRun(t, "", "dead", "retry", dead, "--all", "--state=begun", "--yes", "--exec", "cat"); got != "record 1\n1 of 1 dead letter handled.\n" {
		t.Errorf("%q", got)
	}
	if got := states(); !slices.Equal(got, []string{"done", "done", "done"}) {
		t.Errorf("%q, %q", got, ids)
	}
}

func TestLettersGoBackIntoAStream(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("again", 1)
	dead, _ := letters(t, 4)
	code, out, said := clitest.Answered(t, "retry\n", "dead", "retry", dead, endpoint, "--to-stream=again", "--shard=0")
	if code != cli.ExitDone || out != "2 of 2 dead letters handled.\n" || !strings.Contains(said, "Every application that reads again gets them again") {
		t.Errorf("%d %q %q", code, out, said)
	}
	records := server.Records("again")
	if len(records) != 2 || string(records[0].Data) != "record 0" || records[1].PartitionKey != "key 2" {
		t.Errorf("%+v", records)
	}
	if _, said := clitest.MustExit(t, cli.ExitFailed, "dead", "retry", dead, endpoint, "--to-stream=nosuch", "--all", "--yes"); !strings.Contains(said, "nosuch") {
		t.Errorf("%s", said)
	}
	if got := clitest.MustRun(t, "", "dead", "retry", dead, "--all", "--yes", "--exec=cat", "--input=json"); !strings.Contains(got, `"sequence":"1","key":"key 1","arrival":"`) {
		t.Errorf("%s", got)
	}
}

func TestWrongWordsAboutDeadLetters(t *testing.T) {
	dead, _ := letters(t, 1)
	damaged := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(damaged, []byte("<html>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	consume := []string{"consume", "--stream=s", "--app=a", "--store=memory:", "--endpoint=http://127.0.0.1:1", "--region=eu-west-1"}
	for _, row := range []struct {
		code int
		want string
		args []string
	}{
		{cli.ExitUsage, "needs --dead", []string{"dead", "list"}},
		{cli.ExitUsage, "is not a place for dead letters: use file:PATH", []string{"dead", "list", "--dead=ftp://bucket"}},
		{cli.ExitUsage, "names no bucket: write it like s3://my-bucket/dead", []string{"dead", "list", "--dead=s3:bucket"}},
		{cli.ExitUsage, "names no bucket", []string{"dead", "list", "--dead=s3://B/dead"}},
		{cli.ExitUsage, "names no file: write it like sqlite:", []string{"dead", "list", "--dead=sqlite:"}},
		{cli.ExitFailed, "there is no SQLite file /nosuch", []string{"dead", "list", "--dead=sqlite:/nosuch"}},
		{cli.ExitFailed, "there is no directory /nosuch", append(consume, "--exec=cat", "--dead=sqlite:/nosuch/x", "--max-attempts=3")},
		{cli.ExitUsage, "it names no database", []string{"dead", "list", "--dead=postgres://h"}},
		{cli.ExitUsage, "redis is not a place for dead letters", []string{"dead", "list", "--dead=redis://h"}},
		{cli.ExitUsage, "weir_schema does not apply to dead letters", []string{"dead", "list", "--dead=postgres://h/d?weir_schema=s"}},
		{cli.ExitFailed, "nothing answers at 127.0.0.1:1, where the dead letters should be (postgres://127.0.0.1:1/d): is the server running, and is --dead right?",
			[]string{"dead", "list", "--dead=postgres://127.0.0.1:1/d"}},
		{cli.ExitFailed, "nothing answers at 127.0.0.1:1, where the dead letters should be", append(consume, "--exec=cat", "--dead=mysql://127.0.0.1:1/d", "--max-attempts=3")},
		{cli.ExitUsage, "there is nothing to make for file:x", []string{"dead", "create", "--dead=file:x"}},
		{cli.ExitUsage, "--print applies only to Postgres and MySQL", []string{"dead", "create", "--print", "--dead=sqlite:x"}},
		{cli.ExitUsage, "names no file", []string{"dead", "list", "--dead=file:"}},
		{cli.ExitFailed, "there is no file /nosuch", []string{"dead", "list", "--dead=file:/nosuch"}},
		{cli.ExitFailed, "1 line could not be read", []string{"dead", "list", "--dead=file:" + damaged}},
		{cli.ExitUsage, "--state \"lost\": use kept", []string{"dead", "list", dead, "--state=lost"}},
		{cli.ExitUsage, "--reason \"bad\": use rejected", []string{"dead", "list", dead, "--reason=bad"}},
		{cli.ExitUsage, "--since \"soon\" is not a time", []string{"dead", "list", dead, "--since=soon"}},
		{cli.ExitUsage, "give its ID", []string{"dead", "show", dead}},
		{cli.ExitFailed, `there is no dead letter "x"`, []string{"dead", "show", dead, "x"}},
		{cli.ExitUsage, "needs a selection of dead letters", []string{"dead", "drop", dead, "--yes"}},
		{cli.ExitUsage, "--all selects all dead letters", []string{"dead", "drop", dead, "--yes", "--all", "--shard=1"}},
		{cli.ExitUsage, "add --yes if you are sure", []string{"dead", "drop", dead, "--all"}},
		{cli.ExitUsage, "give --exec or --to-stream", []string{"dead", "retry", dead, "--all", "--yes"}},
		{cli.ExitUsage, "give --exec or --to-stream", []string{"dead", "retry", dead, "--all", "--yes", "--exec=cat", "--to-stream=s"}},
		{cli.ExitUsage, "--exec is blank", []string{"dead", "retry", dead, "--all", "--yes", "--exec= "}},
		{cli.ExitUsage, "--max-attempts needs a destination for dead letters", append(consume, "--exec=cat", "--max-attempts=3")},
		{cli.ExitUsage, "--outage-grace needs a destination", append(consume, "--exec=cat", "--outage-grace=3m")},
		{cli.ExitUsage, "want 1 to 10000", append(consume, "--exec=cat", dead, "--max-attempts=0")},
		{cli.ExitUsage, "add --exec or --lambda", append(consume, dead, "--max-attempts=3")},
		{cli.ExitUsage, "--dead by itself dead-letters no record", append(consume, "--exec=cat", dead)},
		{cli.ExitUsage, "--max-age 1ms must be between", append(consume, "--exec=cat", dead, "--max-age=1ms")},
		{cli.ExitUsage, "--outage-grace 48h0m0s must be 24h at most", append(consume, "--exec=cat", dead, "--max-attempts=3", "--outage-grace=48h")},
		{cli.ExitUsage, "use file:PATH", append(consume, "--exec=cat", "--dead=kafka:s", "--max-attempts=3")},
		{cli.ExitFailed, "cannot be written: no such file", append(consume, "--exec=cat", "--dead=file:/nosuch/dead", "--max-attempts=3")},
	} {
		if _, said := clitest.MustExit(t, row.code, row.args...); !strings.Contains(said, row.want) {
			t.Errorf("weir %s: %s", strings.Join(row.args, " "), said)
		}
	}
}

func TestThePlaceOfLettersMayComeFromTheEnvironment(t *testing.T) {
	dead, _ := letters(t, 2)
	t.Setenv(cli.DeadVariable, strings.TrimPrefix(dead, "--dead="))
	if got := clitest.MustRun(t, "", "dead", "list"); strings.Count(got, "\n") != 3 {
		t.Errorf("%s", got)
	}
	// A worker must start even if its flags do not use the place that the variable names.
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	server.Put("s", "k", []byte("1"))
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:")
	c.Out.Await(t, "a record", func(s string) bool { return s == "1\n" })
	clitest.Stop(t, c)
	c = clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--max-attempts=3", "--exec", `cat; echo "dead at $`+cli.DeadVariable+`."`)
	c.Out.Await(t, "a record", func(s string) bool { return strings.Contains(s, "dead at .") })
	clitest.Stop(t, c)
}

func TestLettersOfSeveralApplications(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dead.ndjson")
	dead, record := "--dead=file:"+path, "s/shardId-000000000000/1"
	var all []deadletter.Letter
	for _, app := range []string{"one", "two"} {
		all = append(all, deadletter.Letter{
			Version: deadletter.Version, ID: deadletter.ID(app, record), App: app, Stream: "s", Shard: "shardId-000000000000", Position: "1",
			Data: []byte("of " + app), GivenUp: time.Now(), Reason: deadletter.Attempts,
		})
	}
	if err := deadletter.File(path).Put(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"retry", "--all", "--yes", "--exec=cat"}, {"drop", "--stream=s", "--yes"}, {"show", record}} {
		_, said := clitest.MustExit(t, cli.ExitUsage, append([]string{"dead", args[0], dead}, args[1:]...)...)
		if !strings.Contains(said, `has dead letters of 2 applications: choose one with --app ("one", "two")`) {
			t.Errorf("%q: %s", args, said)
		}
	}
	if got := clitest.MustRun(t, "", "dead", "list", dead); strings.Count(got, "\n") != 3 {
		t.Errorf("%s", got)
	}
	if got := clitest.MustRun(t, "", "dead", "show", dead, "--app=two", "--data", record); got != "of two" {
		t.Errorf("%q", got)
	}
	// A dead letter of one application cannot be changed under the name of another.
	for _, args := range [][]string{{"show"}, {"list"}, {"drop", "--yes"}, {"retry", "--yes", "--exec=cat"}} {
		_, said := clitest.MustExit(t, cli.ExitFailed, append(append([]string{"dead"}, args...), dead, "--app=two", "one/"+record)...)
		if !strings.Contains(said, `dead letter "one/`+record+`" is not of application two`) {
			t.Errorf("%q: %s", args, said)
		}
	}
	if _, said := clitest.MustExit(t, cli.ExitFailed, "dead", "show", dead, "--app=three", record); !strings.Contains(said, `there is no dead letter "`+record+`" of application three`) {
		t.Errorf("%s", said)
	}
	c := clitest.Start(t, "", "dead", "list", dead, "--app=three")
	if code := c.Wait(t); code != cli.ExitDone || !strings.Contains(c.Err.String(), `has no dead letter of application three, only of "one", "two"`) {
		t.Errorf("exit code %d: %s", code, c.Err)
	}
	if _, said := clitest.MustExit(t, cli.ExitFailed, "dead", "retry", dead, "--app=one", "--all", "--yes", "--exec=echo ill >&2; exit 3"); strings.Count(said, "exit status 3") != 1 || !strings.HasSuffix(said, "weir: 1 dead letter failed\n") {
		t.Errorf("%s", said)
	}
	if got := clitest.MustRun(t, "", "dead", "retry", dead, "--app=one", "--all", "--yes", "--exec=cat"); got != "of one\n1 of 1 dead letter handled.\n" {
		t.Errorf("%q", got)
	}
	if got := clitest.MustRun(t, "", "dead", "list", dead, "-o=json"); !strings.Contains(got, `"app":"two"`) || strings.Contains(got, `"app":"one"`) {
		t.Errorf("%s", got)
	}
}
