package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/sim/judge"
)

// letters contains the data about failing and dead-lettered records.
type letters struct {
	policy weir.FailurePolicy // the policy without its destination
	// failed counts failed calls, for each owner and record.
	failed map[owned]*failures
	ids    map[judge.ID]string // ID of the first dead letter of each record
	again  map[owned]bool      // dead letters that may be put again, because the worker received no success
	kept   int
}

// owned is a record with one owner of its shard.
type owned struct {
	by    judge.Worker
	epoch uint64
	judge.ID
}

type failures struct{ head, alone, rejected, all, untried int }

// badly is a way in which a handler fails at a record. The error may name the record or not.
type badly struct {
	index int // index in the batch
	how   int
	n     int // number of records from index on that are skipped because of their age
	wraps int // how the error is wrapped
	// out contains these records if they need not follow each other in the batch of weir: a sink
	// leaves out records that it has.
	out []judge.ID
}

// Ways in which a handler fails at a record.
const (
	saysNothing = iota
	names
	rejects
	rejectsByName
	waysToFail // of the profiles that do not cross features
	leavesOut
)

// Ways of wrapping a handler's error.
const (
	bare = iota
	withText
	joined
	joinedLater // joined with an error that names a later record
	rejectedInside
	panicking // the handler panics with the error
	wraps
)

var errBad = errors.New("sim: a bad record")

func (f *badly) named() bool { return f.how == names || f.how == rejectsByName || f.how == leavesOut }

// String describes the failure for the history.
func (f *badly) String() string {
	if f == nil {
		return ""
	}
	how := [...]string{"without a word", "by name", "rejected", "rejected by name", "", "too old"}[f.how]
	return fmt.Sprintf(" at %d, %s (%d, %d)", f.index, how, f.n, f.wraps)
}

// rejects reports whether the handler rejects the record.
func (f *badly) rejects() bool { return f.how == rejects || f.how == rejectsByName }

// fail ends the call of a handler at the chosen record.
func (f *badly) fail(records []weir.Record) error {
	err := f.err(records)
	switch f.wraps {
	case withText:
		return fmt.Errorf("sim: wrapped: %w", err)
	case joined:
		return errors.Join(errHandler, err)
	case joinedLater:
		if f.named() && f.index+1 < len(records) {
			return errors.Join(weir.FailedAt(records[len(records)-1], errBad), err)
		}
	case rejectedInside:
		if f.how == rejectsByName {
			return weir.FailedAt(records[f.index], fmt.Errorf("sim: %w", weir.Reject(errBad)))
		}
	case panicking:
		panic(err)
	}
	return err
}

// err returns the error of the handler for the records.
func (f *badly) err(records []weir.Record) error {
	switch r := records[f.index]; f.how {
	case names:
		return weir.FailedAt(r, errBad)
	case rejects:
		return weir.Reject(errBad)
	case rejectsByName:
		return weir.Reject(weir.FailedAt(r, errBad))
	case leavesOut:
		return weir.RejectOld(r, f.n, errBad)
	}
	return errBad
}

// makeLetters chooses a random policy for dead letters.
func (w *world) makeLetters() {
	if !w.profile.Letters {
		return
	}
	d := roll(w.seed, "letters")
	w.letters = &letters{failed: map[owned]*failures{}, ids: map[judge.ID]string{}, again: map[owned]bool{}}
	p := &w.letters.policy
	p.MaxAttempts, p.Bisect, p.OutageGrace, p.MaxPerMinute = 1+d.below(4), d.chance(.6), -1, -1
	if c := w.crosses; c != nil {
		p.Bisect = c.has(featBisect)
		if !c.has(featAttempts) {
			p.MaxAttempts = 0
		}
		if c.has(featMaxAge) {
			p.MaxAge = d.span(time.Second, time.Minute)
		}
	} else if d.chance(.4) {
		p.MaxAge = d.span(time.Second, time.Minute)
	}
	if d.chance(.5) {
		p.OutageGrace = d.span(100*time.Millisecond, 10*time.Second)
	}
	if p.Bisect && d.chance(.5) { // otherwise large batches wait for as many minutes
		p.MaxPerMinute = 60 + d.below(200)
	}
}

// patience returns the additional time that a record may wait if it can never be handled.
func (w *world) patience() time.Duration {
	if w.letters == nil {
		return 0
	}
	p := &w.letters.policy
	d := max(p.OutageGrace, 0) + retryMax
	if p.MaxAttempts == 0 { // records are dead-lettered only for their age
		d += p.MaxAge + w.skewed()
	}
	return d
}

// lastingWays returns the ways of failing that lead to a dead letter if they repeat.
func (w *world) lastingWays() []int {
	p := &w.letters.policy
	var ways []int
	for _, how := range w.crosses.ways {
		ends := p.MaxAttempts > 0 || p.MaxAge > 0
		switch how {
		case rejects, rejectsByName, leavesOut:
			ends = true
		}
		if ends {
			ways = append(ways, how)
		}
	}
	return ways
}

// badAt returns the failure at the first record at which handlers always fail. It returns nil if
// there is no such record.
func (w *world) badAt(ids []judge.ID) *badly {
	if w.letters == nil {
		return nil
	}
	for i, id := range ids {
		if d := roll(w.seed, "bad "+id.String()); d.chance(.03) {
			bad := &badly{index: i, how: d.below(waysToFail)}
			if w.crosses != nil {
				ways := w.lastingWays()
				if len(ways) == 0 {
					return nil
				}
				bad.how, bad.wraps, bad.n = ways[d.below(len(ways))], d.below(wraps), 1
			}
			return bad
		}
	}
	return nil
}

// fails notes that a call of a handler failed. bad is nil if the error does not concern a record.
func (w *world) fails(h *handling, bad *badly) {
	s := w.letters
	if w.stage == settling && h.tx == nil {
		w.meanwhile.failed++
	}
	if s == nil || h.judge.Stale || h.tx != nil { // see failsPartition
		return
	}
	from := h.done()
	alone, rejected, untried := len(h.judge.IDs)-from == 1, false, 0
	if bad != nil {
		rejected = bad.rejects()
		if bad.named() && bad.index >= from {
			from, alone = bad.index, true
			if bad.how == leavesOut {
				untried = bad.n
			}
		}
	}
	for i, id := range h.judge.IDs[from:] {
		f := s.of(h.judge.Worker, h.judge.Epoch, id)
		if untried > 0 {
			if bad.out == nil && i < untried || slices.Contains(bad.out, id) {
				f.untried++
			}
			continue
		}
		f.all++
		if rejected {
			f.rejected++
		}
		if i == 0 {
			f.head++
			if alone {
				f.alone++
			}
		}
	}
}

func (s *letters) of(by judge.Worker, epoch uint64, id judge.ID) *failures {
	key := owned{by, epoch, id}
	if s.failed[key] == nil {
		s.failed[key] = &failures{}
	}
	return s.failed[key]
}

// lettersCall is a call that stores dead letters.
type lettersCall struct{ letters []deadletter.Letter }

// put stores dead letters. It is the destination of dead letters for every worker.
func (l *life) put(ctx context.Context, all []deadletter.Letter) error {
	c := &call{life: l, op: "letters", about: about(all[0].Stream, all[0].Shard), ctx: ctx, body: lettersCall{all}}
	r := l.w.gate.wait(c)
	if r.value == LettersPanic {
		panic("sim: the destination panics")
	}
	return r.err
}

var ofLetters = []Fault{LettersFail, LettersLost, LettersPanic, LettersSlow}

// admitLetters decides the fate of a call that stores dead letters.
func (w *world) admitLetters(c *call, body lettersCall) {
	l, d := c.life, w.dice(c, "")
	l.hindered.handles[c.about] = w.now()
	took := d.often(time.Millisecond, 50*time.Millisecond)
	before, after := w.crashes(c)
	f := w.pick(c, &d, ofLetters...)
	w.note(l, c.op, c.about, c.n, string(f))
	w.checkLetters(l, body.letters)
	if before {
		w.after(took, func() { w.crash(l, string(CrashWaits)) })
		return
	}
	if f == LettersSlow {
		took = d.span(time.Second, longestHandler)
		w.judge.Fault(l.who, w.wall().Add(took))
	}
	w.after(took, func() {
		l.hindered.handles[c.about] = w.now()
		switch {
		case l.dead.Load() || c.gone.Load():
		case f == LettersFail:
			w.answer(c, reply{err: errBad})
		case f == LettersPanic:
			w.answer(c, reply{value: f})
		default:
			w.keepLetters(l, body.letters)
			if after {
				w.crash(l, string(CrashWaits))
				return
			}
			if f == LettersLost {
				w.answer(c, reply{err: errBad})
				return
			}
			w.answer(c, reply{})
		}
	})
}

// checkLetters compares dead letters with the policy, and with what was observed about their
// records.
func (w *world) checkLetters(l *life, all []deadletter.Letter) {
	s, p := w.letters, &w.letters.policy
	var head *failures
	for i, letter := range all {
		id, ok := idOf(letter.Data)
		if !ok {
			w.breaks("a dead letter of %s is of a record that nobody put: %.60q", letter.ID, letter.Data)
			return
		}
		if letter.Reason == deadletter.Killed {
			if wrong := w.checkKilled(letter, id, len(all)); wrong != "" {
				w.breaks("%s", wrong)
			}
			continue
		}
		f := s.of(l.who, letter.Epoch, id)
		if i == 0 {
			head = f
		}
		calls, alone := head.head, len(all) == 1 && f.alone > 0
		if alone && (p.Bisect || letter.Reason == deadletter.Rejected) {
			calls = f.alone
		}
		some := w.movesPastLetters() && len(all) < letter.Together // the sink has the others
		if some {
			calls = f.all
		}
		switch was, known := s.ids[id]; {
		case letter.App != w.app:
			w.breaks("a worker of %s puts a dead letter of %s", w.app, letter.App)
		case known && was != letter.ID:
			w.breaks("the dead letters of %s have the IDs %s and %s", id, was, letter.ID)
		case letter.Together != len(all) && !some:
			w.breaks("a dead letter of %s says that %d were given up together, of %d", id, letter.Together, len(all))
		case letter.Reason == deadletter.Age && f.untried > 0: // the handler requested it
		case letter.Attempts > calls || letter.Attempts < 1:
			w.breaks("the dead letter of %s says %d attempts, of %d calls that failed at it", id, letter.Attempts, calls)
		case letter.Reason == deadletter.Attempts && letter.Attempts < p.MaxAttempts:
			w.breaks("%s is dead-lettered after %d attempts of %d", id, letter.Attempts, p.MaxAttempts)
		case letter.Reason == deadletter.Rejected && f.rejected == 0:
			w.breaks("%s is dead-lettered as rejected, but no handler rejected it", id)
		case letter.Reason == deadletter.Rejected && !alone, p.Bisect && !alone:
			w.breaks("%s is given up for others that it was handed over with", id)
		case letter.Reason == deadletter.Age && (p.MaxAge == 0 || w.wall().Sub(letter.Arrived) < p.MaxAge-w.skewed()):
			w.breaks("%s is given up for its age of %v", id, w.wall().Sub(letter.Arrived))
		case f.all == 0:
			w.breaks("%s is dead-lettered, and no call has failed at it", id)
		}
	}
}

// skewed returns how much older a record may appear than it is. The arrival times come from the
// service's clock.
func (w *world) skewed() time.Duration { return w.skew.Abs() + time.Second }

// keepLetters notes that dead letters are durable, before their worker receives the answer.
func (w *world) keepLetters(l *life, all []deadletter.Letter) {
	s := w.letters
	w.judge.Moving = w.amid()
	if w.stage == settling {
		w.meanwhile.letters += len(all)
	}
	for _, letter := range all {
		id, _ := idOf(letter.Data)
		if w.movesPastLetters() && w.sink.has[id] && letter.Reason != deadletter.Killed {
			w.breaks("a dead letter of %s is stored, whose effect is in the sink", id)
		}
		s.ids[id] = letter.ID
		s.kept++
		of := owned{l.who, letter.Epoch, id}
		w.judge.GivenUp(l.who, letter.Epoch, id, s.again[of] || w.sink != nil, w.wall())
		w.noteFinished(l, []judge.ID{id})
		s.again[of] = true
	}
}

// heardLetters notes that a worker receives the answer that dead letters are durable.
func (w *world) heardLetters(l *life, all []deadletter.Letter) {
	l.lettered += len(all)
	for _, letter := range all {
		id, _ := idOf(letter.Data)
		delete(w.letters.again, owned{l.who, letter.Epoch, id})
		if w.sink == nil { // with a sink, the saved position may be before the record
			w.judge.Acked(&judge.Batch{IDs: []judge.ID{id}}, 1)
		}
	}
}

// sawLetters checks the dead letters at the end of the simulation.
func (w *world) sawLetters() {
	if w.letters == nil {
		return
	}
	for id := range w.letters.ids {
		if _, put := w.books.home[id]; !put {
			w.breaks("there is a dead letter of %s, which was never put", id)
		}
	}
	for id := range w.books.home {
		if w.filters.drops(id) || w.judge.Exempted(id) {
			continue
		}
		if (w.badAt([]judge.ID{id}) != nil || w.kills(id)) && w.letters.ids[id] == "" {
			w.breaks("%s was not dead-lettered, and no handler can have handled it", id)
		}
	}
}
