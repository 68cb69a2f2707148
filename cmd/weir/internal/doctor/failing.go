package doctor

import (
	"fmt"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

// failing adds a finding if t is about a failing handler, or about the dead-lettering of its
// record. It reports whether it added a finding.
func (p *patient) failing(w lease.Worker, t lease.Trouble) bool {
	f, name, severity := t.Failing, p.names[w.Session], Warning
	if p.stuck[t.Key] {
		severity = Error
	}
	why := ""
	if t.Why != "" {
		why = ": " + oneLine(t.Why)
	}
	at := "with the next records of " + t.Key.String()
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
	fails := fmt.Sprintf("the handler of worker %s fails %s for %s, %s until now%s", name, at, rough(t.For), count(f.Attempts, "call"), why)
	if f.GivenUp > 0 && t.State != lease.GaveUp {
		fails += fmt.Sprintf("; %s of the shard %s dead-lettered recently", count(f.GivenUp, "record"), cli.Plural(f.GivenUp, "was", "were"))
	}
	switch {
	case t.State == lease.GaveUp:
		p.alike(Warning, "given-up", "shard", t.Key.String(), `look at the dead letters ("weir dead list"), and handle them again once that can succeed ("weir dead retry")`,
			"workers have dead-lettered records of them",
			"worker %s has dead-lettered %s of %s within %s, the last of them %s%s", name, count(f.GivenUp, "record"), t.Key, rough(t.For), f.At, why)
	case f.Letters:
		p.alike(Error, "letters-fail", "shard", t.Key.String(), "repair the destination of dead letters (Options.OnFailure.Destination, --dead); the shard continues as soon as they can be written",
			"records have to be dead-lettered, and that fails"+why,
			"worker %s cannot dead-letter records of %s for %s, so the shard waits%s", name, t.Key, rough(t.For), why)
	case f.Held == lease.HeldForOutage:
		p.alike(severity, "give-up-held", "shard", t.Key.String(),
			"check what the handler depends on, such as a database; the record is dead-lettered after Options.OnFailure.OutageGrace, or once another record is handled",
			"records fail, and are not dead-lettered yet, because no other record is handled either: "+reason(t.Key, t.Why),
			"%s; it is not dead-lettered yet, because %s", fails, health.NoOtherHandled)
	case f.Held == lease.HeldRate:
		p.alike(severity, "give-up-held", "shard", t.Key.String(), "check whether the records are at fault; if they are, raise Options.OnFailure.MaxPerMinute",
			"records fail, and are not dead-lettered yet, because there are too many per minute: "+reason(t.Key, t.Why),
			"%s; it is not dead-lettered yet, because %s", fails, health.RateLimited)
	case f.Attempts > 0:
		p.alike(severity, "handler-fails", "shard", t.Key.String(), "look at the log of "+name+"; fix the handler, or set when records are dead-lettered (Options.OnFailure, --max-attempts with --dead)",
			"handlers fail: "+reason(t.Key, t.Why), "%s", fails)
	default:
		return false
	}
	return true
}
