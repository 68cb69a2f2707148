package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/figures"
)

// Plain prints a line for each event, and a line about the state every few seconds.
type Plain struct {
	Out    io.Writer
	status time.Duration // when to print the next line about the state
}

const statusEvery = 5 * time.Second

// Event prints an event.
func (a *Plain) Event(at time.Duration, text string) {
	fmt.Fprintf(a.Out, "%6.1f s  %s\n", at.Seconds(), text)
}

// Picture prints the state if the last line about it is old enough.
func (a *Plain) Picture(p picture) {
	if p.at < a.status || len(p.shards) == 0 {
		return
	}
	a.status = p.at + statusEvery
	a.Event(p.at, statusLine(p))
}

func statusLine(p picture) string {
	var who []string
	for _, w := range p.workers {
		if w.life == starting || w.life == living || w.life == stopping {
			mark := ""
			if w.leads {
				mark = "*"
			}
			who = append(who, fmt.Sprintf("%s%s holds %d", w.name, mark, w.leases))
		}
	}
	return fmt.Sprintf("· put %s, handled %s, waiting %s; %s", figures.Count(p.put), figures.Count(p.handled), figures.Count(max(0, p.put-p.distinct)), strings.Join(who, ", "))
}
