//go:build unix

package consume

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/deadletter"
)

// answersEach is a command that handles each line separately. A record with "n":57 fails, and one
// with "n":99 is rejected. All other records are printed.
const answersEach = `
while IFS= read -r line; do
	id=${line#*\"id\":\"}; id=${id%%\"*}
	case $line in
	*'\"n\":57}'*) echo "{\"id\":\"$id\",\"result\":\"failed\",\"error\":\"no room\"}" >&3 ;;
	*'\"n\":99}'*) echo "{\"id\":\"$id\",\"result\":\"rejected\",\"error\":\"cannot be read\"}" >&3 ;;
	*) printf '%s\n' "$line"; echo "{\"id\":\"$id\",\"result\":\"done\"}" >&$WEIR_RESULTS_FD ;;
	esac
done
echo '{"end":true}' >&3`

// Large batches contain two bad records. Each bad record gets a dead letter of its own, with the
// command's message. All other records are handled.
func TestACommandAnswersForEachRecord(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	text, lines := clitest.Numbered(120)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	dead := "--dead=file:" + filepath.Join(t.TempDir(), "dead.ndjson")
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--retry-min=1ms", "--retry-max=10ms",
		"--exec", answersEach, "--exec-results", dead, "--max-attempts=3", "--outage-grace=0")
	c.Err.Await(t, "both letters", func(s string) bool { return strings.Count(s, "records were dead-lettered") == 2 })
	c.Out.Await(t, "what is behind them", func(s string) bool { return strings.Contains(s, `\"n\":119}`) })
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d: %s", code, c.Err)
	}
	for n, line := range lines {
		quoted, _ := json.Marshal(line)
		if got := strings.Contains(c.Out.String(), `"data":`+string(quoted)); got != (n != 57 && n != 99) {
			t.Errorf("record %d handled: %v", n, got)
		}
	}
	var letters []deadletter.Item
	for line := range strings.Lines(clitest.MustRun(t, "", "dead", "list", dead, "-o=json")) {
		var l deadletter.Item
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		letters = append(letters, l)
	}
	if len(letters) != 2 || letters[0].Error != "no room" || letters[0].Attempts != 3 || letters[0].Reason != deadletter.Attempts || string(letters[0].Data) != lines[57] ||
		letters[1].Error != "cannot be read" || letters[1].Attempts != 1 || letters[1].Reason != deadletter.Rejected || string(letters[1].Data) != lines[99] {
		t.Fatalf("%+v", letters)
	}

	// The command also reports on each record when dead letters are retried.
	if _, said := clitest.MustExit(t, cli.ExitFailed, "dead", "retry", dead, "--all", "--yes", "--exec-results", "--exec", answersEach); !strings.Contains(said, "letter "+letters[0].ID+": no room") ||
		!strings.Contains(said, "letter "+letters[1].ID+": cannot be read") {
		t.Errorf("%s", said)
	}
	better := strings.NewReplacer(":57}", ":-1}", ":99}", ":-1}").Replace(answersEach)
	if got := clitest.MustRun(t, "", "dead", "retry", dead, "--all", "--yes", "--exec-results", "--exec", better); !strings.Contains(got, "2 of 2 dead letters handled.") || !strings.Contains(got, `"id":"`+letters[0].ID+`"`) {
		t.Errorf("%s", got)
	}
}

// The ID that the command receives for a record is the ID of the record's dead letter.
func TestWhatAnAnsweringCommandGets(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	clitest.MustRun(t, "one\ntwo\n", "put", endpoint, "--stream=s")
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--exec", "cat; "+answersEach, "--exec-results")
	const second = `"data":"two"` // a generated key could contain the bare word
	c.Out.Await(t, "the records", func(s string) bool { return strings.Contains(s, second) })
	c.Interrupt(t)
	i := slices.IndexFunc(c.Out.Lines(), func(l string) bool { return strings.Contains(l, second) })
	var got records.Object
	if err := json.Unmarshal([]byte(c.Out.Lines()[i]), &got); err != nil || got.ID != "s/shardId-000000000000/"+got.Sequence || got.Data == nil || *got.Data != "two" {
		t.Errorf("%v: %+v", err, got)
	}
}

func TestWrongExecResults(t *testing.T) {
	consume := []string{"consume", "--stream=s", "--app=a", "--store=memory:", "--exec-results"}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--exec-results applies only to --exec: add it", consume},
		{"the command gets JSON, because it needs the id of each record: leave out --output", append(consume, "--exec=cat", "-o=text")},
		{"the command gets JSON, because it needs the id of each record: leave out --input", []string{"dead", "retry", "--dead=file:x", "--all", "--exec=cat", "--exec-results", "--input=text"}},
		{"--exec-results applies only to --exec: add it", []string{"dead", "retry", "--dead=file:x", "--all", "--to-stream=s", "--exec-results"}},
	} {
		if _, said := clitest.MustExit(t, cli.ExitUsage, c.args...); !strings.Contains(said, c.want) {
			t.Errorf("%v: %s", c.args, said)
		}
	}
}

// The programs on the guide's page about failures must do what the page says. The test skips the
// programs in languages that are not installed.
func TestTheGuidesProgramsThatAnswer(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/guide/failures.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		program string
		reasons string // reasons of the dead letters for the record that is not JSON and for the record without a number
	}{
		"each.sh": {"sh", "attempts attempts"}, "each.py": {"python3", "rejected attempts"}, "each.js": {"node", "rejected attempts"},
	} {
		t.Run(name, func(t *testing.T) {
			script, err := os.ReadFile("testdata/results/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(page), "```"+map[string]string{"sh": "sh", "python3": "python", "node": "js"}[c.program]+"\n"+string(script)+"```\n") {
				t.Errorf("the page has another text:\n%s", script)
			}
			if _, err := exec.LookPath(c.program); err != nil {
				t.Skip(err)
			}
			server, endpoint := clitest.Kinesis(t)
			server.CreateStream("s", 1)
			clitest.MustRun(t, `{"n":1}`+"\n{\"n\n"+`{"n":2}`+"\n{}\n"+`{"n":3}`+"\n", "put", endpoint, "--stream=s")
			dir := t.TempDir()
			dead := "--dead=file:" + filepath.Join(dir, "dead.ndjson")
			charge := "#!/bin/sh\nsed -n 's/.*\"n\\\\\":\\([0-9]*\\)}.*/\\1/p' | grep .\n"
			if err := errors.Join(os.WriteFile(filepath.Join(dir, name), script, 0o700), os.WriteFile(filepath.Join(dir, "charge"), []byte(charge), 0o700)); err != nil {
				t.Fatal(err)
			}
			run := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--retry-min=1ms", "--retry-max=10ms",
				"--exec", "cd "+dir+" && exec ./"+name, "--exec-results", dead, "--max-attempts=2", "--outage-grace=0")
			run.Out.Await(t, "the last record", func(s string) bool { return strings.Contains(s, "3\n") })
			run.Interrupt(t)
			if got := strings.Join(run.Out.Lines(), " "); got != "1 2 3" {
				t.Errorf("handled %q", got)
			}
			var reasons []string
			for line := range strings.Lines(clitest.MustRun(t, "", "dead", "list", dead, "-o=json")) {
				var l deadletter.Item
				if err := json.Unmarshal([]byte(line), &l); err != nil {
					t.Fatal(err)
				}
				reasons = append(reasons, string(l.Reason))
			}
			if got := strings.Join(reasons, " "); got != c.reasons {
				t.Errorf("letters: %q; %s", got, run.Err)
			}
		})
	}
}
