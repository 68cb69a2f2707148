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

// wrongPlace contains valid settings and files, in which wrong inputs are tried.
type wrongPlace struct {
	t        *testing.T
	dir      string
	kinesis  *kinesistest.Server
	endpoint string // flag for a Kinesis server that has a stream s with one shard
	// store is the flag for a SQLite file with an application a, which has a lease of that shard.
	store   string
	records string // file with three lines of JSON that have a field k
}

// Every wrong input causes the right exit code and one sentence. The sentence comes soon, and names
// the problem and its remedy.
func TestWrongInputs(t *testing.T) {
	t.Parallel()
	place := newWrongPlace(t)
	var inputs []wronginput.Input
	for _, of := range []func(*wrongPlace) []wronginput.Input{
		wrongCommands, wrongBlanks, wrongStreamFlags, wrongStreamCreate, wrongConsumeFlags, wrongAppFlags, wrongLocalFlags, wrongQueues, wrongMigrate,
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

// command returns this test program as the command weir, with valid settings.
func (p *wrongPlace) command() wronginput.Command {
	return wronginput.Command{Path: os.Args[0], Env: append(wronginput.Settings(p.dir), asCommand+"=1"), Dir: p.dir}
}

// path returns the path for a file with the given name.
func (p *wrongPlace) path(name string) string { return filepath.Join(p.dir, name) }

// file creates a file.
func (p *wrongPlace) file(name, text string) string {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return p.path(name)
}

// leases creates a SQLite file in which the application a has a lease of the stream s.
func (p *wrongPlace) leases(name string) string {
	p.t.Helper()
	clitest.MustRun(p.t, wrongDump, "group", "import", "--app=a", "--store=sqlite:"+p.path(name), "--yes", "-")
	return p.path(name)
}

// wrongDump is a valid file of progress, from which the tests derive wrong ones.
const wrongDump = `{"weir":"progress","version":1,"app":"a","leases":1}
{"stream":"s","shard":"shardId-000000000000","range":["0","340282366920938463463374607431768211455"],"epoch":1,"position":"oldest"}
`

// under sets the heading of inputs.
func under(subject string, inputs ...wronginput.Input) []wronginput.Input {
	for i := range inputs {
		inputs[i].Subject = subject
	}
	return inputs
}

// misused returns an input whose command line is wrong.
func misused(name, args string, says ...string) wronginput.Input {
	return wronginput.Input{Name: name, Args: args, Code: cli.ExitUsage, Says: append(slices.Clip(says), "See: weir")}
}

// fails returns an input that makes a command fail.
func fails(name, args string, says ...string) wronginput.Input {
	return wronginput.Input{Name: name, Args: args, Code: cli.ExitFailed, Says: says}
}

// with adds environment variables to an input.
func with(in wronginput.Input, env ...string) wronginput.Input {
	in.Env = append(in.Env, env...)
	return in
}

// fed adds a text on standard input to an input.
func fed(in wronginput.Input, text string) wronginput.Input {
	in.Stdin = strings.NewReader(text)
	return in
}

// more adds arguments that contain blanks or are empty to an input.
func more(in wronginput.Input, args ...string) wronginput.Input {
	in.More = args
	return in
}
