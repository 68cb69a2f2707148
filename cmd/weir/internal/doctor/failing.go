package doctor

import (
	"fmt"

	"github.com/weir-go/weir/lease"
)

// failing is about a handler that fails, and about what becomes of the record. It reports whether
// the trouble is one of these.
func (p *patient) failing(w lease.Worker, t lease.Trouble) bool {
	f, name, severity := t.Failing, p.names[w.Session], Warning
	if p.stuck[t.Key] {
		severity = Error
	}
	why := ""
	if t.Why != "" {
		why = ": " + oneLine(t.Why)
	}
	at := "with what is next of " + t.Key.String()
	switch {
	case f.At == "":
	case f.Records > 1:
		at = fmt.Sprintf("with %s of %s, from %s on", count(f.Records, "record"), t.Key, f.At)
	default:
		at = fmt.Sprintf("at the record %s of %s", f.At, t.Key)
	}
	if f.KeyHash != "" {
		at += " (hash of its key " + f.KeyHash + ")"
	}
	fails := fmt.Sprintf("the handler of worker %s fails %s for %s, %s so far%s", name, at, rough(t.For), count(f.Attempts, "call"), why)
	if f.GivenUp > 0 && t.State != lease.GaveUp {
		fails += fmt.Sprintf("; %s of the shard %s given up lately", count(f.GivenUp, "record"), plural(f.GivenUp, "was", "were"))
	}
	switch {
	case t.State == lease.GaveUp:
		p.alike(Warning, "given-up", "shard", t.Key.String(), `look at their letters ("weir dead list"), and have them handled when they can be ("weir dead retry")`,
			"workers have given records of theirs up",
			"worker %s has given up %s of %s within %s, the last of them %s%s", name, count(f.GivenUp, "record"), t.Key, rough(t.For), f.At, why)
	case f.Letters:
		p.alike(Error, "letters-fail", "shard", t.Key.String(), "see to where letters go (Options.GiveUp.To, --dead); it goes on by itself when they can be put",
			"records are to be given up, and their letters cannot be put"+why,
			"worker %s is to give up records of %s, and cannot put their letters for %s, for which the shard waits%s", name, t.Key, rough(t.For), why)
	case f.Held == lease.HeldPatience:
		p.alike(severity, "give-up-held", "shard", t.Key.String(),
			"look whether what the handler needs is there, such as a database; the record is given up when Options.GiveUp.Patience is over, or when something else is handled",
			"records could be given up, and are not yet, because nothing else is handled, either: "+reason(t.Key, t.Why),
			"%s; it is not given up yet, because the worker has handled nothing else since", fails)
	case f.Held == lease.HeldRate:
		p.alike(severity, "give-up-held", "shard", t.Key.String(), "look whether so many records are at fault; if they are, raise Options.GiveUp.PerMinute",
			"records could be given up, and are not yet, because that would be too many a minute: "+reason(t.Key, t.Why),
			"%s; it is not given up yet, because that would be too many a minute", fails)
	case f.Attempts > 0:
		p.alike(severity, "handler-fails", "shard", t.Key.String(), "look at the log of "+name+"; mend the handler, or say when records are given up (Options.GiveUp, --attempts with --dead)",
			"handlers fail: "+reason(t.Key, t.Why), "%s", fails)
	default:
		return false
	}
	return true
}
