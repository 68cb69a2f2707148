package doctor

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
)

// The exit code shows scripts and monitors how severe the findings are.
func TestTheDoctorsExitCodeIsThatOfTheWorst(t *testing.T) {
	for _, c := range []struct {
		found []Severity
		want  int
	}{
		{nil, 0},
		{[]Severity{Info}, 0},
		{[]Severity{Intended, Info}, 5},
		{[]Severity{Warning}, 4},
		{[]Severity{Warning, Intended}, 4},
		{[]Severity{Error, Warning, Intended, Info}, 3},
	} {
		var r report
		for _, s := range c.found {
			r.Findings = append(r.Findings, Finding{Severity: s})
		}
		code, err := cli.ExitCode(0), r.exitCode()
		if err != nil && !errors.As(err, &code) || int(code) != c.want {
			t.Errorf("%v: %v, want %d", c.found, err, c.want)
		}
	}
}

// If a service does not answer, there is one error, no matter which call fails.
func TestAnOutageIsOneError(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 4)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	text, _ := clitest.Numbered(20)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	clitest.Consume(t, 20, endpoint, store)
	silent := "http://" + clitest.SilentServer(t)
	for _, c := range []struct{ at, timeout, says string }{
		{clitest.UnusedAddr(t), "30s", "nothing answers at "},
		{silent, "500ms", "Kinesis at " + silent + " did not answer within 500ms"},
	} {
		out, said := clitest.MustExit(t, cli.ExitWrong, "doctor", "--endpoint="+c.at, store, "--app=a", "--look=50ms", "--connect-timeout="+c.timeout, "-o=json")
		findings := clitest.Decode[report](t, out).Findings
		if got := clitest.FindingCodes(t, out); !slices.Equal(got, []string{"no-workers", "service-unreachable"}) {
			t.Fatalf("it found %v: %s", got, said)
		}
		if text := findings[1].Text; !strings.HasPrefix(text, "none of 1 stream and 4 shards can be described: ") || !strings.Contains(text, c.says) {
			t.Errorf("it says %q", text)
		}
	}
	// No worker reads, because an operator has paused the application.
	clitest.MustRun(t, "", "group", "pause", store, "--app=a")
	out, _ := clitest.MustExit(t, cli.ExitIntended, "doctor", endpoint, store, "--app=a", "--look=50ms")
	if want := "Application a: nothing is wrong, and something is paused or drained on purpose."; !strings.HasPrefix(out, want) {
		t.Errorf("it says %s", out)
	}
	if help := clitest.MustRun(t, "", "doctor", "--help"); !strings.Contains(help, fmt.Sprint(cli.ExitIntended)+" if there are only pauses") {
		t.Errorf("the help does not say what the codes are: %s", help)
	}
}

// The workers are gone, and the service refuses calls of the doctor.
func TestDoctorFindsWhatTheServiceRefuses(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	text, _ := clitest.Numbered(20)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	clitest.Consume(t, 20, endpoint, store)
	for action, c := range map[string]struct{ code, want string }{
		"GetRecords":            {"AccessDeniedException", "no-workers permission"},
		"GetShardIterator":      {"KMSAccessDeniedException", "kms no-workers"},
		"DescribeStreamSummary": {"AccessDeniedException", "no-workers permission"},
		"ListShards":            {"ResourceNotFoundException", "no-stream no-workers"},
	} {
		fault := kinesistest.Fault{Err: &kinesistest.Error{Code: c.code, Message: "no"}}
		var on atomic.Bool
		on.Store(true)
		server.Control(action, func(*kinesistest.Call) kinesistest.Fault {
			if on.Load() {
				return fault
			}
			return kinesistest.Fault{}
		})
		out, _ := clitest.MustExit(t, cli.ExitWrong, "doctor", endpoint, store, "--app=a", "--look=50ms", "-o=json")
		on.Store(false)
		report := clitest.Decode[report](t, out)
		if got := strings.Join(clitest.FindingCodes(t, out), " "); got != c.want {
			t.Errorf("%s refused: found %s, want %s", action, got, c.want)
		}
		for _, f := range report.Findings {
			if f.Code == "permission" && !strings.Contains(f.Text, "no permission for kinesis:"+action+" on stream s") {
				t.Errorf("%s refused: %s", action, f.Text)
			}
		}
	}
	out, _ := clitest.MustExit(t, cli.ExitWrong, "doctor", endpoint, store, "--app=a", "--look=50ms", "--stream="+server.StreamARN("s"))
	if !strings.HasPrefix(out, "Application a: 1 error and 0 warnings. 2 shards, 0 workers are alive; no worker leads.\nunread: shardId-000000000000 of s, no worker lives, since unknown; of the others\n  1 unread.\nCause: no worker is alive (2 of 2 affected shards).") ||
		!strings.Contains(out, "\n\nerror     [no-workers] no worker is alive") {
		t.Errorf("it says %s", out)
	}
	server.DeleteStream("s")
	server.CreateStream("s", 2)
	out, _ = clitest.MustExit(t, cli.ExitWrong, "doctor", endpoint, store, "--app=a", "--look=50ms", "--stream=r", "-o=json")
	// The leases do not contain the creation time of their stream yet, and their sequence numbers
	// belong to the deleted stream.
	if got := clitest.FindingCodes(t, out); !slices.Contains(got, "expired-checkpoint") || !slices.Contains(got, "no-stream") {
		t.Errorf("after the stream was recreated: %v", got)
	}
}

// The doctor does not name a leader that is dead.
func TestTheDoctorNamesALeaderThatLives(t *testing.T) {
	for name, c := range map[string]struct {
		session string
		beating bool
		want    string
	}{
		"it beats":                   {"S1", true, "alpha"},
		"it is silent":               {"S1", false, ""},
		"it has ended":               {"S2", true, ""},
		"the store has forgotten it": {"S9", true, ""},
	} {
		f := Facts{Beats: map[string]bool{c.session: c.beating}, Apart: 3 * time.Second}
		f.Second.Leader.Session = c.session
		f.Second.Workers = []lease.Worker{{Session: "S1", Name: "alpha"}, {Session: "S2", Ended: true}}
		if got := leading(f); got != c.want {
			t.Errorf("%s: %q leads, want %q", name, got, c.want)
		}
	}
}

// Messages of the service must not break lines or control the terminal.
func TestFindingsDoNothingToTheTerminal(t *testing.T) {
	report := report{App: clitest.Evil, Leader: clitest.Evil, Findings: []Finding{{Severity: Error, Text: clitest.Evil, Do: clitest.Evil}}}
	clitest.CheckShown(t, "doctor", report.text(80, cli.Unbroken), 4)
}

// The verdict on an application uses what its workers reported before.
func TestTheDoctorKnowsThePast(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f := Facts{Apart: 5 * time.Second, Beats: map[string]bool{"S1": true}, Shards: map[lease.Key]Shard{key("1"): {First: Look{Waits: true, Age: 30 * time.Minute}, Second: Look{Waits: true, Age: 30 * time.Minute}}}}
	for i, v := range []*lease.View{&f.First, &f.Second} {
		v.Workers = []lease.Worker{{Session: "S1", Heartbeats: uint64(i)}}
		v.Leases = []lease.Lease{{Key: key("1"), Owner: "S1"}}
	}
	past := observe.Past{}
	for ago := int64(30); ago > 0; ago-- {
		past[key("1")] = append(past[key("1")], observe.Report{Minute: now.Unix()/60 - ago, Session: "S1", Lag: time.Duration(30-ago) * time.Minute})
	}
	if sum := verdict(f, past, now); sum.State != health.FallingBehind || !strings.Contains(sum.Sentence, "behind for at least 29 min") {
		t.Error(sum.Sentence)
	}
	f.Beats["S1"], f.Second.Workers[0].Heartbeats, f.Apart = false, 0, time.Minute
	if sum := verdict(f, past, now.Add(10*time.Minute)); sum.State != health.Unread || !strings.Contains(sum.Sentence, "no worker lives for at least 9 min") {
		t.Error(sum.Sentence)
	}
}
