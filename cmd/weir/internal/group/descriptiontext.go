package group

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/internal/lettertext"
)

// text formats the description: the verdict, and tables. Tables have at most the given number of
// columns, or any number if it is 0. The verdict is wrapped at prose columns, and the reports of
// workers at findings columns.
func (d description) text(columns, prose, findings int) string {
	var b strings.Builder
	leader := "no worker leads"
	switch {
	case d.led != "":
		leader += ": " + d.led
	case d.Leader != nil:
		leader = fmt.Sprintf("%s leads (epoch %d)", d.Leader.Worker, d.Leader.Term)
	}
	b.WriteString(cli.Wrapped(fmt.Sprintf("Application %s; %s.%s", d.App, leader, pausesText(d.Pauses)), "  ", findings) + "\n")
	if d.Verdict.Sentence != "" {
		cli.WriteVerdict(&b, d.Verdict, prose)
		b.WriteString("\n")
	}
	for _, note := range d.Notes {
		b.WriteString(cli.Wrapped(strings.ToUpper(note[:1])+note[1:]+".", "  ", findings) + "\n")
	}
	b.WriteString(d.workersText(columns) + "\n")
	for _, info := range d.Workers {
		for _, line := range said(info) {
			b.WriteString(cli.Wrapped(line, "  ", findings))
		}
		if len(info.Troubles) > 0 {
			b.WriteString("\n")
		}
	}
	died := false
	for _, l := range d.Leases {
		if l.Deaths != nil && (l.Deaths.Died > 1 || l.Deaths.Alone > 0) { // a single death can have any cause
			b.WriteString(cli.Wrapped(fmt.Sprintf("%s of %s: %s", records.ShortID(l.Shard), l.Stream, l.Deaths), "  ", findings))
			died = true
		}
	}
	if died {
		b.WriteString("\n")
	}
	return b.String() + d.leasesText(columns)
}

func (d description) workersText(columns int) string {
	w := cli.Table{
		Columns: []cli.Column{
			{Head: "WORKER", Least: 20, Keep: cli.KeepEnds}, {Head: "STATE"}, {Head: "LEASES"}, {Head: "LOAD"},
			{Head: "HEARTBEAT"}, {Head: "FAILOVER"}, {Head: "SESSION", Least: 8},
		},
		Cut: []int{6, 0},
	}
	for _, info := range d.Workers {
		state := info.State
		if info.Drain {
			state += ", draining"
		}
		w.Add(info.Worker, state, figures.Count(info.Leases), info.rate, age(info.Beat), age(info.Failover), info.Session)
	}
	if len(d.Workers) == 0 {
		w.Add("none")
	}
	return w.Text(columns)
}

func (d description) leasesText(columns int) string {
	w := cli.Table{
		Columns: []cli.Column{
			{Head: "STREAM", Least: 10, Keep: cli.KeepEnds}, {Head: "SHARD", Least: 6, Keep: cli.KeepEnd}, {Head: "STATE"},
			{Head: "OWNER", Least: 12, Keep: cli.KeepEnds}, {Head: "EPOCH"}, {Head: "LAG", Least: 8}, {Head: "LOAD"},
			{Head: "CHECKPOINT", Least: 10, Keep: cli.KeepEnd},
		},
		Cut: []int{7, 3, 0, 5, 1},
	}
	for _, l := range d.Leases {
		owner := cmp.Or(l.Worker, "-")
		if l.Heir != "" {
			owner += " → " + l.Heir
		}
		w.Add(l.Stream, records.ShortID(l.Shard), l.State, owner, strconv.FormatUint(l.Epoch, 10), lagText(l), l.rate, l.Checkpoint)
	}
	return w.Text(columns)
}

// said returns a sentence for each trouble that a worker reports. Shards of a stream with the same
// trouble share a sentence.
func said(w workerInfo) (lines []string) {
	type alike struct{ stream, state, why, failing string }
	var order []alike
	groups := map[alike][]troubleInfo{}
	for _, t := range w.Troubles {
		k := alike{t.Stream, t.State, lettertext.Shape(t.Why), t.Failing.String()}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], t)
	}
	for _, k := range order {
		all := groups[k]
		first := slices.MinFunc(all, func(a, b troubleInfo) int {
			return cmp.Or(cmp.Compare(b.ForMS, a.ForMS), cmp.Compare(a.Shard, b.Shard))
		})
		of := records.ShortID(first.Shard) + " of " + first.Stream
		switch {
		case first.Stream == "":
			of = "itself"
		case len(all) > 1:
			of = fmt.Sprintf("%s of %s, first %s,", cli.Count(len(all), "shard"), first.Stream, records.ShortID(first.Shard))
		}
		lines = append(lines, fmt.Sprintf("%s says: %s %s for %s: %s%s", w.Worker, of, first.State, age(first.ForMS), explain.OneLine(first.Why), first.Failing))
	}
	return lines
}
