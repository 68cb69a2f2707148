package lease

import "fmt"

// reason is the reason why a plan changes a lease.
type reason uint8

const (
	whyLast reason = iota + 1
	whyParent
	whyBelow
	whyShunned
	whyLeaving
	whyShare
	whyLoad
	whyPaused
	whyOver
	whyBack
	whyHeirless
	whyOverdue
	whyUnread
	whyNotItsOwn
)

// Explain returns one sentence for each action of [Plan], in the same order. Each sentence
// describes the action and its reason. It is for people.
func Explain(v View, f Facts, lim Limits) []string {
	p := decide(v, f, lim)
	decided := make(map[Key]*entry, len(p.entries))
	for _, e := range p.entries {
		decided[e.Key] = e
	}
	var all []string
	for _, a := range p.actions(f) {
		all = append(all, p.sentence(a, decided[a.Key]))
	}
	return all
}

func (p *planner) sentence(a Action, e *entry) string {
	switch a.Kind {
	case EndSession:
		return fmt.Sprintf("end %s: it has sent no heartbeat for the failover time", a.Session)
	case Tell:
		return fmt.Sprintf("notify %s to read its leases: its own list differs from the store", a.Session)
	case Forget:
		return fmt.Sprintf("forget %s: it has ended and holds no lease", a.Session)
	case Assign:
		return fmt.Sprintf("give %s to %s: %s", a.Key, a.Session, e.because())
	case Revoke:
		return fmt.Sprintf("take %s from %s: %s", a.Key, e.Owner, e.because())
	default:
		if a.Session == "" {
			return fmt.Sprintf("leave %s with %s, not %s: %s", a.Key, e.Owner, e.Heir, e.because())
		}
		to := a.Session
		if to == Nobody {
			to = "nobody"
		}
		return fmt.Sprintf("move %s from %s to %s: %s", a.Key, e.Owner, to, e.because())
	}
}

// because returns the text of the reason for the plan's decision about a lease.
func (e *entry) because() string {
	switch e.why {
	case whyLast:
		return "it has no owner, and that worker had it last"
	case whyParent:
		return "it has no owner, and that worker had its parent"
	case whyBelow:
		return fmt.Sprintf("no other worker is further below its share (it has %d of %d)", e.to.had, e.to.share)
	case whyShunned:
		return fmt.Sprintf("%s could not make progress with it", e.Shunned)
	case whyLeaving:
		if e.owner.drain {
			return "its worker is drained"
		}
		return "its worker is stopping"
	case whyShare:
		return fmt.Sprintf("%s has %d of a share of %d, %s %d of %d",
			e.owner.session, e.owner.had, e.owner.share, e.to.session, e.to.had, e.to.share)
	case whyLoad:
		return fmt.Sprintf("to balance the load of the two workers (the load of this lease is %s)", e.Load)
	case whyPaused:
		return "its stream is paused"
	case whyOver:
		return "its stream is paused, and that worker has ended"
	case whyUnread:
		return "no live worker reads its stream"
	case whyNotItsOwn:
		return fmt.Sprintf("%s does not read its stream", e.owner.session)
	case whyBack:
		return fmt.Sprintf("%s has its share without it", e.heir.session)
	case whyHeirless:
		if e.to != nil {
			return fmt.Sprintf("%s can no longer take it", e.Heir)
		}
		return "the requested heir cannot take it"
	case whyOverdue:
		return "it did not hand it over within the handoff timeout"
	default:
		return "it is the plan"
	}
}
