package group

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/sqlitefile"
	"github.com/weir-go/weir/lease"
)

// late is the user's answer to a question. It calls first before the command reads the answer.
type late struct {
	once  sync.Once
	first func()
	io.Reader
}

func (l *late) Read(p []byte) (int, error) {
	l.once.Do(l.first)
	return l.Reader.Read(p)
}

// The user may answer after an hour. If a worker has started in the meantime, the application is
// not deleted.
func TestDeleteLooksAgainAfterTheAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	clitest.MustRun(t, `{"weir":"progress","version":1,"app":"a","leases":1}`+"\n"+`{"stream":"s","shard":"0","range":["0","9"],"epoch":1,"position":"17"}`,
		"group", "import", "--app=a", "--store=sqlite:"+path, "--yes", "-")
	starts := func() {
		file, err := sqlitefile.Open(t.Context(), path, false)
		if err != nil {
			t.Error(err)
			return
		}
		defer file.Close()
		if _, err := file.Heartbeat(t.Context(), "a", lease.Report{Session: "A", Name: "ann", First: true}); err != nil {
			t.Error(err)
		}
	}
	saved := filepath.Join(t.TempDir(), "saved.ndjson")
	out, said := clitest.NewOutput(), clitest.NewOutput()
	code := clitest.Run(t.Context(), []string{"group", "delete", "--app=a", "--store=sqlite:" + path, "--dump=" + saved},
		cli.Terminal{In: &late{first: starts, Reader: strings.NewReader("a\n")}, Out: out, Err: said, Asks: true})
	if code != cli.ExitFailed || !strings.Contains(said.String(), "workers run: ann; stop them first") {
		t.Errorf("exit code %d: %s%s", code, out, said)
	}
	if _, err := os.Stat(saved); err == nil {
		t.Error("there is a dump of what was not deleted")
	}
	if text := clitest.MustRun(t, "", "group", "list", "--store=sqlite:"+path); !strings.Contains(text, "\na ") {
		t.Errorf("what is left: %s", text)
	}
}

func TestWhatIsPausedIsSaidInSentences(t *testing.T) {
	for want, r := range map[string]pauseReport{
		"x was not paused":                            {},
		"x was not paused; still paused: r, s":        {Paused: []string{"r", "s"}},
		"x is not paused any more; still paused: s":   {Paused: []string{"s"}, Changed: true},
		"x is not paused any more; 2 leases are held": {Changed: true, Held: 2},
		`x was not paused; the whole application is paused: "weir group resume" without --stream ends that`:         {Paused: []string{"", "s"}},
		`x is not paused any more; the whole application is paused: "weir group resume" without --stream ends that`: {Paused: []string{""}, Changed: true},
	} {
		if got := r.text("x", false); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	text := appsText([]appInfo{{App: "a", Streams: []string{"r", "s"}, Paused: []string{"s"}}, {App: "b", Streams: []string{"r"}, Paused: []string{""}}, {App: "c", Streams: []string{"r"}}}, 0)
	for _, want := range []string{"ok (1 stream paused)", "r, s; paused: s\n", "ok (paused)", "r\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
