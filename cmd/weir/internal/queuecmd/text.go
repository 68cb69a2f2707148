package queuecmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/internal/queuestate"
)

// text returns the description for people.
func (d *description) text(columns int, now time.Time) string {
	var b strings.Builder
	b.WriteString(cli.Wrapped(fmt.Sprintf("Queue %s of stream %s is %s: %s.", d.Queue, d.Stream, d.Status, d.State), "  ", columns))
	b.WriteString("  " + cli.Visible(d.ARN) + "\n")
	b.WriteString("  " + cli.Wrapped(upper(d.settings())+".", "  ", columns))
	b.WriteString("\n")
	row := func(name, value string) {
		fmt.Fprintf(&b, "  %-14s%s", name, cli.Wrapped(value, strings.Repeat(" ", 16), columns))
	}
	row("visible", number(d.Visible))
	inFlight := number(d.InFlight)
	if d.InFlight != nil {
		inFlight += fmt.Sprintf(" of %s at most (%d %%)", figures.Count(d.MaxInFlight), *d.InFlight*100/int64(d.MaxInFlight))
	}
	row("in flight", inFlight)
	dead := number(d.Dead)
	if n := d.facts.Metrics.NewDeadLetters; n > 0 {
		dead += fmt.Sprintf(", %s more than an hour ago", figures.Count(n))
	}
	row("dead letters", dead)
	row("oldest", d.oldest(now))
	row("receives", d.receives())
	if d.At != nil {
		row("as of", d.At.Format("2006-01-02 15:04:05")+" UTC")
	}
	next, command := "nothing: no problem was found", ""
	for _, f := range d.Findings {
		b.WriteString("\n" + cli.Wrapped(upper(f.Text)+".", "  ", columns))
		if f.Severity != severityNames[queuestate.Info] && strings.HasPrefix(next, "nothing:") {
			next, command = f.Do, f.Command
		}
	}
	end := "."
	if command != "" { // a separate line is easy to copy
		end = ":\n  " + cli.Visible(command)
	}
	b.WriteString("\n" + strings.TrimSuffix(cli.Wrapped("Next step: "+next, "  ", columns), "\n") + end + "\n")
	return b.String()
}

func number(n *int64) string {
	if n == nil {
		return "not known yet; CloudWatch has no value"
	}
	return figures.Count(*n)
}

// settings describes the settings of the queue.
func (d *description) settings() string {
	parts := []string{"created " + d.Created.Format("2006-01-02 15:04:05") + " UTC"}
	switch {
	case d.Start != nil:
		parts = append(parts, "begins at "+d.Start.Format("2006-01-02 15:04:05")+" UTC")
	case d.From != "":
		parts = append(parts, "begins at "+d.From)
	}
	if d.MaxReceives > 0 {
		parts = append(parts, fmt.Sprintf("dead letter after %s", cli.Count(d.MaxReceives, "receive")))
	} else {
		parts = append(parts, "no dead letters")
	}
	parts = append(parts, "visibility timeout "+figures.Duration(time.Duration(d.Visibility)*time.Second))
	if d.Retention > 0 {
		parts = append(parts, "the stream keeps records for "+figures.Duration(time.Duration(d.Retention)*time.Hour))
	}
	return strings.Join(parts, "; ")
}

// oldest describes the oldest record that --peek received.
func (d *description) oldest(now time.Time) string {
	switch p := d.Peeked; {
	case p == nil:
		return "not known without --peek, which spends a receive"
	case p.Records == 0:
		return "no record is visible"
	default:
		return fmt.Sprintf("%s old, of %s; received up to %s",
			figures.Duration(max(now.Sub(*p.Oldest), 0).Round(time.Second)), cli.Count(p.Records, "record"), cli.Count(p.Receives, "time"))
	}
}

// receives describes the receives of the last hour.
func (d *description) receives() string {
	if d.Received == 0 {
		return "none in the last hour"
	}
	text := fmt.Sprintf("%s in the last hour, %s acknowledged", figures.Count(d.Received), figures.Count(d.Acked))
	if d.Acked > 0 && d.MaxReceives > 0 {
		ended := d.Received // records in flight are not acknowledged yet
		if d.InFlight != nil {
			ended = max(d.Received-*d.InFlight, d.Acked)
		}
		text += fmt.Sprintf(": %.1f per record of %d", float64(ended)/float64(d.Acked), d.MaxReceives)
	}
	return text
}
