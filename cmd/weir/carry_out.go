package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/dump"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
)

// canAsk reports whether somebody is there to be asked.
func (t terminal) canAsk() bool { return t.asks || isTerminal(t.in) }

// canConfirm refuses a command that has to ask where nobody answers. sure says that it need not.
func canConfirm(cmd *cobra.Command, t terminal, sure bool) error {
	if !sure && !t.canAsk() {
		return usagef("%s asks nobody where there is no terminal: give --yes if you are sure", cmd.CommandPath())
	}
	return nil
}

// confirm asks for a word, and fails unless it is typed. Ctrl-C ends it.
func confirm(ctx context.Context, t terminal, question, word string) error {
	_ = textf(t.err, "%s Type %s to do so: ", question, word)
	typed := make(chan string, 1)
	go func() { // ends with the line, or with the process
		line, _ := bufio.NewReader(t.in).ReadString('\n') // no line is no
		typed <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(t.err)
		return plainError{"nothing was changed: it was interrupted", context.Cause(ctx)}
	case line := <-typed:
		if line != word {
			return fmt.Errorf("nothing was changed: what was typed is not %s", word)
		}
		return nil
	}
}

var fileForm = regexp.MustCompile(`[^a-zA-Z0-9._-]+`)

// dumpProgress writes what a view holds to a file of its own, before something changes it. path ""
// chooses one.
func dumpProgress(app string, v lease.View, path string, now time.Time) (string, error) {
	if path == "" {
		path = dumpName(app, now, 0)
	}
	return path, writeDump(path, dump.Of(app, v))
}

// dumpName is the name of the file for an application's progress at a time, the nth one.
func dumpName(app string, now time.Time, n int) string {
	name := fmt.Sprintf("weir-%s-%s", fileForm.ReplaceAllString(app, "_"), now.UTC().Format("20060102T150405Z"))
	if n > 0 {
		name += fmt.Sprintf("-%d", n+1)
	}
	return name + ".ndjson"
}

// existsError says that there is a file of that path already.
type existsError struct{ path string }

func (e existsError) Error() string {
	return fmt.Sprintf("the file %s exists already: name another one", e.path)
}

// writeDump writes a dump to a file that does not exist yet, for good.
func writeDump(path string, f dump.File) error {
	return writeNew(path, func(file *os.File) error { return dump.Write(file, f) })
}

// writeNew writes a file that does not exist yet, for good. It fails with an existsError if there
// is one.
func writeNew(path string, write func(*os.File) error) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return existsError{path}
	}
	if err != nil {
		return fmt.Errorf("the file %s cannot be made: %w", path, rootError(err))
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(fmt.Errorf("the file %s cannot be written: %w", path, rootError(err)), os.Remove(path))
		}
	}()
	if err := write(file); err != nil {
		return err
	}
	return file.Sync()
}

// rootError is what the system said, without the path that our own words name.
func rootError(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// outcome is what became of steps.
type outcome struct{ operate.Outcome }

// carryOut carries steps out, and shows how far it is.
func carryOut(ctx context.Context, t terminal, store openStore, app string, steps []change.Step) outcome {
	shown := newBar(t, "changing leases", len(steps))
	defer shown.finish()
	out := operate.CarryOut(ctx, store, app, steps, shown.add)
	out.Err = store.trouble(out.Err)
	return outcome{out}
}

// failure is the error of an outcome in which something is left to do. what is what would have been
// done.
func (o *outcome) failure(what string) error {
	switch {
	case o.Left == 0:
		return nil // also when the store did not answer: it was seen to have happened
	case o.Err != nil:
		return plainError{fmt.Sprintf("%s of %s %s, then: %s; what is done stays done, and the command can be run again for the rest",
			figures.Count(o.Done), some(o.Done+o.Left, "lease"), what, explain(o.Err)), o.Err}
	default:
		return fmt.Errorf("%s of %s %s; the others changed while this ran: run the command again for them", figures.Count(o.Done), some(o.Done+o.Left, "lease"), what)
	}
}

// stepInfo is a step as reset and import show it.
type stepInfo struct {
	Stream string `json:"stream"`
	Shard  string `json:"shard"`
	From   string `json:"from,omitempty"` // not there when there is no lease yet
	To     string `json:"to"`
	Why    string `json:"why,omitempty"`
	State  string `json:"state"` // planned, unchanged, done, changed meanwhile, not done
}

func stepInfos(steps []change.Step, state map[lease.Key]operate.State) []stepInfo {
	all := []stepInfo{}
	for _, s := range steps {
		info := stepInfo{s.Stream, s.Shard, s.From.String(), s.To.String(), s.Why, cmp.Or(string(state[s.Key]), "planned")}
		if len(s.Actions) == 0 {
			info.State = string(operate.Unchanged)
		}
		all = append(all, info)
	}
	return all
}

func stepsText(steps []change.Step) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STREAM\tSHARD\tFROM\tTO\t")
	for _, s := range steps {
		to := s.To.String()
		if len(s.Actions) == 0 {
			to = "stays"
		}
		_ = textf(w, "%s\t%s\t%s\t%s\t%s\n", s.Stream, shortID(s.Shard), cmp.Or(s.From.String(), "no lease"), to, s.Why)
	}
	_ = w.Flush() // into memory
	return trailing.ReplaceAllString(b.String(), "")
}

var trailing = regexp.MustCompile(`(?m) +$`)

// toDo is how many steps change something.
func toDo(steps []change.Step) (n int) {
	for _, s := range steps {
		if len(s.Actions) > 0 {
			n++
		}
	}
	return n
}
