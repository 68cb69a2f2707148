package consume

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// closing is a standard output whose reader closes it after a number of writes.
type closing struct{ left int }

func (c *closing) Write(p []byte) (int, error) {
	if c.left--; c.left < 0 {
		return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
	}
	return len(p), nil
}

func TestAClosedOutputIsAnOrderlyEnd(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	text, lines := clitest.Numbered(20)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")

	for name, args := range map[string][]string{
		"tail":    {"tail", endpoint, "--stream=s", "--from=oldest"},
		"consume": {"consume", endpoint, store, "--stream=s", "--app=a", "--batch=5"},
	} {
		t.Run(name, func(t *testing.T) {
			said := clitest.NewOutput()
			ended := make(chan int, 1)
			go func() {
				ended <- clitest.Run(t.Context(), args, cli.Terminal{In: strings.NewReader(""), Out: &closing{left: 0}, Err: said})
			}()
			if code := <-ended; code != cli.ExitDone {
				t.Errorf("exit code %d, %s", code, said)
			}
		})
	}
	t.Run("and nothing counts as handled", func(t *testing.T) {
		c := clitest.Start(t, "", "consume", endpoint, store, "--stream=s", "--app=a")
		c.Out.Await(t, "all records", func(s string) bool { return strings.Count(s, "\n") >= 20 })
		clitest.CheckOrder(t, c.Out.Lines(), lines)
	})
}

// stuck is a standard output that blocks until it is closed.
type stuck struct{ entered, closed chan struct{} }

func (s stuck) Write([]byte) (int, error) {
	close(s.entered)
	<-s.closed
	return 0, io.ErrClosedPipe
}

func TestABlockedOutputDoesNotHoldAHandlerThatHasToStop(t *testing.T) {
	s := stuck{make(chan struct{}), make(chan struct{})}
	defer close(s.closed)
	p := printer{newOutlet(cli.Terminal{Out: s}), cli.FormatText}
	ctx, cancel := context.WithCancelCause(t.Context())
	handled := make(chan error, 1)
	batch := &weir.Batch{Shard: "shard", Records: []weir.Record{{Data: []byte("x")}}}
	go func() { handled <- p.Handle(ctx, batch) }()
	<-s.entered
	cancel(weir.ErrStopping)
	if err := <-handled; !errors.Is(err, weir.ErrStopping) {
		t.Errorf("the handler returned %v", err)
	}
	if err := p.Handle(ctx, batch); !errors.Is(err, weir.ErrStopping) {
		t.Errorf("the next handler returned %v", err)
	}
}

func TestRecordsThatAreNotText(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	server.Put("s", "k", []byte{0xff, 0, '\n'})
	server.Put("s", "k", nil)
	server.Put("s", "k", []byte("text\nof two lines"))
	all := clitest.ParsePrinted(t, strings.Split(strings.TrimSpace(clitest.MustRun(t, "", "tail", endpoint, "--stream=s", "--until-tip", "-o=json")), "\n"))
	if len(all) != 3 || all[0].Data != nil || string(all[0].Base64) != "\xff\x00\n" ||
		all[1].Data == nil || *all[1].Data != "" || all[2].Data == nil || *all[2].Data != "text\nof two lines" {
		t.Errorf("printed %+v", all)
	}
	if out := clitest.MustRun(t, "", "tail", endpoint, "--stream=s", "--until-tip"); out != "\xff\x00\n\n\ntext\nof two lines\n" {
		t.Errorf("printed %q", out)
	}
}
