//go:build unix

package shellexec

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

func TestACommandEndsWithTheLease(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	out, handled := clitest.NewOutput(), make(chan error, 1)
	// The command starts a child process, which must end too.
	command := `(trap 'echo ended; exit' TERM; echo ready; while :; do sleep 1; done) & wait`
	go func() {
		handled <- Handler{cli.Terminal{Out: out, Err: clitest.NewOutput()}, command, cli.FormatText, false, 0}.
			Handle(ctx, &weir.Batch{Shard: "shard", Records: []weir.Record{{Data: []byte("x")}}})
	}()
	out.Await(t, "the command", func(s string) bool { return strings.Contains(s, "ready") })
	cancel(weir.ErrLeaseLost)
	if err := <-handled; !errors.Is(err, weir.ErrLeaseLost) {
		t.Errorf("the handler returned %v", err)
	}
	out.Await(t, "what the command started", func(s string) bool { return strings.Contains(s, "ended") })
}

func TestACommandThatDoesNotListenIsKilled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	out, handled := clitest.NewOutput(), make(chan error, 1)
	go func() {
		handled <- Handler{cli.Terminal{Out: out, Err: clitest.NewOutput()}, `trap '' TERM; echo ready; while :; do sleep 1; done`, cli.FormatText, false, 0}.
			Handle(ctx, &weir.Batch{Shard: "shard", Records: []weir.Record{{Data: []byte("x")}}})
	}()
	out.Await(t, "the command", func(s string) bool { return strings.Contains(s, "ready") })
	cancel(weir.ErrStopping)
	if err := <-handled; !errors.Is(err, weir.ErrStopping) {
		t.Errorf("the handler returned %v", err)
	}
}

func TestACommandNeedNotReadItsInput(t *testing.T) {
	out := clitest.NewOutput()
	e := Handler{cli.Terminal{Out: out, Err: clitest.NewOutput()}, "echo done", cli.FormatText, false, 0}
	big := weir.Record{Data: []byte(strings.Repeat("x", 1<<20))} // larger than the buffer of a pipe
	if err := e.Handle(t.Context(), &weir.Batch{Shard: "shard", Records: []weir.Record{big}}); err != nil || out.String() != "done\n" {
		t.Errorf("%v, %q", err, out)
	}
	e.Command = "exit 0"
	if err := e.Handle(t.Context(), &weir.Batch{Shard: "shard", End: true}); err != nil {
		t.Errorf("the end of a shard: %v", err)
	}
}

// A command does not receive the worker's credentials for AWS and its store, unless the user asks
// for it.
func TestACommandDoesNotGetCredentials(t *testing.T) {
	for _, name := range ofWorker {
		t.Setenv(name, "secret-"+name)
	}
	t.Setenv("PLAIN", "plain")
	batch := &weir.Batch{Shard: "shard", Records: []weir.Record{{Data: []byte("x")}}}
	for given, want := range map[bool]int{false: 0, true: len(ofWorker)} {
		out := clitest.NewOutput()
		e := Handler{cli.Terminal{Out: out, Err: clitest.NewOutput()}, "env", cli.FormatText, given, 0}
		if err := e.Handle(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), "secret-"); got != want || !strings.Contains(out.String(), "PLAIN=plain") || !strings.Contains(out.String(), "WEIR_SHARD=shard") {
			t.Errorf("given %v: %d of them in %s", given, got, out)
		}
	}
}

// The shell's codes for a program that it could not run come with the likely cause.
func TestAProgramThatCannotBeRun(t *testing.T) {
	t.Parallel()
	batch := &weir.Batch{Shard: "shard", Records: []weir.Record{{Data: []byte("x")}}}
	for command, want := range map[string]string{
		"no-such-program-here": "the command failed: exit status 127: the shell did not find the program",
		"/dev/null":            "the command failed: exit status 126: the shell could not run the program",
		"exit 3":               "the command failed: exit status 3",
	} {
		err := Handler{cli.Terminal{Out: clitest.NewOutput(), Err: clitest.NewOutput()}, command, cli.FormatText, false, 0}.Handle(t.Context(), batch)
		if err == nil || !strings.HasPrefix(err.Error(), want) || command == "exit 3" && err.Error() != want {
			t.Errorf("%s: %v", command, err)
		}
	}
}
