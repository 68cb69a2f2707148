package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

// like is the key by which similar findings are combined.
type like struct {
	severity Severity
	code     string
	noun     string // noun for the subjects, for example "shard"; "" for findings that are never combined
	each     string // the problem, without the name of a subject
}

// alike adds a finding that can be combined with similar ones.
func (p *patient) alike(s Severity, code, noun, about, do, each, text string, args ...any) {
	p.found(s, code, about, do, text, args...)
	p.likes[len(p.findings)-1] = like{s, code, noun, each}
}

// sum combines similar findings about several subjects into one finding. If every shard that should
// be read has the same problem with its worker, its handler or its dead letters, the application
// makes no progress, and the severity becomes error.
func (p *patient) sum() {
	groups := map[like][]Finding{}
	var all []Finding
	for i, f := range p.findings {
		if l, ok := p.likes[i]; ok {
			groups[l] = append(groups[l], f)
		} else {
			all = append(all, f)
		}
	}
	for l, group := range groups {
		slices.SortFunc(group, func(a, b Finding) int { return strings.Compare(a.About, b.About) })
		f := group[0]
		if len(group) > 1 {
			f.Text = fmt.Sprintf("%s: %s, first %s", count(len(group), l.noun), l.each, f.About)
			if slices.ContainsFunc(group, func(other Finding) bool { return other.Do != f.Do }) {
				f.Do += "; the others fail in the same way"
			}
			for _, other := range group[1:] {
				f.Others = append(f.Others, other.About)
			}
			if slices.Contains([]string{"worker-trouble", "handler-fails", "give-up-held"}, l.code) && len(group) == len(p.toRead()) {
				f.Severity = Error // the application makes no progress
			}
		}
		all = append(all, f)
	}
	p.findings = all
}

// reason returns the text of a reason without the name of the shard. Findings about several shards
// can then be compared.
func reason(k lease.Key, why string) string {
	why = oneLine(why)
	if k.Shard != "" && len(k.Shard) > 2 {
		why = strings.ReplaceAll(why, k.Shard, "the shard")
	}
	return why
}

// outOfReach finds out whether the service answers no call at all. If so, it adds one finding,
// which replaces the findings about single streams and shards.
func (p *patient) outOfReach() {
	why, about := "", 0
	for _, s := range p.Streams {
		if s.Err == "" || s.Missing || slices.ContainsFunc(p.Denied, func(d Denied) bool { return d.On == "stream "+s.Name }) {
			return
		}
		if why == "" {
			why = s.Err
		}
		about++
	}
	shards := 0
	for _, seen := range p.Shards {
		if seen.Second.Err == "" || seen.Second.Code != "" {
			return
		}
		shards++
	}
	if about == 0 {
		return
	}
	p.unreachable = true
	say := ""
	if n := p.complaining(); n > 0 {
		say = fmt.Sprintf("; %s too", count(n, "worker")+cli.Plural(n, " says so,", " say so,"))
	}
	p.found(Error, "service-unreachable", p.App, "check the endpoint, the region, the network and the service; workers with the same settings cannot read either, and continue as soon as the service answers",
		"none of %s and %s can be described: %s%s", count(about, "stream"), count(shards, "shard"), why, say)
}

// isOfReading reports whether a worker that reports t waits for the service.
func isOfReading(t lease.Trouble) bool {
	switch health.ReportedReason(t.State) { // the others wait for something else
	case health.CutOff, health.NotStarted, health.Positioning, health.Requesting, health.Subscribing,
		health.ReadFailed:
		return true
	}
	return false
}

// complaining returns the number of workers that report that they cannot read.
func (p *patient) complaining() (n int) {
	for _, w := range p.Second.Workers {
		if p.beats(w) && slices.ContainsFunc(w.Troubles, isOfReading) {
			n++
		}
	}
	return n
}

// cutOff reports whether all workers with heartbeats report that they cannot read anything. There
// must be at least one such worker.
func (p *patient) cutOff() bool {
	n := 0
	for i, w := range p.Second.Workers {
		if !p.beats(w) {
			continue
		}
		if !p.Second.Workers[i].CutOff() {
			return false
		}
		n++
	}
	return n > 0
}
