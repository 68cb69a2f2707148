package main

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/internal/proof/wronginput"
	"github.com/weir-go/weir/kinesistest"
)

// runningInput is a problem that occurs while a command is running.
type runningInput struct {
	// In args, ENDPOINT is replaced by the flags for a stream of one record, and STORE by the flags
	// for a SQLite file.
	name, args string
	// happens causes the problem. It is called after the command has written the record.
	happens func(s *kinesistest.Server, file string) error
	code    int
	says    []string
	// interrupt interrupts the command after it has printed the first of the texts. Otherwise the
	// command must end by itself.
	interrupt bool
	not       []string // advice that would be wrong
	lines     int
}

// wrongWhileRunning returns inputs whose stream or server disappears while a command runs, or whose
// --exec command fails.
func wrongWhileRunning(p *wrongPlace) []wronginput.Input {
	if runtime.GOOS == "windows" { // Windows has no signal that asks for an end
		return nil
	}
	deleted := func(s *kinesistest.Server, _ string) error { s.DeleteStream("s"); return nil }
	gone := func(s *kinesistest.Server, _ string) error { return s.Close() }
	var inputs []wronginput.Input
	for _, r := range []runningInput{
		{name: "a stream that is deleted under tail", args: "tail --from oldest ENDPOINT", happens: deleted, code: cli.ExitFailed, says: []string{"there is no such stream"}},
		{name: "a stream that is deleted under consume", args: "consume STORE ENDPOINT", happens: deleted, code: cli.ExitDone, says: []string{"the stream no longer exists", "there is no such stream"}, not: []string{"--create"}, interrupt: true, lines: 10},
		{name: "a server that goes away under tail", args: "tail --from oldest ENDPOINT", happens: gone, code: cli.ExitFailed, says: []string{"nothing answers"}},
		{name: "a server that goes away under consume", args: "consume STORE ENDPOINT", happens: gone, code: cli.ExitDone, says: []string{"reading a shard fails repeatedly", "nothing answers"}, interrupt: true, lines: 10},
		{name: "a command that is not there", args: "consume STORE ENDPOINT --exec nosuch", code: cli.ExitDone, says: []string{"nosuch"}, interrupt: true, lines: 10},
		{name: "a command that fails", args: "consume STORE ENDPOINT --exec false", code: cli.ExitDone, says: []string{"exit status 1"}, interrupt: true, lines: 10},
	} {
		inputs = append(inputs, r.input(p))
	}
	return under("while running", inputs...)
}

func (r runningInput) input(p *wrongPlace) wronginput.Input {
	p.t.Helper()
	const record = "a record"
	server := kinesistest.NewServer(p.t)
	server.CreateStream("s", 1)
	server.Put("s", "k", []byte(record))
	file := p.leases(strings.ReplaceAll(r.name, " ", "-") + ".db")
	places := strings.NewReplacer("ENDPOINT", "--stream s --endpoint "+server.URL(), "STORE", "--app a --store sqlite:"+file)
	return wronginput.Input{
		Name: r.name, Args: places.Replace(r.args), Code: r.code, Says: r.says, Not: r.not, Lines: r.lines, Until: 30 * time.Second,
		During: func(t *testing.T, process *wronginput.Process) {
			if r.happens != nil {
				process.Out.Await(record)
				if err := r.happens(server, file); err != nil {
					t.Error(err)
				}
			}
			if r.interrupt {
				process.Err.Await(r.says[0])
				process.Signal(t, os.Interrupt)
			}
		},
	}
}
