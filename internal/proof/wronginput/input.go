// Package wronginput runs the command with inputs that are wrong, each in a process of its own, and
// judges how it says so: by its exit code, and by one sentence that comes soon. For tests only; the
// table that it prints is for people.
package wronginput

import (
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

// Command is the program under test and what it finds around it.
type Command struct {
	Path string               // the program
	Env  []string             // its whole environment; that of an Input comes on top
	Dir  string               // where it runs
	Attr *syscall.SysProcAttr // as whom it runs, nil for this user
}

// Settings is an environment in which nothing is wrong, with a directory for what a command leaves
// behind.
func Settings(dir string) []string {
	env := []string{
		"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test",
		"AWS_SECRET_ACCESS_KEY=" + Secret, "AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
	}
	if root := os.Getenv("SYSTEMROOT"); root != "" { // without it Windows has no sockets
		env = append(env, "SYSTEMROOT="+root)
	}
	return env
}

// Input is one wrong input and what has to come of it.
type Input struct {
	Subject string   // its heading in the table; names no more than a word or two
	Name    string   // what is wrong, as a sentence without a full stop
	Args    string   // the command line, in words that blanks separate
	More    []string // further arguments, which may hold blanks or nothing
	Env     []string // in addition to the command's own; a name that is there already is replaced
	Stdin   io.Reader
	Stdout  *os.File // nil is a pipe that is read to its end

	Code int      // the exit code that it must have
	Says []string // all of this must be on standard error
	Not  []string // and none of this: advice that would lead astray
	// Lines is how many lines standard error may have, beside words about a wait. 0 is one, and two
	// where the exit code is 2, which points to the help.
	Lines int
	// Until is how long it may take until it ends, which is for inputs that make it wait. 0 is ten
	// seconds.
	Until time.Duration
	// During, if there is one, is called when the process runs, and has to see to it that it ends.
	During func(t *testing.T, p *Process)
}

const (
	// wordWithin is when a person has to know what the command waits for, if not why it ended.
	wordWithin = 10 * time.Second
	// slack is what a machine that is busy with other things may add to any time. The table has
	// what it took.
	slack = 50 * time.Second
)

// result is what came of an input.
type result struct {
	input Input
	code  int
	// until the first byte on standard error, or until the end if there was none
	word   time.Duration
	took   time.Duration
	stdout string
	stderr string
	hung   bool // it had to be killed
}
