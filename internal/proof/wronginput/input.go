// Package wronginput runs the command with invalid inputs, each in a separate process, and judges
// its response: the exit code, and one sentence that comes soon. For tests only; the table that it
// prints is for people.
package wronginput

import (
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

// Command is the program under test and its environment.
type Command struct {
	Path string               // the program
	Env  []string             // its complete environment, before that of an Input
	Dir  string               // where it runs
	Attr *syscall.SysProcAttr // its user, nil for this user
}

// Settings returns a valid environment, with a directory for the files of a command.
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

// Input is one invalid input and the expected response.
type Input struct {
	Subject string   // its heading in the table; a word or two
	Name    string   // the problem, as a sentence without a full stop
	Args    string   // the command line, separated by blanks
	More    []string // further arguments, which may contain blanks or be empty
	Env     []string // in addition to the command's; replaces existing names
	Stdin   io.Reader
	Stdout  *os.File // nil is a pipe that is read to its end

	Code int      // the expected exit code
	Says []string // required on standard error
	Not  []string // forbidden there: misleading advice
	// Lines is the number of lines on standard error, besides messages about a wait. 0 means one,
	// or two for exit code 2, which refers to the help.
	Lines int
	// Until limits the time until the command ends, for inputs that make it wait. 0 means ten
	// seconds.
	Until time.Duration
	// During, if set, is called while the process runs, and must make it end.
	During func(t *testing.T, p *Process)
}

const (
	// wordWithin is the time until the command must print what it waits for, or why it ended.
	wordWithin = 10 * time.Second
	// slack is added to all limits for a busy machine. The table has the measured times.
	slack = 50 * time.Second
)

// result is the result of an input.
type result struct {
	input Input
	code  int
	// until the first byte on standard error, or until the end without output
	word   time.Duration
	took   time.Duration
	stdout string
	stderr string
	hung   bool // it had to be killed
}
