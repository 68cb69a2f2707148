//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

func TestConsumeGivesBatchesToACommand(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	text, lines := clitest.Numbered(100)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	dir := t.TempDir()
	// The first run for each shard takes the batch and fails; later ones print what they get, and
	// where it is from.
	command := fmt.Sprintf(`if mkdir %s/$WEIR_SHARD 2>/dev/null; then cat >/dev/null; exit 3; fi; cat; echo "$WEIR_STREAM $WEIR_SHARD $WEIR_EPOCH" >&2`, dir)
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--batch=40", "--exec", command)
	c.Out.Await(t, "all records", func(s string) bool { return strings.Count(s, "\n") >= 100 })
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
	clitest.CheckOrder(t, c.Out.Lines(), lines)
	for _, want := range []string{"the command failed: exit status 3", "will be handled again", "s shardId-000000000000 ", "s shardId-000000000001 "} {
		if !strings.Contains(c.Err.String(), want) {
			t.Errorf("standard error lacks %q: %s", want, c.Err)
		}
	}
}

// With --parallel many commands run at a time, each with records of one key, in its order.
func TestConsumeHandlesKeysSideBySide(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	text, lines := clitest.Numbered(100) // of five keys
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	// Each command waits until all five are at work; one by one they never would be.
	dir := t.TempDir()
	command := fmt.Sprintf(`touch %[1]s/$$; while [ $(ls %[1]s | wc -l) -lt 5 ]; do sleep 0.05; done; cat`, dir)
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--parallel=8", "--exec", command)
	c.Out.Await(t, "all records", func(s string) bool { return strings.Count(s, "\n") >= 100 })
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
	clitest.CheckOrder(t, c.Out.Lines(), lines)
	if _, said := clitest.MustExit(t, cli.ExitUsage, "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--parallel=8", "--to=s3://bucket/x"); !strings.Contains(said, "--parallel does not go with --to s3") {
		t.Errorf("with S3: %s", said)
	}
}

func TestACommandEndsWithTheLease(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	out, handled := clitest.NewOutput(), make(chan error, 1)
	// It starts something of its own, which has to end too.
	command := `(trap 'echo ended; exit' TERM; echo ready; while :; do sleep 1; done) & wait`
	go func() {
		handled <- executor{cli.Terminal{Out: out, Err: clitest.NewOutput()}, command, cli.FormatText, false}.
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
		handled <- executor{cli.Terminal{Out: out, Err: clitest.NewOutput()}, `trap '' TERM; echo ready; while :; do sleep 1; done`, cli.FormatText, false}.
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
	e := executor{cli.Terminal{Out: out, Err: clitest.NewOutput()}, "echo done", cli.FormatText, false}
	big := weir.Record{Data: []byte(strings.Repeat("x", 1<<20))} // more than a pipe holds
	if err := e.Handle(t.Context(), &weir.Batch{Shard: "shard", Records: []weir.Record{big}}); err != nil || out.String() != "done\n" {
		t.Errorf("%v, %q", err, out)
	}
	e.command = "exit 0"
	if err := e.Handle(t.Context(), &weir.Batch{Shard: "shard", End: true}); err != nil {
		t.Errorf("the end of a shard: %v", err)
	}
}

// A command does not get what the worker shows to AWS and to its store, unless it is asked for.
func TestACommandDoesNotGetCredentials(t *testing.T) {
	for _, name := range ofWorker {
		t.Setenv(name, "secret-"+name)
	}
	t.Setenv("PLAIN", "plain")
	batch := &weir.Batch{Shard: "shard", Records: []weir.Record{{Data: []byte("x")}}}
	for given, want := range map[bool]int{false: 0, true: len(ofWorker)} {
		out := clitest.NewOutput()
		e := executor{cli.Terminal{Out: out, Err: clitest.NewOutput()}, "env", cli.FormatText, given}
		if err := e.Handle(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), "secret-"); got != want || !strings.Contains(out.String(), "PLAIN=plain") || !strings.Contains(out.String(), "WEIR_SHARD=shard") {
			t.Errorf("given %v: %d of them in %s", given, got, out)
		}
	}
}
