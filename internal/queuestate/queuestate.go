// Package queuestate evaluates the state of a Kinesis queue. It makes no calls. The command and the
// dashboard share it.
package queuestate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxInFlight is how many records of a queue can be in flight, over all of its consumers.
const MaxInFlight = 120_000

// Unknown is the value of a number that is not known.
const Unknown = -1

// lowReceives is the MaxReceiveCount below which restarts alone can make dead letters.
const lowReceives = 10

// Facts are the known facts about a queue.
type Facts struct {
	Name, ARN string
	Stream    string // its name
	Status    string // CREATING, ACTIVE, UPDATING or DELETING
	Created   time.Time
	// DeadLetters is false if the queue delivers a record until it is acknowledged or expires.
	DeadLetters     bool
	MaxReceiveCount int
	Visibility      time.Duration // default hold of a received record

	StreamMissing bool          // the stream does not exist
	StreamMode    string        // ON_DEMAND, PROVISIONED, or "" if unknown
	Retention     time.Duration // of the stream; 0 if unknown

	Metrics    Metrics
	MetricsErr string // why the metrics are not known; "" if they are
}

// Metrics are the numbers of a queue according to CloudWatch.
type Metrics struct {
	At                             time.Time // of the newest numbers of records; zero if there are none
	Visible, InFlight, DeadLetters int64     // records; Unknown if CloudWatch has no value

	Over                                  time.Duration // the time that the sums cover
	Received, Acknowledged, EmptyReceives int64         // sums; the first two count records
	NewDeadLetters                        int64         // change of DeadLetters over that time
}

// Severity says how bad a finding is.
type Severity uint8

// The severities, the worst first.
const (
	Error   Severity = iota // records are not handled, or may be lost
	Warning                 // the state may become an error
	Info                    // useful to know
)

// Finding is one result about a queue.
type Finding struct {
	Severity Severity
	Code     string // for programs; it never changes
	Text     string // a sentence without the final point
	Do       string // remedy
	Command  string // a command that is a part of the remedy; may be empty
}

// Judge returns the findings about a queue, the worst first.
func Judge(f Facts) []Finding {
	var all []Finding
	add := func(s Severity, code, do, command, text string, args ...any) {
		all = append(all, Finding{s, code, fmt.Sprintf(text, args...), do, command})
	}
	m, name := &f.Metrics, f.Name
	switch f.Status {
	case "DELETING":
		add(Error, "queue-deleting", "move its consumers to another queue", "", "queue %s is being deleted and delivers nothing", name)
	case "CREATING":
		add(Warning, "queue-creating", "wait until it is ACTIVE", "", "queue %s is being created and delivers nothing yet", name)
	case "UPDATING":
		add(Info, "queue-updating", "nothing: it delivers records as before", "", "the settings of queue %s are being changed", name)
	}
	switch {
	case f.StreamMissing:
		add(Error, "queue-stream-missing", "check the region, and whether the stream was deleted", "", "stream %s of queue %s does not exist", f.Stream, name)
	case f.StreamMode != "" && f.StreamMode != "ON_DEMAND":
		add(Error, "queue-stream-mode", "switch the stream to on-demand mode", "", "stream %s is %s, and queues need on-demand mode", f.Stream, strings.ToLower(f.StreamMode))
	}
	all = append(all, deadLetters(&f)...)
	if f.DeadLetters && f.MaxReceiveCount > 0 && f.MaxReceiveCount < lowReceives {
		add(Warning, "queue-receives-low", "raise it to 10 or more", "weir queue update --queue "+name+" --max-receives 20",
			"a record of queue %s becomes a dead letter after %s, and crashes and restarts spend receives, too", name, plural(int64(f.MaxReceiveCount), "receive"))
	}
	if !f.DeadLetters {
		add(Info, "queue-no-dead-letters", "nothing, if consumers set failing records aside themselves", "",
			"queue %s keeps no dead letters: a record that always fails is delivered until it leaves the stream", name)
	}
	if f.Visibility == 0 {
		add(Warning, "queue-visibility-zero", "set a visibility timeout", "weir queue update --queue "+name+" --visibility 30s",
			"queue %s does not hide a received record by default, so other consumers than weir get it several times", name)
	}
	if m.InFlight != Unknown {
		switch {
		case m.InFlight >= MaxInFlight:
			add(Error, "queue-in-flight-full", "acknowledge or release records: make handlers faster, or their backoff shorter", "",
				"queue %s delivers nothing, because %s records are in flight, and %s is the maximum", name, Count(m.InFlight), Count(MaxInFlight))
		case m.InFlight >= MaxInFlight*8/10:
			add(Warning, "queue-in-flight-near", "make handlers faster, or their backoff shorter; records in backoff are in flight", "",
				"%s records of queue %s are in flight; at %s it stops delivering", Count(m.InFlight), name, Count(MaxInFlight))
		}
	}
	if m.Visible > 0 && m.Received == 0 && m.InFlight <= 0 && !m.At.IsZero() {
		add(Error, "queue-not-consumed", "start a consumer", "weir consume --queue "+name,
			"queue %s has %s, and no process received any in the last %s", name, plural(m.Visible, "visible record"), span(m.Over))
	}
	// Each record needs one receive. Records in flight have one, too.
	if extra := m.Received - m.Acknowledged - max(m.InFlight, 0); f.DeadLetters && extra >= 50 && 2*extra > m.Acknowledged {
		add(Warning, "queue-receives-spent", "look for failing handlers, crashes and holds that end before the handler does", "",
			"queue %s spends many receives: %s for %s in the last %s", name, Count(m.Received), plural(m.Acknowledged, "acknowledged record"), span(m.Over))
	}
	if f.MetricsErr != "" {
		add(Info, "queue-metrics-unknown", "allow cloudwatch:GetMetricData, or look at CloudWatch", "", "the numbers of queue %s are not known: %s", name, f.MetricsErr)
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	return all
}

// deadLetters returns the findings about the dead letters of the queue.
func deadLetters(f *Facts) (all []Finding) {
	m := &f.Metrics
	if m.DeadLetters <= 0 {
		return nil
	}
	list := "weir queue dead list --queue " + f.Name
	lost := ""
	if f.Retention > 0 {
		lost = ", and each is lost " + duration(f.Retention) + " after its record arrived"
	}
	finding := Finding{
		Warning, "queue-dead-letters", fmt.Sprintf("queue %s has %s%s", f.Name, plural(m.DeadLetters, "dead letter"), lost),
		"look at them, remove the cause, and restore them", list,
	}
	if m.NewDeadLetters > 0 {
		finding.Code = "queue-dead-letters-grow"
		finding.Text = fmt.Sprintf("the dead letters of queue %s grow: %s now, %s more than at the beginning of the last %s%s", f.Name, Count(m.DeadLetters), Count(m.NewDeadLetters), span(m.Over), lost)
	}
	all = append(all, finding)
	if f.Retention > 0 && f.Retention <= 24*time.Hour {
		all = append(all, Finding{
			Warning, "queue-retention-short", fmt.Sprintf("stream %s keeps records for %s, and queue %s keeps dead letters no longer", f.Stream, duration(f.Retention), f.Name),
			"copy the dead letters, or increase the retention of the stream", "weir queue copy-dead --queue " + f.Name + " --dead file:dead.ndjson",
		})
	}
	return all
}

// State returns one to three words that describe a queue.
func State(f Facts) (word string, severity Severity) {
	found := Judge(f)
	m := &f.Metrics
	switch {
	case f.Status != "ACTIVE" && f.Status != "UPDATING":
		return strings.ToLower(f.Status), found[0].Severity
	case has(found, "queue-not-consumed"):
		return "not consumed", Error
	case has(found, "queue-in-flight-full"):
		return "full", Error
	case len(found) > 0 && found[0].Severity == Error:
		return "broken", Error
	case has(found, "queue-dead-letters"), has(found, "queue-dead-letters-grow"):
		return "with dead letters", Warning
	case len(found) > 0 && found[0].Severity == Warning:
		return "at risk", Warning
	case m.At.IsZero():
		return "active", Info
	case m.Received > 0 || m.InFlight > 0:
		return "consumed", Info
	case m.Visible == 0:
		return "empty", Info
	}
	return "active", Info
}

func has(all []Finding, code string) bool {
	return slices.ContainsFunc(all, func(f Finding) bool { return f.Code == code })
}
