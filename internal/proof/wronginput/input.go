// Package wronginput runs the command with invalid inputs, each in a separate process. It checks
// the response: the exit code, and one sentence that comes soon. It is only for tests. Users read
// the table that it prints.
package wronginput

import (
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

// Command is the program under test with its environment.
type Command struct {
	Path string               // path of the program
	Env  []string             // complete environment, before that of an Input
	Dir  string               // working directory
	Attr *syscall.SysProcAttr // sets the user; nil means the current user
}

// Settings returns a valid environment. dir is a directory for the files of a command.
func Settings(dir string) []string {
	env := []string{
		"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test",
		"AWS_SECRET_ACCESS_KEY=" + Secret, "AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
	}
	if root := os.Getenv("SYSTEMROOT"); root != "" { // without it, Windows has no sockets
		env = append(env, "SYSTEMROOT="+root)
	}
	return env
}

// Input is one invalid input with the expected response.
type Input struct {
	Subject string   // heading in the table; a word or two
	Name    string   // the problem, as a sentence without a full stop
	Args    string   // command line, separated by blanks
	More    []string // further arguments, which may contain blanks or be empty
	Env     []string // added to the command's environment; replaces existing names
	Stdin   io.Reader
	Stdout  *os.File // nil means a pipe that is read to its end

	Code int      // expected exit code
	Says []string // texts that standard error must contain
	Not  []string // texts that it must not contain, because the advice is misleading
	// Lines is the maximum number of lines on standard error, without lines that also appear with
	// valid inputs. 0 means one line. For exit code 2 it means two lines, because the second one
	// refers to the help.
	Lines int
	// Until is the time limit for the end of the command, for inputs that make it wait. 0 means ten
	// seconds.
	Until time.Duration
	// During, if set, is called while the process runs. It must make the process end.
	During func(t *testing.T, p *Process)
}

const (
	// wordWithin is the time limit for the first output: what the command waits for, or why it
	// ended.
	wordWithin = 10 * time.Second
	// slack is added to all limits, for a busy machine. The table shows the measured times.
	slack = 50 * time.Second
)

// result is the result of an input.
type result struct {
	input Input
	code  int
	// word is the time until the first byte on standard error, or until the end if there is no
	// output.
	word   time.Duration
	took   time.Duration
	stdout string
	stderr string
	hung   bool // the process had to be killed
}
