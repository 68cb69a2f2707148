package dead

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/fakes3"
)

// letterThrough dead-letters a bad record at the given location. The commands must show the dead
// letter, and retry must pass it on.
func letterThrough(t *testing.T, place string, more ...string) {
	t.Helper()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	for _, text := range []string{"1", "bad", "3"} {
		server.Put("s", "key", []byte(text))
	}
	dead := append([]string{"--dead", place, endpoint}, more...)
	c := clitest.Start(t, "", append([]string{"consume", "--stream=s", "--app=a", "--store=memory:", "--retry-min=1ms", "--retry-max=10ms", "--exec",
		`in=$(cat); case $in in *bad*) exit 3;; esac; echo "$in"`, "--max-attempts=2", "--bisect", "--outage-grace=0"}, dead...)...)
	c.Err.Await(t, "the letter", func(s string) bool { return strings.Contains(s, "records were dead-lettered") })
	clitest.Stop(t, c)
	dead = append([]string{"dead", "list"}, dead...)
	as := func(verb string, more ...string) []string {
		args := append(append([]string{}, dead...), more...)
		args[1] = verb
		return args
	}
	var letter deadletter.Item
	if err := json.Unmarshal([]byte(clitest.MustRun(t, "", as("list", "-o=json")...)), &letter); err != nil || string(letter.Data) != "bad" {
		t.Fatalf("%+v, %v", letter, err)
	}
	if got := clitest.MustRun(t, "", as("show", "--data", letter.ID)...); got != "bad" {
		t.Errorf("%q", got)
	}
	if got := clitest.MustRun(t, "", as("retry", "--all", "--yes", "--exec=cat")...); got != "bad\n1 of 1 dead letter handled.\n" {
		t.Errorf("%q", got)
	}
	if got := clitest.MustRun(t, "", as("list")...); got != "No dead letters.\n" {
		t.Errorf("%q", got)
	}
	if got := clitest.MustRun(t, "", as("drop", letter.ID, "--state=done", "--yes")...); got != "1 of 1 dead letter dropped.\n" {
		t.Errorf("%q", got)
	}
}

func TestLettersInASQLiteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters ü.db")
	letterThrough(t, "sqlite:"+path)
	if i, err := os.Stat(path); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", i.Mode(), err)
	}
	if got := clitest.MustRun(t, "", "dead", "create", "--dead=sqlite:"+path); !strings.HasSuffix(got, " is ready\n") {
		t.Errorf("%s", got)
	}
	empty := filepath.Join(t.TempDir(), "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, said := clitest.MustExit(t, cli.ExitFailed, "dead", "list", "--dead=sqlite:"+empty); !strings.Contains(said, `make it once, with "weir dead create --dead sqlite:`) {
		t.Errorf("%s", said)
	}
}

func TestLettersInABucket(t *testing.T) {
	bucket := fakes3.New()
	web := httptest.NewServer(bucket)
	defer web.Close()
	t.Setenv("AWS_ENDPOINT_URL_S3", web.URL)
	letterThrough(t, "s3://bucket/dead")
	consume := []string{"consume", "--stream=s", "--app=a", "--store=memory:", "--endpoint=http://127.0.0.1:1", "--exec=cat", "--max-attempts=3", "--dead=s3://bucket/dead"}
	if _, said := clitest.MustExit(t, cli.ExitUsage, "dead", "list", "--dead=s3://bucket/a//b"); !strings.Contains(said, `--dead s3://bucket/a//b: the prefix "a//b/" must be`) {
		t.Errorf("%s", said)
	}
	for name, row := range map[string]struct {
		fault fakes3.Fault
		says  string
	}{
		"that may not be written": {fakes3.Deny, "no permission for S3"},
		"that is not there":       {fakes3.NoBucket, "there is no such bucket (NoSuchBucket): check --to or --dead"},
	} {
		bucket.Control(func(fakes3.Call) fakes3.Fault { return row.fault })
		if _, said := clitest.MustExit(t, cli.ExitFailed, consume...); !strings.Contains(said, row.says) {
			t.Errorf("a bucket %s: %s", name, said)
		}
	}
	bucket.Control(nil)
	bucket.IgnoreConditions = true
	if _, said := clitest.MustExit(t, cli.ExitFailed, consume...); !strings.Contains(said, "(If-Match)") {
		t.Errorf("%s", said)
	}
}

func TestLettersInAStream(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	server.CreateStream("dead", 2)
	for _, text := range []string{"1", "bad 1", "bad 2", "4"} {
		server.Put("s", "key", []byte(text))
	}
	consume := []string{"consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--retry-min=1ms", "--retry-max=10ms", "--max-attempts=2", "--bisect", "--outage-grace=0", "--exec",
		`in=$(cat); case $in in *bad*) exit 3;; esac; echo "$in"`}
	c := clitest.Start(t, "", append(consume, "--dead=kinesis:dead")...)
	clitest.Eventually(t, "both letters", func() bool { return len(server.Records("dead")) == 2 })
	clitest.Stop(t, c)
	dead := []string{"--dead=kinesis:dead", endpoint}
	as := func(verb string, more ...string) []string {
		return append(append([]string{"dead", verb}, dead...), more...)
	}

	// A dead letter that is stored twice counts as one letter.
	again := server.Records("dead")[0]
	server.Put("dead", again.PartitionKey, again.Data)
	if got := clitest.MustRun(t, "", as("list")...); !strings.HasPrefix(got, "2 dead letters, ") || strings.Count(got, "kept") != 2 {
		t.Errorf("%s", got)
	}
	var letter deadletter.Item
	if err := json.Unmarshal([]byte(strings.SplitAfter(clitest.MustRun(t, "", as("list", "-o=json")...), "\n")[0]), &letter); err != nil {
		t.Fatal(err)
	}
	if got := clitest.MustRun(t, "", as("show", "--data", letter.ID)...); got != "bad 1" {
		t.Errorf("%q", got)
	}
	for range 2 { // the stream does not record that dead letters were handled
		code, out, said := clitest.Answered(t, "retry\n", as("retry", "--all", "--exec=cat")...)
		if code != cli.ExitDone || out != "bad 1\nbad 2\n2 of 2 dead letters handled.\n" || !strings.Contains(said, "A stream stores no states") {
			t.Errorf("%d %q %s", code, out, said)
		}
	}
	server.Put("dead", "k", []byte("<html>"))
	if _, said := clitest.MustExit(t, cli.ExitFailed, as("list")...); !strings.Contains(said, "is not a dead letter: ") || !strings.Contains(said, "1 record could not be read") {
		t.Errorf("%s", said)
	}
	for _, row := range []struct {
		code int
		want string
		args []string
	}{
		{cli.ExitUsage, "dead letters in a stream cannot be dropped", as("drop", "--all", "--yes")},
		{cli.ExitUsage, "--state does not apply to kinesis:dead", as("list", "--state=done")},
		{cli.ExitUsage, "names no stream: write it like kinesis:", []string{"dead", "list", "--dead=kinesis:"}},
		{cli.ExitUsage, "names no stream", []string{"dead", "list", "--dead=kinesis:a b"}},
		{cli.ExitFailed, "there is no such stream", []string{"dead", "list", "--dead=kinesis:none", endpoint}},
		{cli.ExitFailed, "there is no such stream", append(consume, "--dead=kinesis:none")},
		{cli.ExitUsage, "dead letters cannot go to a stream that is read", append(consume, "--dead=kinesis:s")},
		{cli.ExitUsage, "dead letters cannot go to a stream that is read", append(consume, "--dead=kinesis:"+server.StreamARN("s"))},
		{cli.ExitUsage, "there is nothing to make for kinesis:dead", as("create")},
	} {
		if _, said := clitest.MustExit(t, row.code, row.args...); !strings.Contains(said, row.want) {
			t.Errorf("%v: %s", row.args, said)
		}
	}
}

func TestWrongWordsAboutAQueueOfLetters(t *testing.T) {
	const place = "--dead=sqs:http://127.0.0.1:1/000000000000/dead"
	consume := []string{"consume", "--stream=s", "--app=a", "--store=memory:", "--endpoint=http://127.0.0.1:1", "--exec=cat", "--max-attempts=3"}
	for _, row := range []struct {
		code int
		want string
		args []string
	}{
		{cli.ExitUsage, "names no queue: write its URL behind the colon", []string{"dead", "peek", "--dead=sqs:dead"}},
		{cli.ExitUsage, "names no queue", append(consume, "--dead=sqs:")},
		{cli.ExitUsage, `use "weir dead peek" to look at dead letters`, []string{"dead", "list", place}},
		{cli.ExitUsage, "a queue cannot be listed", []string{"dead", "show", place, "x"}},
		{cli.ExitUsage, "a queue cannot be listed", []string{"dead", "drop", place, "--all", "--yes"}},
		{cli.ExitUsage, "--dry-run does not apply to a queue", []string{"dead", "retry", place, "--all", "--dry-run", "--exec=cat"}},
		{cli.ExitUsage, "--state does not apply to a queue", []string{"dead", "retry", place, "--all", "--yes", "--state=begun", "--exec=cat"}},
		{cli.ExitUsage, "needs a selection of dead letters", []string{"dead", "retry", place, "--yes", "--exec=cat"}},
		{cli.ExitUsage, `file:x is not a queue: "weir dead list" shows`, []string{"dead", "peek", "--dead=file:x"}},
		{cli.ExitUsage, "want 1 to 1000", []string{"dead", "peek", place, "--most=0"}},
		{cli.ExitUsage, "needs --dead", []string{"dead", "peek"}},
		{cli.ExitFailed, "nothing answers at http://127.0.0.1:1: is SQS running there", []string{"dead", "peek", place}},
		{cli.ExitFailed, "nothing answers at http://127.0.0.1:1: is SQS running there", append(consume, place)},
	} {
		if _, said := clitest.MustExit(t, row.code, row.args...); !strings.Contains(said, row.want) {
			t.Errorf("%v: %s", row.args, said)
		}
	}
}
