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

	"github.com/weir-go/weir/cmd/weir/internal/dump"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/internal/change"
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
		path = fmt.Sprintf("weir-%s-%s.ndjson", fileForm.ReplaceAllString(app, "_"), now.UTC().Format("20060102T150405Z"))
	}
	return path, writeDump(path, dump.Of(app, v))
}

// writeDump writes a dump to a file that does not exist yet, for good.
func writeDump(path string, f dump.File) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the file %s exists already: name another one", path)
	}
	if err != nil {
		return fmt.Errorf("the file %s cannot be made: %w", path, rootError(err))
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(fmt.Errorf("the file %s cannot be written: %w", path, rootError(err)), os.Remove(path))
		}
	}()
	if err := dump.Write(file, f); err != nil {
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

// outcome is what became of steps, in their order.
type outcome struct {
	state map[lease.Key]string
	done  int
	left  int // not done: changed meanwhile, or not reached
	err   error
}

// What became of a step.
const (
	stepDone      = "done"
	stepUnchanged = "unchanged"
	stepMeanwhile = "changed meanwhile"
	stepLeft      = "not done"
)

// carryOut carries steps out in their order, as many at a time as a store takes well. Whatever
// stops it, each step is done or not, and the outcome says which.
func carryOut(ctx context.Context, t terminal, store openStore, app string, steps []change.Step) outcome {
	const together = 50
	out := outcome{state: make(map[lease.Key]string, len(steps))}
	shown := newBar(t, "changing leases", len(steps))
	defer shown.finish()
	var doubt []change.Step
	for len(steps) > 0 {
		some := steps[:min(together, len(steps))]
		if out.err = ctx.Err(); out.err != nil {
			break
		}
		if out.err = out.apply(ctx, store, app, some); out.err != nil {
			doubt, steps = some, steps[len(some):]
			break
		}
		steps = steps[len(some):]
		shown.add(len(some))
	}
	if len(doubt) > 0 { // a store that does not answer may have done it all the same
		look, cancel := context.WithTimeout(context.WithoutCancel(ctx), 8*time.Second)
		defer cancel()
		view, err := store.View(look, app, "")
		for _, s := range doubt {
			if out.state[s.Key] == "" {
				out.note(s, err == nil && s.Happened(view), stepLeft)
			}
		}
	}
	for _, s := range steps {
		out.note(s, false, stepLeft)
	}
	return out
}

func (o *outcome) apply(ctx context.Context, store openStore, app string, steps []change.Step) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var single []lease.Action
	var whose []change.Step
	for _, s := range steps {
		if len(s.Actions) == 1 {
			single, whose = append(single, s.Actions...), append(whose, s)
		}
	}
	if len(single) > 0 {
		did, err := store.Apply(ctx, app, single)
		if err != nil {
			return store.trouble(err)
		}
		for i, s := range whose {
			o.note(s, did[i], stepMeanwhile)
		}
	}
	for _, s := range steps {
		happened := true
		// each only if the one before took effect
		for i := 0; i < len(s.Actions) && len(s.Actions) > 1 && happened; i++ {
			did, err := store.Apply(ctx, app, s.Actions[i:i+1])
			if err != nil {
				return store.trouble(err)
			}
			happened = did[0]
		}
		if len(s.Actions) != 1 {
			o.note(s, happened, stepMeanwhile)
		}
	}
	return nil
}

func (o *outcome) note(s change.Step, happened bool, otherwise string) {
	switch {
	case len(s.Actions) == 0:
		o.state[s.Key] = stepUnchanged
	case happened:
		o.state[s.Key] = stepDone
		o.done++
	default:
		o.state[s.Key] = otherwise
		o.left++
	}
}

// failure is the error of an outcome in which something is left to do. what is what would have been
// done.
func (o *outcome) failure(what string) error {
	switch {
	case o.left == 0:
		return nil // also when the store did not answer: it was seen to have happened
	case o.err != nil:
		return plainError{fmt.Sprintf("%s of %s %s, then: %s; what is done stays done, and the command can be run again for the rest",
			figures.Count(o.done), some(o.done+o.left, "lease"), what, explain(o.err)), o.err}
	default:
		return fmt.Errorf("%s of %s %s; the others changed while this ran: run the command again for them", figures.Count(o.done), some(o.done+o.left, "lease"), what)
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

func stepInfos(steps []change.Step, state map[lease.Key]string) []stepInfo {
	all := []stepInfo{}
	for _, s := range steps {
		info := stepInfo{s.Stream, s.Shard, s.From.String(), s.To.String(), s.Why, cmp.Or(state[s.Key], "planned")}
		if len(s.Actions) == 0 {
			info.State = stepUnchanged
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
