package health

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// reasonIs returns a function that reports whether the evaluation of a shard has the reason.
func reasonIs(reason Reason) func(*conclusion, *ShardFacts) bool {
	return func(_ *conclusion, s *ShardFacts) bool { return s.Reason == reason }
}

// doingIs returns a function that reports whether the owner of a shard reports one of the reasons.
func doingIs(reasons ...Reason) func(*conclusion, *ShardFacts) bool {
	return func(_ *conclusion, s *ShardFacts) bool { return doing(s, reasons...) }
}

func doing(s *ShardFacts, reasons ...Reason) bool { return slices.Contains(reasons, s.Doing) }

// readsOrRetries reports whether the owner tries to read.
func (r Reason) readsOrRetries() bool {
	return r.Activity() == Reading || r == ReadFailed || r == CutOff || r == NotStarted
}

// often reports whether n of the samples are at least failingLeast percent. A single sample is not
// enough: its minute may contain one failure that a retry fixed.
func (r Recent) often(n int) bool { return n > 1 && 100*n >= failingLeast*r.Minutes }

// hangs reports whether the handler runs nearly all the time and no record is handled. The owner
// reports a long call only later.
func (s *ShardFacts) hangs() bool {
	return s.State == Stalled && s.Doing == NoReason && s.Recent.Minutes > 0 &&
		s.Recent.Busy >= busyLeast
}

// lastError returns the end of a sentence with the last error of a shard, or "".
func (c *conclusion) lastError(s *ShardFacts) string {
	if s.Err == "" {
		return ""
	}
	c.quoted = c.quoted || s == c.worst
	return "; last error: " + strings.TrimRight(clean(s.Err), ".")
}

// sinceText returns the end of a sentence with the time since which the owner of a shard reports
// its trouble, or "".
func sinceText(s *ShardFacts) string {
	if s.DoingSince.IsZero() {
		return ""
	}
	return " since " + clock(s.DoingSince)
}

// recently is how long the verdict mentions the death of a worker.
const recently = 10 * time.Minute

// died returns which workers died in the last minutes and when, such as "worker-2 died at 08:29:49
// UTC". It returns "" if no death was seen.
func (c *conclusion) died() string {
	var parts []string
	for _, d := range c.Died {
		if c.Now.Sub(d.At) <= recently {
			at := clock(d.At)
			if d.About {
				at = d.At.UTC().Format("about 15:04 UTC")
			}
			parts = append(parts, d.Worker+" died at "+at)
		}
	}
	slices.Sort(parts)
	if n := len(parts); n > mostDied {
		parts = append(parts[:mostDied], plural(n-mostDied, "other worker died", "other workers died"))
	}
	return strings.Join(parts, ", ")
}

// mostDied is the maximum number of dead workers that a verdict names.
const mostDied = 3

// withDeaths adds the deaths of the last minutes to a sentence.
func (c *conclusion) withDeaths(sentence string) string {
	if died := c.died(); died != "" {
		return sentence + "; " + died
	}
	return sentence
}

// holder returns the name of the worker that holds a shard, or a description of it.
func (s *ShardFacts) holder() string {
	if s.Owner == "" {
		return "the owner of " + s.Name
	}
	return s.Owner
}

// busyHandlers returns the end of a sentence about how many of the affected shards have a busy
// handler, or "" if none has.
func (c *conclusion) busyHandlers() string {
	var busy []*ShardFacts
	for _, s := range c.affected {
		if s.Recent.Minutes > 0 && s.Recent.Busy >= busyLeast {
			busy = append(busy, s)
		}
	}
	if len(busy) == 0 {
		return ""
	}
	return fmt.Sprintf(", because the handler is slow: it was busy %s of the last %d min for %s",
		percents(busy, func(r Recent) int { return r.Busy }), busy[0].Recent.Minutes,
		plural(len(busy), "shard", "shards"))
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05") + " UTC" }

// percents returns the least and the largest percentage of shards, such as "91 % to 97 %".
func percents(all []*ShardFacts, of func(Recent) int) string {
	least, most := of(all[0].Recent), of(all[0].Recent)
	for _, s := range all {
		least, most = min(least, of(s.Recent)), max(most, of(s.Recent))
	}
	if least == most {
		return fmt.Sprintf("%d %%", most)
	}
	return fmt.Sprintf("%d %% to %d %%", least, most)
}
