package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/errtext"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// eventKind is the kind of an event. The events found in one read are sorted by kind, because
// earlier kinds often cause later ones.
type eventKind uint8

const (
	storeEvent eventKind = iota
	deathEvent
	workerEvent
	drainEvent
	pauseEvent
	leaderEvent
	reshardEvent
	handoverEvent
	stallEvent
	failingEvent
	givenUpEvent
	troubleEvent
)

type eventWords struct{ label, words string }

var eventKinds = [...]eventWords{
	storeEvent: {"store", "store"}, deathEvent: {"death", "death"}, workerEvent: {"worker", "worker"}, drainEvent: {"drain", "drain"},
	pauseEvent: {"pause", "pause"}, leaderEvent: {"leader", "leader"}, reshardEvent: {"shards", "shards"}, handoverEvent: {"handover", "hand-over"},
	stallEvent: {"stall", "stall"}, failingEvent: {"failing", "failing handler"}, givenUpEvent: {"given_up", "records dead-lettered"}, troubleEvent: {"trouble", "other trouble"},
}

func (k eventKind) String() string { return eventKinds[k].words }

// Label returns the name of the kind in links and in the style sheet.
func (k eventKind) Label() string { return eventKinds[k].label }

// event is a change between two reads of an application.
type event struct {
	at, after time.Time // when it was first seen, and the last read before that
	since     time.Time // when the condition began; zero if unknown
	kind      eventKind
	over      bool   // the condition has ended
	text      string // contains the names of shards only if named is true
	named     bool
	past      bool // from the history, accurate to the minute
	shards    []lease.Key
	workers   []string
}

const (
	mostEvents   = 300              // maximum number of events kept per application
	mostMentions = 5000             // maximum number of shards that these events name
	mostOfAKind  = 20               // maximum number of events of one kind per read
	unreadTold   = 10 * time.Second // for a shorter time without a reader, a shard counts as being handed off
	gapTold      = 30 * time.Second // a longer gap between two reads is mentioned
)

// eventLog contains the events of an application, newest first: those since its first read, and
// before these the events that the history shows. A log does not change; the method with returns a
// new one.
type eventLog struct {
	since   time.Time // time of the first read
	history time.Time // time of the oldest report in the history; zero if there is none
	events  []event
	dropped bool // older events were dropped
}

// with returns the log with later events added. The new events must be sorted, the oldest first. If
// the log gets too long, its oldest events are dropped.
func (l eventLog) with(more []event) eventLog {
	if len(more) == 0 {
		return l
	}
	all := slices.Clone(more)
	slices.Reverse(all)
	all = append(all, l.events...)
	mentions := 0
	for i, e := range all {
		if mentions += len(e.shards); i > 0 && (i >= mostEvents || mentions > mostMentions) {
			all, l.dropped = slices.Clone(all[:i]), true
			break
		}
	}
	l.events = all
	return l
}

// changes returns the events that happened between two reads, oldest first. It returns nil if there
// was no earlier read.
func changes(old, now sighting) []event {
	if old.at.IsZero() {
		return nil
	}
	c := comparison{old: old, now: now, was: workersOf(old), is: workersOf(now), before: map[lease.Key]lease.Lease{}}
	for _, l := range old.view.Leases {
		c.before[l.Key] = l
	}
	c.workers()
	c.application()
	c.lineage()
	for _, l := range now.view.Leases {
		if was, known := c.before[l.Key]; known {
			c.lease(was, l)
		}
	}
	c.states()
	return gather(c.found)
}

// comparison finds the differences between two reads of an application.
type comparison struct {
	old, now sighting
	was, is  map[string]lease.Worker
	before   map[lease.Key]lease.Lease
	found    []event
}

func workersOf(s sighting) map[string]lease.Worker {
	all := make(map[string]lease.Worker, len(s.view.Workers))
	for _, w := range s.view.Workers {
		all[w.Session] = w
	}
	return all
}

func (c *comparison) add(kind eventKind, text string, key lease.Key, workers ...string) *event {
	e := event{at: c.now.at, after: c.old.at, kind: kind, text: text, workers: slices.DeleteFunc(workers, func(w string) bool { return w == "" })}
	if key != (lease.Key{}) {
		e.shards = []lease.Key{key}
	}
	c.found = append(c.found, e)
	return &c.found[len(c.found)-1]
}

// name returns the worker name that belongs to a session.
func (c *comparison) name(session string) string {
	return cmp.Or(c.is[session].Name, c.was[session].Name, session)
}

// dead reports whether the heartbeats of a session show that the worker has died.
func (c *comparison) dead(session string) bool {
	w, there := c.is[session]
	beats := c.now.beats
	if !there {
		w, beats = c.was[session], c.old.beats
	}
	l := lifeOf(w, beats[session])
	return w.Session != "" && (l == lifeSilent || l == lifeEnded && !w.Leaving)
}

func (c *comparison) workers() {
	none := lease.Key{}
	for _, w := range c.now.view.Workers {
		name, was := c.name(w.Session), c.was[w.Session]
		life := lifeOf(w, c.now.beats[w.Session])
		if was.Session == "" {
			if life != lifeEnded {
				c.add(workerEvent, name+" started", none, name)
			}
			continue
		}
		before := lifeOf(was, c.old.beats[w.Session])
		switch {
		case life == before:
		case life == lifeEnded && w.Leaving:
			c.add(workerEvent, name+" stopped", none, name)
		case life == lifeEnded:
			c.add(deathEvent, name+" was declared dead; its shards go to others", none, name)
		case life == lifeSilent:
			c.add(deathEvent, name+" sends no heartbeats", none, name).since = c.now.beats[w.Session].first
		case before == lifeSilent:
			c.add(deathEvent, name+" is alive again", none, name).over = true
		case life == lifeLeaving:
			c.add(workerEvent, name+" is being stopped", none, name)
		}
		if w.Drain != was.Drain {
			text := " is drained"
			if !w.Drain {
				text = " is no longer drained"
			}
			c.add(drainEvent, name+text, none, name).over = !w.Drain
		}
		if cut, wasCut := cutOff(w), cutOff(was); cut != nil && wasCut == nil {
			c.add(troubleEvent, name+" is cut off: "+cut.Why, none, name).since = c.now.at.Add(-cut.For)
		} else if cut == nil && wasCut != nil {
			c.add(troubleEvent, name+" is no longer cut off", none, name).over = true
		}
	}
	for _, w := range c.old.view.Workers {
		if _, there := c.is[w.Session]; !there && !w.Ended {
			name, how := c.name(w.Session), " stopped"
			if c.now.at.Sub(c.old.at) > gapTold && !w.Leaving {
				how = " is gone" // for an unknown reason
			}
			c.add(workerEvent, name+how, none, name)
		}
	}
}

func cutOff(w lease.Worker) *lease.Trouble {
	for i := range w.Troubles {
		if t := &w.Troubles[i]; health.ReportedReason(t.State) == health.CutOff && t.Key == (lease.Key{}) {
			return t
		}
	}
	return nil
}

func (c *comparison) application() {
	what := func(stream string) string {
		if stream == "" {
			return "the application"
		}
		return stream
	}
	for _, s := range c.now.view.Paused {
		if !slices.Contains(c.old.view.Paused, s) {
			text := strings.TrimSpace(what(s) + " was paused " + observe.PauseOf(c.now.view, s).String())
			c.add(pauseEvent, text, lease.Key{})
		}
	}
	for _, s := range c.old.view.Paused {
		if !slices.Contains(c.now.view.Paused, s) {
			c.add(pauseEvent, what(s)+" was resumed", lease.Key{}).over = true
		}
	}
	leads, led := c.now.view.Leader.Session, c.old.view.Leader.Session
	switch {
	case leads == led:
	case leads == "":
		c.add(leaderEvent, "no leader; before: "+c.name(led)+" did", lease.Key{}, c.name(led))
	case led == "":
		c.add(leaderEvent, c.name(leads)+" leads", lease.Key{}, c.name(leads))
	default:
		c.add(leaderEvent, c.name(leads)+" leads; before, "+c.name(led)+" did", lease.Key{}, c.name(leads), c.name(led))
	}
}

// lineage adds an event for each shard that appeared or disappeared.
func (c *comparison) lineage() {
	type family struct{ stream, parents string }
	children, there := map[family][]string{}, map[lease.Key]bool{}
	var families []family
	for _, l := range c.now.view.Leases {
		there[l.Key] = true
		if _, known := c.before[l.Key]; known {
			continue
		}
		if len(l.Parents) == 0 {
			c.add(reshardEvent, "appeared", l.Key)
			continue
		}
		f := family{l.Stream, strings.Join(slices.Sorted(slices.Values(l.Parents)), " ")}
		if children[f] == nil {
			families = append(families, f)
		}
		children[f] = append(children[f], l.Shard)
	}
	for _, f := range families {
		parents, into := strings.Fields(f.parents), children[f]
		how := " was split into "
		if len(parents) > 1 {
			how = " were merged into "
		}
		e := c.add(reshardEvent, strings.Join(shorts(parents), " and ")+how+strings.Join(shorts(into), " and "), lease.Key{})
		e.named = true
		for _, id := range append(parents, into...) {
			e.shards = append(e.shards, lease.Key{Stream: f.stream, Shard: id})
		}
	}
	for _, l := range c.old.view.Leases {
		if !there[l.Key] {
			c.add(reshardEvent, "left the stream", l.Key)
		}
	}
}

// lease adds the events of a lease that existed in both reads.
func (c *comparison) lease(was, is lease.Lease) {
	if was.Born != 0 && is.Born != 0 && was.Born != is.Born {
		c.add(reshardEvent, "the stream was recreated", is.Key)
		return
	}
	if is.Finished() {
		if !was.Finished() {
			c.add(reshardEvent, health.Ended.String(), is.Key, c.owner(was.Owner))
		}
		return
	}
	if known := was.Position.Kind() == shard.Sequence; known && is.Position.Compare(was.Position) < 0 {
		c.add(troubleEvent, "reset to an earlier position", is.Key)
	}
	from, to := c.owner(was.Owner), c.owner(is.Owner)
	switch {
	case was.Owner == is.Owner && (was.Epoch == is.Epoch || is.Owner == ""):
	case was.Owner == is.Owner:
		c.add(handoverEvent, "changed hands, and is with "+to+" again", is.Key, to)
	case was.Owner == "":
		c.add(handoverEvent, "to "+to+"; it had no owner", is.Key, to)
	case is.Owner != "" && c.dead(was.Owner):
		c.add(handoverEvent, "from "+from+", which died, to "+to, is.Key, from, to)
	case is.Owner != "":
		c.add(handoverEvent, "from "+from+" to "+to, is.Key, from, to)
	case is.Revoked == was.Owner:
		c.add(handoverEvent, "taken from "+from, is.Key, from)
	case is.Shunned == was.Owner:
		c.add(handoverEvent, "given back by "+from+", which made no progress", is.Key, from)
	default:
		c.add(handoverEvent, "given back by "+from, is.Key, from)
	}
	c.failures(was, is, to)
}

func (c *comparison) owner(session string) string {
	if session == "" {
		return ""
	}
	return c.name(session)
}

// failures adds events about failing handlers and dead-lettered records. The owner of the lease
// reports both.
func (c *comparison) failures(was, is lease.Lease, owner string) {
	before, now := lease.Failing{}, lease.Failing{}
	var why string
	var since time.Time
	if t := troubleOf(c.is[is.Owner], is.Key); t != nil {
		now, why, since = t.Failing, t.Why, c.now.at.Add(-t.For)
	}
	if same := was.Owner == is.Owner && was.Epoch == is.Epoch; same {
		if t := troubleOf(c.was[was.Owner], is.Key); t != nil {
			before = t.Failing
		}
	}
	fails := func(f lease.Failing) bool { return f.Attempts > 0 || f.Letters }
	switch {
	case fails(now) && !fails(before):
		c.add(failingEvent, "the handler fails: "+why, is.Key, owner).since = since
	case !fails(now) && fails(before):
		c.add(failingEvent, "the handler no longer fails", is.Key, owner).over = true
	}
	if n := now.GivenUp - before.GivenUp; n > 0 {
		c.add(givenUpEvent, fmt.Sprintf("%d %s dead-lettered: %s", n, plural(n, "record was", "records were"), why), is.Key, owner)
	}
}

func troubleOf(w lease.Worker, key lease.Key) *lease.Trouble {
	for i := range w.Troubles {
		if w.Troubles[i].Key == key {
			return &w.Troubles[i]
		}
	}
	return nil
}

// states adds an event for each problem that began or ended. It compares the health states of both
// reads.
func (c *comparison) states() {
	was := map[lease.Key]health.Shard{}
	for _, v := range c.old.judged {
		was[lease.Key{Stream: v.Stream, Shard: v.Name}] = v.Shard
	}
	owners := map[lease.Key]string{}
	for _, l := range c.now.view.Leases {
		owners[l.Key] = c.owner(l.Owner)
	}
	for _, v := range c.now.judged {
		key := lease.Key{Stream: v.Stream, Shard: v.Name}
		before, known := was[key]
		if !known {
			continue
		}
		from, to := troubleIn(before, c.old.at), troubleIn(v.Shard, c.now.at)
		switch {
		case from == to:
		case to != health.OK:
			text := to.String()
			if why := v.Why(); why != "" {
				text += ": " + why
			}
			if v.Err != "" {
				text += lastError + v.Err
			}
			c.add(kindOf(to), text, key, owners[key]).since = v.Since
		default:
			text := "not " + from.String() + " any more"
			if v.State != health.NotKnown {
				text += "; now " + v.State.String()
			}
			c.add(kindOf(from), text, key, owners[key]).over = true
		}
	}
}

func kindOf(s health.State) eventKind {
	if s == health.Stalled {
		return stallEvent
	}
	return troubleEvent
}

// troubleIn returns the problem of a shard, or OK if the shard has no problem. A shard that has
// been without a reader for less than unreadTold counts as being handed off, which is no problem.
func troubleIn(v health.Shard, at time.Time) health.State {
	short := !v.Since.IsZero() && at.Sub(v.Since) < unreadTold
	if !v.State.Trouble() || v.State == health.Unread && short {
		return health.OK
	}
	return v.State
}

// gather merges events that differ only in their shards, and sorts the events by kind. If a kind
// still has too many events, gather merges the last ones.
func gather(found []event) []event {
	slices.SortStableFunc(found, func(a, b event) int { return cmp.Compare(a.kind, b.kind) })
	type alike struct {
		kind          eventKind
		over          bool
		text, workers string
	}
	var all []event
	at, count := map[alike]int{}, map[eventKind]int{}
	for _, e := range found {
		like := alike{e.kind, e.over, e.text, strings.Join(e.workers, "\x00")}
		i, some := at[like]
		if !some && count[e.kind] >= mostOfAKind {
			i, some = len(all)-1, true
			if all[i].kind == e.kind && !strings.HasSuffix(all[i].text, andOthers) {
				all[i].text += andOthers
			}
		}
		if !some {
			at[like] = len(all)
			count[e.kind]++
			all = append(all, e)
			continue
		}
		of := &all[i]
		of.shards = append(of.shards, e.shards...)
		for _, w := range e.workers {
			if !slices.Contains(of.workers, w) {
				of.workers = append(of.workers, w)
			}
		}
		if of.since.IsZero() || !e.since.IsZero() && e.since.Before(of.since) {
			of.since = e.since
		}
	}
	return all
}

// lastError is the text between an event and the error that belongs to it.
const lastError = "; last error: "

const andOthers = "; and others for other reasons"

// outage returns an event for a store that has stopped answering, or that answers again.
func outage(err error, after, now time.Time) event {
	if err == nil {
		return event{at: now, after: after, kind: storeEvent, over: true, text: "the store answers again"}
	}
	return event{at: now, after: after, kind: storeEvent, text: "the store does not answer: " + errtext.Short(err.Error())}
}
