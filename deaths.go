package weir

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/lease"
)

// A record that kills the process that handles it goes from worker to worker. When owners of a
// lease have died one after the other at one position, the next one handles what follows a record
// at a time, and has it noted with the lease before each which record it is. A death then tells
// which record it was.

const (
	defaultSuspectAfter = 2
	// trialRecords is how many records are handled by themselves: as many as a shard takes in a
	// second, which owners may have handled before they died and not saved.
	trialRecords = 1000
	// trialLasts bounds that in time, for shards with little traffic.
	trialLasts = 10 * time.Minute
	// Before a record is handled again that has killed its worker, the shard waits for so long,
	// doubling with each worker that dies.
	suspectPause, suspectPauseMost = time.Minute, 15 * time.Minute
)

// trial is how a term handles what may have killed the owners before.
type trial struct {
	deaths  lease.Deaths // as they were noted last
	began   time.Time
	records int  // still to be handled by themselves
	paused  bool // the pause before the record was made
	turn    turn // what it holds of the process's turns
	killed  killed
}

// turn is how a shard tries a record beside others of its process.
type turn uint8

const (
	noTurn   turn = iota // it tries none
	beside               // others may try theirs meanwhile
	byItself             // they may not: it was tried beside others when an owner died
)

// turns are those of a process: of several records that were tried at once nobody knows which
// killed it.
type turns struct {
	mu      lock.Mutex[lock.Turns]
	taken   int // in all
	single  bool
	waiting int           // for one with nothing beside it
	changed chan struct{} // closed when one is given back; nil when nobody waits
}

// take waits for a turn.
func (s *turns) take(ctx context.Context, kind turn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == byItself {
		s.waiting++
		defer func() { s.waiting-- }()
	}
	for s.single || kind == byItself && s.taken > 0 || kind == beside && s.waiting > 0 {
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
			s.mu.Lock()
		case <-ctx.Done():
			cause := context.Cause(ctx) // before the lock, because it takes the mutex of the term
			s.mu.Lock()
			s.wake() // those that waited for this one to have its turn
			return cause
		}
	}
	s.taken++
	s.single = kind == byItself
	return nil
}

// giveBack ends a turn.
func (s *turns) giveBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.single = false
	s.wake()
}

// wake is called with the lock held.
func (s *turns) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// next begins with the record after at: what was before it is done. They died of what follows, if
// they did not of that.
func (t *trial) next(at Position) {
	t.deaths, t.paused = lease.Deaths{At: at, Count: t.deaths.Count, Record: at}, false
	t.records--
}

// furthest returns the position that is further in the shard. A sink may be behind the checkpoint.
func furthest(a, b Position) Position {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}

// suspicious reports whether so many owners have died that the next handles records by themselves.
func suspicious(d lease.Deaths, after int) bool {
	return after > 0 && (d.Count >= after || !d.Record.IsZero() || parseKilled(d.Beyond) != nil)
}

// kills reports whether it is known which record the owners have died of.
func kills(d lease.Deaths, after int) bool { return d.Alone > 0 && d.Count >= after }

// clears reports whether a record comes before the one at which the owners died. They had handled
// it, so it needs no note. It is read again if the position of a sink is before it, and the deaths
// noted for the later record stay, also those that came while other shards tried a record. If more
// owners have died than these deaths explain, such a record may have killed them: clears drops the
// deaths, and each record is noted again. If the record at which they died has expired, clears
// drops its deaths, so that they are not held against the next record.
func (t *trial) clears(record Position, after int) bool {
	d := &t.deaths
	if d.Tried == 0 || d.Record.IsZero() {
		return false
	}
	switch order := record.Compare(d.Record); {
	case order == 0:
		return false
	case order > 0:
		d.Tried, d.Alone = 0, 0
		return false
	case d.Count-d.Tried <= after+1:
		return true
	}
	// The deaths that stay in Count are explained. Otherwise the next ones would be dropped as
	// well.
	d.Count, d.Tried, d.Alone = after, 0, 0
	return false
}

// newTrial is nil for terms that need none: nearly all.
func (l *shardLoop) newTrial() *trial {
	d := l.term.Deaths()
	if !suspicious(d, l.in.opts.SuspectAfter) {
		return nil
	}
	t := &trial{deaths: d, began: time.Now(), records: trialRecords}
	if l.remembers() {
		t.killed = parseKilled(d.Beyond)
	}
	return t
}

// trial is how this term handles what may have killed the owners before, nil when it did not.
func (l *shardLoop) trial() *trial {
	l.needHandler()
	h := l.handles
	if !h.judged {
		h.judged, h.trial = true, l.newTrial()
		if t := h.trial; t != nil && (t.deaths.Count > 0 || !t.deaths.Record.IsZero()) { // not only killed records
			l.tellSuspected(t, "", 0)
		}
	}
	return h.trial
}

// alone is what precedes a call of the handler. In a trial it cuts the next record off from the
// others of the delivery, and notes durably that it is begun. A record that is known to kill is
// given up here, or waited for. It fails when the term is over, and when the lease is wanted back.
func (l *shardLoop) alone(d *delivery) error {
	if d.dying != nil { // which comes first
		return nil
	}
	t := l.trial()
	if t == nil {
		l.restOfTrial(d)
		return nil
	}
	if err := l.term.Check(time.Now()); err != nil {
		return err
	}
	for h := l.handles; ; {
		record, id, some := d.nextRecord()
		if !some { // a call for the end alone
			return nil
		}
		if at := l.term.At(); at != t.deaths.At {
			t.next(at)
		}
		if !d.pulled && t.killed.has(record) {
			l.passOver(d, id)
			continue
		}
		if !d.pulled && t.clears(record, l.in.opts.SuspectAfter) {
			d.single()
			return nil
		}
		if t.records <= 0 || time.Since(t.began) >= trialLasts {
			h.trial = nil
			l.restOfTrial(d)
			return nil
		}
		if kills(t.deaths, l.in.opts.SuspectAfter) && (d.pulled || t.deaths.Record == record) {
			if l.in.opts.GiveUp.To != nil && !d.pulled {
				if err := l.giveUpKiller(d, t, id); err != nil {
					return err
				}
				continue // with the next record
			}
			if err := l.pauseBefore(t, id); err != nil {
				return err
			}
		}
		return l.begin(d, t, record)
	}
}

// restOfTrial hands over the rest of the delivery in which a trial ended as single records, if keys
// are handled in parallel, because a batch must not have several keys. The next page is handled as
// usual.
func (l *shardLoop) restOfTrial(d *delivery) {
	if l.in.opts.Parallel.on() {
		d.single()
	}
}

// begin notes durably which record is handled next.
func (l *shardLoop) begin(d *delivery, t *trial, record Position) error {
	l.enter(ShardSuspected, 0, nil)
	if !d.pulled && t.deaths.Record != record { // the note is about another record
		t.deaths.Tried, t.deaths.Alone = 0, 0
	}
	kind := beside
	if t.deaths.Tried > t.deaths.Alone {
		kind = byItself
	}
	if err := l.in.turns.take(l.term.Reading(), kind); err != nil {
		return err
	}
	t.turn = kind
	t.deaths.Trial, t.deaths.Record = l.term.Lease.Epoch, record
	if err := l.term.Note(l.term.Reading(), t.note(l.term.Lease.Epoch)); err != nil {
		l.tried(d, err)
		return err
	}
	if !d.pulled {
		d.single()
	}
	return nil
}

// tried notes that a call of the handler has returned.
func (l *shardLoop) tried(d *delivery, err error) {
	if d.parallel != nil || l.handles == nil || l.handles.trial == nil {
		return
	}
	t := l.handles.trial
	switch {
	case t.turn == noTurn: // the record was not begun as one that may kill
	case err == nil:
		// The next beat has to say both: should the worker die before the next record is begun, its
		// successor goes on trying.
		t.next(furthest(t.deaths.Record, l.term.At()))
		l.term.NoteSoon(t.note(l.term.Lease.Epoch))
		l.term.Advance(t.deaths.At)
	default:
		t.deaths.Trial = 0
		l.term.NoteSoon(t.note(l.term.Lease.Epoch))
	}
	if t.turn != noTurn { // the note of the next comes with what was noted here, or after it
		t.turn = noTurn
		l.in.turns.giveBack()
	}
}

// nextRecord is the first record that is not done: the position after it, and its ID.
func (d *delivery) nextRecord() (after Position, id string, some bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done >= len(d.kept.records) {
		return Position{}, "", false
	}
	r := d.kept.records[d.done]
	return positionAfter(r.SequenceNumber, r.Done), whole([]source.Record{r})[0].ID(), true
}

// single has the next record handed over by itself.
func (d *delivery) single() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.ends) > 0 && d.limit() <= d.done {
		d.ends = d.ends[:len(d.ends)-1]
	}
	if d.limit()-d.done > 1 {
		d.ends = append(d.ends, d.done+1)
	}
}

// killsError is why a record is given up that nobody survived.
func killsError(d lease.Deaths) error {
	return fmt.Errorf("weir: %d workers died one after the other at this record or right before it, %d of them while they handled it by itself", d.Count, d.Tried)
}

// pauseBefore waits before a record is handled again that has killed its worker, once in a term.
// How many it killed is kept with the lease, so the pauses grow from owner to owner; no clock is.
func (l *shardLoop) pauseBefore(t *trial, id string) error {
	if t.paused {
		return nil
	}
	pause := retry.Pause(suspectPause, suspectPauseMost, t.deaths.Alone)
	l.tellSuspected(t, id, pause)
	l.enter(ShardSuspected, t.deaths.Count, killsError(t.deaths))
	if err := retry.Wait(l.term.Reading(), pause); err != nil {
		return err
	}
	t.paused = true
	return nil
}

// giveUpKiller gives the next record up, which has killed its workers.
func (l *shardLoop) giveUpKiller(d *delivery, t *trial, id string) error {
	err := killsError(t.deaths)
	if !t.paused {
		t.paused = true
		l.tellSuspected(t, id, 0)
	}
	d.mu.Lock()
	at := d.done
	d.mu.Unlock()
	d.moveHead(at)
	d.attempt, d.failed = t.deaths.Count, t.began
	l.enter(ShardSuspected, d.attempt, err)
	v := verdictOf{verdict{records: 1, reason: deadletter.Killed}, at, at + 1}
	policy := &l.in.opts.GiveUp
	for {
		now := time.Now()
		v.do = policy.judgeKiller(now.Sub(t.began), l.in.givingUp.lastWorked().After(t.began), l.in.givingUp.room(policy.PerMinute, now))
		if v.do == giveUp {
			d.dying = &dying{verdictOf: v, failure: err, last: err, letters: d.letters(v, err)}
			if err := l.putAll(d); err != nil {
				return err
			}
			t.deaths.Count = 0 // it was this record, so nobody has died of what follows
			if l.remembers() {
				t.killed = t.killed.add(t.deaths.Record)
			}
			t.next(furthest(t.deaths.Record, l.term.At()))
			l.term.NoteSoon(t.note(l.term.Lease.Epoch))
			return nil
		}
		l.tellWaits(d, v)
		if err := retry.Wait(l.term.Reading(), time.Second); err != nil {
			return err
		}
	}
}

// judgeKiller says what becomes of a record that has killed its workers, so long after this worker
// came to hold it. A worker that has handled something else meanwhile shows that it is the record:
// where a broken build dies of everything, none has.
func (g *GiveUp) judgeKiller(held time.Duration, other bool, room float64) consequence {
	switch {
	case !other && held < g.Patience:
		return waitForOthers
	case !g.roomFor(1, failedCall{room: room}):
		return waitForRoom
	}
	return giveUp
}

// acquit has it noted that no record has killed the owners: there is none after the position at
// which they died. The beat loop calls it for shards that have nothing to handle.
func (l *shardLoop) acquit() {
	d := l.term.Deaths()
	if !suspicious(d, l.in.opts.SuspectAfter) || d.At != l.term.At() {
		return
	}
	if from := l.pagesNow(); from == nil || from.Status().Buffered > 0 {
		return
	}
	note := withKilled(lease.Deaths{At: d.At}, parseKilled(d.Beyond), l.term.Lease.Epoch)
	if note == d {
		return
	}
	// Not while it runs: it may have a record in hand that it has not begun with.
	l.term.NoteParked(note)
}

// tellSuspected tells that owners of the shard have died, and of what, if that is known.
func (l *shardLoop) tellSuspected(t *trial, id string, next time.Duration) {
	key, d := l.term.Lease.Key, t.deaths
	what := "workers that had this shard died one after the other at one position; its records are handled one at a time"
	args := []any{"seq", d.At, "died", d.Count}
	if id != "" {
		what = "a record kills the worker that handles it; it is handled again after a pause, or given up"
		args = append(args, "record", id, "alone", d.Tried)
	}
	if next > 0 {
		args = append(args, "next", next.Round(time.Second))
	}
	l.log().Error(what, args...)
	emit(l.in, l.in.opts.Events.Suspected, Suspected{Stream: key.Stream, Shard: key.Shard, Epoch: l.term.Lease.Epoch, At: d.At, Record: id, Died: d.Count, Alone: d.Tried, Next: next})
}
