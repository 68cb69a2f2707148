package group

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
)

// outcome is the result of carrying out steps.
type outcome struct{ operate.Outcome }

// carryOut carries out the steps and shows the progress.
func carryOut(ctx context.Context, t cli.Terminal, store stores.Store, app string, steps []change.Step) outcome {
	shown := cli.NewBar(t, "changing leases", len(steps))
	defer shown.Done()
	out := operate.CarryOut(ctx, store, app, steps, shown.Advance)
	out.Err = store.Explain(out.Err)
	return outcome{out}
}

// failure returns the error for steps that were not completed, or nil. In the error, what is the
// word for the whole change.
func (o *outcome) failure(what string) error {
	switch {
	case o.Left == 0:
		return nil // also after an error of the store: all steps were seen to be done
	case o.Err != nil:
		return explain.PlainError{Text: fmt.Sprintf("%s of %s %s, then: %s; run the command again for the rest",
			figures.Count(o.Done), cli.Count(o.Done+o.Left, "lease"), what, explain.Error(o.Err)), Cause: o.Err}
	default:
		return fmt.Errorf("%s of %s %s; the others changed while this ran: run the command again for them", figures.Count(o.Done), cli.Count(o.Done+o.Left, "lease"), what)
	}
}

// stepInfo describes a step in the output of reset and import.
type stepInfo struct {
	Stream string `json:"stream"`
	Shard  string `json:"shard"`
	From   string `json:"from,omitempty"` // absent if there was no lease
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
		_ = cli.Textf(w, "%s\t%s\t%s\t%s\t%s\n", s.Stream, records.ShortID(s.Shard), cmp.Or(s.From.String(), "no lease"), to, s.Why)
	}
	_ = w.Flush() // cannot fail: it writes to memory
	return trailing.ReplaceAllString(b.String(), "")
}

var trailing = regexp.MustCompile(`(?m) +$`)

// toDo returns the number of steps that change something.
func toDo(steps []change.Step) (n int) {
	for _, s := range steps {
		if len(s.Actions) > 0 {
			n++
		}
	}
	return n
}
