package doctor

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// stream compares a stream with its leases.
func (p *patient) stream(s Stream) {
	var leases []lease.Lease
	for _, l := range p.Second.Leases {
		if l.Stream == s.Name {
			leases = append(leases, l)
		}
	}
	switch {
	case s.Missing:
		p.found(Error, "no-stream", s.Name, "check its name, the region and the endpoint; if it was deleted, remove it from the workers' settings",
			"stream %s does not exist", s.Name)
		return
	case s.Err != "" && slices.ContainsFunc(p.Denied, func(d Denied) bool { return d.On == "stream "+s.Name }):
		return // reported already
	case p.unreachable:
		return // outOfReach reports this
	case s.Err != "":
		p.alike(Warning, "stream-unknown", "stream", s.Name, "check why it cannot be described", "could not be described: "+s.Err, "stream %s could not be described: %s", s.Name, s.Err)
		return
	}
	if s.Status != "" && s.Status != "ACTIVE" && s.Status != "UPDATING" {
		p.found(Warning, "stream-status", s.Name, "wait, or find out why it is deleted", "stream %s is %s", s.Name, s.Status)
	}
	if len(leases) == 0 {
		if s.Wanted {
			p.found(Warning, "stream-unread", s.Name, "add it to the workers' settings", "stream %s has no leases: no worker of %s reads it", s.Name, p.App)
		}
		return
	}
	p.ranges(s)
	p.born(s, leases)
	p.left(s, leases)
	p.unlisted(s)
	if s.Retention > 0 {
		for _, l := range leases {
			if t := l.Position.Time(); l.Position.Kind() == shard.Time && t.Before(s.Now.Add(-s.Retention)) {
				p.alike(Warning, "expired-checkpoint", "shard", l.Key.String(), "start workers or make them faster; expired records are lost",
					"to be read from a time before the oldest record in the stream",
					"%s is to be read from %s, and the stream's retention is %v", l.Key, l.Position, figures.Duration(s.Retention))
			}
		}
	}
	if p.running == 0 && slices.Contains(s.Consumers, p.App) {
		p.found(Info, "idle-consumer", s.Name, "\"weir fanout remove\" if the application no longer runs",
			"the consumer %s is registered with stream %s for fan-out, and AWS bills it although no worker runs", p.App, s.Name)
	}
}

// ranges finds hash keys that no open shard covers, or that several cover.
func (p *patient) ranges(s Stream) {
	var open []shard.Shard
	var ranges []shard.HashRange
	for _, sh := range s.Shards {
		if !sh.Closed {
			open, ranges = append(open, sh), append(ranges, sh.Range)
		}
	}
	if holes := shard.Holes(ranges); len(holes) > 0 {
		p.found(Warning, "hash-hole", s.Name, "run this again; if this does not change, ask AWS: an incomplete listing looks like this",
			"no open shard of stream %s serves the hash keys %s%s", s.Name, holes[0], more(len(holes)))
	}
	slices.SortFunc(open, func(a, b shard.Shard) int { return a.Range.Start.Compare(b.Range.Start) })
	for i := 1; i < len(open); i++ { // up to the first overlap, each range ends after all earlier ones
		if before := open[i-1]; open[i].Range.Start.Compare(before.Range.End) <= 0 {
			p.found(Warning, "hash-overlap", s.Name, "run this again; if this does not change, ask AWS: an inconsistent listing looks like this",
				"the open shards %s and %s of stream %s serve the same hash keys", before.ID, open[i].ID, s.Name)
			return
		}
	}
}

// born finds leases that belong to a deleted stream with the same name.
func (p *patient) born(s Stream, leases []lease.Lease) {
	var old []lease.Lease
	for _, l := range leases {
		if l.Born != 0 && s.Born != 0 && l.Born != s.Born {
			old = append(old, l)
		}
	}
	if len(old) > 0 {
		p.found(Error, "stream-recreated", s.Name, "\"weir group reset --stream "+s.Name+" --to oldest\", if the leader does not do so by itself",
			"stream %s was recreated at %s, and %s to one that was created at %s", s.Name, date(s.Born), count(len(old), "lease")+cli.Plural(len(old), " belongs", " belong"), date(old[0].Born))
	}
}

// left finds leases whose shards are no longer in the stream although they were not read to their
// ends.
func (p *patient) left(s Stream, leases []lease.Lease) {
	here := map[string]bool{}
	for _, sh := range s.Shards {
		here[sh.ID] = true
	}
	for _, l := range leases {
		if !here[l.Shard] && !l.Finished() {
			p.alike(Error, "shard-left", "shard", l.Key.String(), "set a retention longer than workers may be stopped; a worker finishes the lease by itself and continues with the children",
				"they have left the stream before they were read to their end: their records have expired",
				"%s has left the stream before it was read to its end, at %s: its records have expired", l.Key, l.Position)
		}
	}
}

// unlisted finds shards that have no lease, although they existed at the first read already.
func (p *patient) unlisted(s Stream) {
	if p.running == 0 {
		return
	}
	var without []shard.Shard
	for _, sh := range s.Shards {
		k := lease.Key{Stream: s.Name, Shard: sh.ID}
		_, before := p.first[k]
		_, after := p.second[k]
		if !before && !after {
			without = append(without, sh)
		}
	}
	if len(without) > 0 {
		p.found(Warning, "shard-without-lease", s.Name, "nothing: the leader repairs it with its next listing (ListInterval); if this does not change, no worker has the stream in its settings, or the listing fails: look at the leader's log",
			"%s of stream %s %s no lease, %s among them", count(len(without), "shard"), s.Name, cli.Plural(len(without), "has", "have"), without[0].ID)
	}
}

func more(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(", nor %d other ranges", n-1)
}

func date(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
