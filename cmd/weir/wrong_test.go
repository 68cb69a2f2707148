package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/internal/proof/wronginput"
	"github.com/weir-go/weir/kinesistest"
)

// wrongPlace is where wrong inputs are tried: nothing in it is wrong by itself.
type wrongPlace struct {
	t        *testing.T
	dir      string
	kinesis  *kinesistest.Server
	endpoint string // the flag that leads to a Kinesis with the stream s of one shard
	// the flag for a SQLite file with the application a, which has a lease of that shard
	store   string
	records string // a file of three lines of JSON with a field k
}

// Every wrong input gets the right exit code and one sentence, which comes soon, names the thing
// and says what to do.
func TestWrongInputs(t *testing.T) {
	t.Parallel()
	place := newWrongPlace(t)
	var inputs []wronginput.Input
	for _, of := range []func(*wrongPlace) []wronginput.Input{
		wrongCommands, wrongBlanks, wrongStreamFlags, wrongStreamCreate, wrongConsumeFlags, wrongAppFlags, wrongLocalFlags,
		wrongServers, wrongStores, foreignServers, foreignStores, wrongSettings, wrongFiles, damagedFiles, wrongDumps, wrongRecords, wrongOutputs, wrongSilence, wrongWhileRunning,
	} {
		inputs = append(inputs, of(place)...)
	}
	wronginput.Run(t, place.command(), inputs)
}

func newWrongPlace(t *testing.T) *wrongPlace {
	t.Helper()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	server.Put("s", "k", []byte("x"))
	p := &wrongPlace{t: t, dir: t.TempDir(), kinesis: server, endpoint: endpoint}
	p.records = p.file("records", "{\"k\":\"a\"}\n{\"k\":\"b\"}\n{\"k\":\"c\"}\n")
	p.store = "--store=sqlite:" + p.leases("leases.db")
	return p
}

// command is this test program as the command, with settings that are all in order.
func (p *wrongPlace) command() wronginput.Command {
	return wronginput.Command{Path: os.Args[0], Env: append(wronginput.Settings(p.dir), asCommand+"=1"), Dir: p.dir}
}

// path returns the path for a file of the given name.
func (p *wrongPlace) path(name string) string { return filepath.Join(p.dir, name) }

// file makes a file.
func (p *wrongPlace) file(name, text string) string {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return p.path(name)
}

// leases makes a SQLite file in which the application a has a lease of the stream s.
func (p *wrongPlace) leases(name string) string {
	p.t.Helper()
	clitest.MustRun(p.t, wrongDump, "group", "import", "--app=a", "--store=sqlite:"+p.path(name), "--yes", "-")
	return p.path(name)
}

// wrongDump is a file of progress that is not wrong.
const wrongDump = `{"weir":"progress","version":1,"app":"a","leases":1}
{"stream":"s","shard":"shardId-000000000000","range":["0","340282366920938463463374607431768211455"],"epoch":1,"position":"oldest"}
`

// under puts inputs under a heading.
func under(subject string, inputs ...wronginput.Input) []wronginput.Input {
	for i := range inputs {
		inputs[i].Subject = subject
	}
	return inputs
}

// misused is an input for which the command line itself is wrong.
func misused(name, args string, says ...string) wronginput.Input {
	return wronginput.Input{Name: name, Args: args, Code: cli.ExitUsage, Says: append(slices.Clip(says), "See: weir")}
}

// fails is an input that lets a command fail.
func fails(name, args string, says ...string) wronginput.Input {
	return wronginput.Input{Name: name, Args: args, Code: cli.ExitFailed, Says: says}
}

// with is an input with settings of the environment.
func with(in wronginput.Input, env ...string) wronginput.Input {
	in.Env = append(in.Env, env...)
	return in
}

// fed is an input with a text on standard input.
func fed(in wronginput.Input, text string) wronginput.Input {
	in.Stdin = strings.NewReader(text)
	return in
}

// more is an input with arguments that hold blanks or nothing.
func more(in wronginput.Input, args ...string) wronginput.Input {
	in.More = args
	return in
}
