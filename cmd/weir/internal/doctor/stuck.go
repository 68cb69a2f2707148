package doctor

import (
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

const (
	// A checkpoint that does not move causes a finding only if an unhandled record is older than
	// waitsLong.
	waitsLong = time.Minute
	// stallAfter is the default of weir.Options.Timing.StallAfter. A worker itself reports batches
	// that take longer. The worker's actual setting is not in the store.
	stallAfter = 2 * time.Minute
)

// stand is a shard whose checkpoint did not move between the reads, although records are waiting.
type stand struct {
	lease.Key
	owner string
	age   time.Duration // age of the oldest waiting record
}

// standing returns the severity of a checkpoint that does not move, or "" if that deserves no
// finding. A batch may take any time, so a checkpoint that does not move proves nothing by itself.
func standing(apart, age time.Duration, complains bool) Severity {
	switch {
	case age < waitsLong:
		return ""
	case complains, apart >= stallAfter:
		return Error
	}
	return Warning
}

// stood adds findings about shards whose checkpoints did not move. If a shard may only have a slow
// batch, its finding is combined with those of other such shards of the same worker.
func (p *patient) stood(all []stand) {
	slow := map[string][]stand{}
	for _, s := range all {
		name := p.names[s.owner]
		t, complains := p.complaint(s.owner, s.Key)
		if of, held := p.onPurpose(s.owner, s.Key); held && !complains && s.age >= waitsLong {
			p.alike(Info, "held", "shard", s.String(), "nothing if windows are that long; the retention of the stream has to be longer",
				"their checkpoints are held on purpose, as workers report: "+oneLine(of.Why),
				"the checkpoint of %s is held on purpose, as worker %s reports, for %s: %s; the oldest record behind it is %s old", s.Key, name, rough(of.For), oneLine(of.Why), rough(s.age))
			continue
		}
		switch standing(p.Apart, s.age, complains) {
		case Error:
			p.stuck[s.Key] = true
			if complains && t.Failing.Attempts > 0 {
				continue // the finding about the handler says more
			}
			says, each := "", "their checkpoints have not moved although records wait"
			if complains {
				state := health.ReportedWords(t.State)
				each += "; " + state + ", as workers report: " + reason(s.Key, t.Why)
				says = ", and says: " + state + " for " + rough(t.For)
				if t.Why != "" {
					says += ": " + oneLine(t.Why)
				}
			}
			p.alike(Error, "stuck-shard", "shard", s.String(), "look at what the handler of "+name+" does with it, and at its log", each,
				"the checkpoint of %s has not moved for %v although records wait, the oldest for %s; its owner is %s%s", s.Key, figures.Duration(p.Apart), rough(s.age), name, says)
		case Warning:
			slow[s.owner] = append(slow[s.owner], s)
		}
	}
	for owner, shards := range slow {
		name, oldest := p.names[owner], shards[0]
		for _, s := range shards {
			if s.age > oldest.age {
				oldest = s
			}
		}
		among := oldest.String()
		if n := len(shards); n > 1 {
			among = count(n, "shard") + ", " + oldest.String() + " among them,"
		}
		p.alike(Warning, "no-checkpoint", "worker", name, "nothing if the handler takes longer than that for a batch; otherwise watch longer, for example with --watch "+stallAfter.String(),
			"they have made no checkpoint of some shards although records wait",
			"worker %s has made no checkpoint of %s for %v although records wait, the oldest for %s", name, among, figures.Duration(p.Apart), rough(oldest.age))
	}
}

// complaint returns the problem that a worker reports for one of its shards, if any.
func (p *patient) complaint(session string, k lease.Key) (lease.Trouble, bool) {
	for _, t := range p.workerOf(session).Troubles {
		if t.Key == k && t.State != lease.GaveUp && t.State != lease.OnPurpose {
			return t, true
		}
	}
	return lease.Trouble{}, false
}

// onPurpose returns the worker's report that it holds checkpoints on purpose, if any.
func (p *patient) onPurpose(session string, k lease.Key) (lease.Trouble, bool) {
	for _, t := range p.workerOf(session).Troubles {
		if t.State == lease.OnPurpose && (t.Key == k || t.Key == lease.Key{}) {
			return t, true
		}
	}
	return lease.Trouble{}, false
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
