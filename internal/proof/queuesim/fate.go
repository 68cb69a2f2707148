package queuesim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/queue"
)

// habit is how the handler fails with a record.
type habit int

const (
	returnsError habit = iota
	rejects
	panics
	exits  // it ends its goroutine
	blocks // until its context ends
	hangs  // for some minutes, even if its context ends
)

// fate is what the handler does with a record, or with a part of an aggregate.
type fate struct {
	takes    time.Duration
	failures int // the first calls fail; -1 for all calls
	habit    habit
	stubborn bool // the handler ignores its context

	form         form
	packs        bool // the payload is compressed
	filterPanics int  // the first calls of the filter panic
}

func (f fate) fails() bool { return f.failures != 0 }

// drawFate draws the fate of a record.
func (p *Profile) drawFate(r *rand.Rand, hold time.Duration) fate {
	f := fate{takes: time.Duration(r.ExpFloat64() * float64(300*time.Millisecond)), stubborn: r.IntN(3) == 0}
	f.takes = min(f.takes, 3*time.Second)
	if p.fast {
		f.takes = time.Duration(r.IntN(int(20 * time.Millisecond)))
	}
	chance := func(share float64) bool { return r.Float64() < share }
	switch {
	case chance(p.slowly):
		f.takes = hold/2 + time.Duration(r.Int64N(int64(hold)))
	case chance(p.failures):
		f.failures, f.habit = between(r, 1, 2), one(r, returnsError, returnsError, panics, exits)
	case chance(p.poison):
		f.failures, f.habit = -1, one(r, returnsError, rejects, panics, exits)
	case chance(p.hangs):
		f.failures, f.habit = 1, one(r, blocks, hangs)
	}
	p.drawForm(r, &f)
	return f
}

func partKey(id string, sub int) string { return fmt.Sprintf("%s-%d", id, sub%3) }

// large is the data of all large records.
var large = make([]byte, 10<<20)

// makeRecord draws a record and the fates of its parts.
func (w *world) makeRecord(n int) *record {
	rd := &record{id: fmt.Sprintf("r%d", n)}
	if w.random.IntN(5) > 0 {
		rd.key = fmt.Sprintf("k%d", w.random.IntN(8))
	}
	f := w.profile.drawFate(w.random, w.options.Hold)
	switch {
	case w.profile.large:
		rd.data = large[:one(w.random, 100, 1<<20, 5<<20, 10<<20)]
	case w.random.Float64() < w.profile.packed:
		var b aggregate.Builder
		rd.parts = between(w.random, 1, 5)
		for sub := 1; sub <= rd.parts; sub++ {
			key, of := fmt.Sprintf("%s+%d", rd.id, sub), w.profile.drawFate(w.random, w.options.Hold)
			if err := b.Add(partKey(rd.id, sub), "", w.fill(part{rd, sub}, key, &of)); err != nil {
				panic(err) // the parts are small
			}
			w.fates[key] = of
		}
		rd.data = b.AppendContainer(nil)
		f.form = notJSON
		w.parts[string(rd.data)] = part{rd, 0}
	default:
		rd.data = w.fill(part{rd, 0}, rd.id, &f)
	}
	w.fates[rd.id] = f
	return rd
}

// fill makes the data of a part.
func (w *world) fill(p part, key string, f *fate) []byte {
	text, data := f.content(key)
	w.parts[string(data)], w.texts[p] = p, text
	return data
}

// handler returns the handler of the process.
func (l *life) handler() queue.Handler {
	if l.options.BatchSize == 0 {
		return queue.RecordFunc(func(ctx context.Context, r queue.Record) error { return l.handle(ctx, []queue.Record{r}) })
	}
	return queue.BatchFunc(l.handle)
}

// handle handles records as their fates say.
func (l *life) handle(ctx context.Context, records []queue.Record) error {
	c := l.begin(ctx, records)
	failed := map[part]bool{}
	for _, p := range c.parts { // also if the handler panics
		failed[p] = true
	}
	defer func() { l.end(c, failed) }()
	var named []error
	bad := map[part]bool{}
	for i := range records {
		r := &records[i]
		p := part{l.service.records[r.ID], r.Sub}
		l.decodes(ctx, r, p)
		if err := l.act(ctx, l.fates[r.Key()], p); err != nil {
			if len(records) == 1 || !l.names {
				return err
			}
			named, bad[p] = append(named, queue.Failed(*r, err)), true
		}
	}
	failed = bad
	return errors.Join(named...)
}

var errHandler = errors.New("queuesim: the handler fails")

// act handles one record.
func (l *life) act(ctx context.Context, f fate, p part) error {
	l.mu.Lock()
	calls := l.calls[p]
	l.mu.Unlock()
	fails := f.failures < 0 || calls <= f.failures
	wait := ctx
	if f.stubborn {
		wait = context.WithoutCancel(ctx)
	}
	takes := f.takes
	switch {
	case fails && f.habit == blocks:
		takes = time.Hour
		wait = ctx
	case fails && f.habit == hangs:
		takes, wait = 3*time.Minute, context.WithoutCancel(ctx)
	}
	err := l.rest(wait, takes)
	switch {
	case err != nil:
		return err
	case !fails:
		return nil
	}
	switch f.habit {
	case rejects:
		return weir.Reject(errHandler)
	case panics:
		panic("queuesim: the handler panics")
	case exits:
		runtime.Goexit()
	}
	return errHandler
}

// rest waits, and longer if the process freezes. It ends early if the process has crashed.
func (l *life) rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.gone:
		return errHandler
	case <-ctx.Done():
	}
	for {
		l.mu.Lock()
		frozen := time.Until(l.frozen)
		l.mu.Unlock()
		if frozen <= 0 {
			return context.Cause(ctx)
		}
		time.Sleep(frozen)
	}
}

// put is the destination of dead letters.
func (l *life) put(_ context.Context, letters []deadletter.Letter) error {
	l.mu.Lock()
	pause, what := l.some(2*time.Second), 0
	if l.faulty() && l.chance(l.profile.stores) {
		what = 1 + l.random.IntN(3)
	}
	l.mu.Unlock()
	time.Sleep(pause)
	switch what {
	case 1:
		l.happened("a dead letter is refused")
		return errHandler
	case 2:
		l.happened("the destination panics")
		panic("queuesim: the destination panics")
	}
	l.mu.Lock()
	for i := range letters {
		p, ok := l.parts[string(letters[i].Data)]
		if !ok {
			l.broken("%s stores a dead letter of an unknown record", l.name)
			continue
		}
		l.stored(p, letters[i].Attempts)
		if what == 3 { // the process does not know it
			delete(l.done, p)
		}
	}
	l.mu.Unlock()
	if what == 3 {
		l.happened("the answer of the destination is lost")
		return errHandler
	}
	return nil
}
