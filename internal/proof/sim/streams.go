package sim

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/internal/proof/sim/model"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// stream is a stream that the application reads, or may read later.
type stream struct {
	name    string
	now     *model.Stream   // nil while the stream is deleted
	deleted bool            // the stream has been deleted at least once
	named   bool            // Options.DiscoverStreams or Options.Streams names the stream
	since   int64           // when named last changed; zero before the first change
	anew    int64           // when the stream was last recreated; 0 if never
	lives   []*model.Stream // all streams that have had this name
}

// makeStreams creates the streams of an application. Options.Streams names the first one, and
// Options.DiscoverStreams the others.
func (w *world) makeStreams(shards int) {
	d := roll(w.seed, "streams")
	n := max(w.profile.Streams[0], 1)
	if more := w.profile.Streams[1] - n; more > 0 {
		n += d.below(more + 1)
	}
	if !w.isFirst() {
		w.streams = append(w.streams, w.apps[0].streams[0])
		w.birth(w.streams[0])
	}
	for i := len(w.streams); i < n; i++ {
		st := &stream{name: firstStream, named: true, since: math.MinInt64}
		if i > 0 {
			st.name = fmt.Sprintf("%s%d", firstStream, i)
			st.named = d.chance(.7)
		}
		if i > 0 && len(w.apps) > 1 { // the application's own stream, which is always named
			st.name, st.named = firstStream+w.app, true
		}
		w.streams = append(w.streams, st)
		w.create(st, max(1, shards/n))
	}
}

// reads returns the applications that read a stream.
func (s *shared) reads(st *stream) (all []*world) {
	for _, x := range s.apps {
		if slices.Contains(x.streams, st) {
			all = append(all, x)
		}
	}
	return all
}

// allStreams returns the streams of all applications.
func (s *shared) allStreams() (all []*stream) {
	for _, x := range s.apps {
		for _, st := range x.streams {
			if !slices.Contains(all, st) {
				all = append(all, st)
			}
		}
	}
	return all
}

const firstStream = "s"

// named is the Options.DiscoverStreams of every worker.
func (l *life) named(ctx context.Context) ([]string, error) {
	r := l.w.gate.wait(&call{life: l, op: "streams", ctx: ctx, body: namesCall{}})
	names, _ := r.value.([]string)
	return names, r.err
}

type namesCall struct{}

// admitNames decides the fate of a call of Options.DiscoverStreams.
func (w *world) admitNames(c *call) {
	d := w.dice(c, "")
	there := d.often(time.Millisecond, 25*time.Millisecond)
	if before, after := w.crashes(c); before || after {
		w.after(there, func() { w.crash(c.life, string(CrashWaits)) })
		return
	}
	switch f := w.pick(c, &d, NamesFail, NamesSilent); f {
	case NamesSilent:
	case NamesFail:
		w.after(there, func() { w.answer(c, reply{err: errStore}) })
	default:
		w.after(there, func() {
			var names []string
			for _, st := range w.streams[1:] {
				if st.named && c.life.reads(st.name) {
					names = append(names, st.name)
				}
			}
			w.answer(c, reply{value: names})
		})
	}
}

// about returns a name for a shard. It does not distinguish successive streams with the same name.
func about(stream, shard string) string {
	if stream == firstStream {
		return shard
	}
	return stream + "/" + shard
}

// streamNamed returns the stream with this name, or nil.
func (w *world) streamNamed(name string) *stream {
	for _, st := range w.streams {
		if st.name == name {
			return st
		}
	}
	return nil
}

// learned returns the time since which every worker must know whether a stream is named.
func (w *world) learned(st *stream) int64 {
	if st.since == math.MinInt64 {
		return st.since
	}
	return st.since + int64(2*w.settings.list+60*time.Second)
}

// reshapes changes a stream.
func (w *world) reshapes(f Fault, id string, d *dice) {
	all := w.allStreams()
	st := all[0]
	if n := len(all); n > 1 {
		st = all[d.below(n)]
	}
	if f == Renames {
		if st != w.streams[0] && w.strikes(f, id) {
			st.named, st.since = !st.named, w.now()
			w.note(nil, "FAULT", st.name, 0, id)
		}
		return
	}
	if st.now == nil {
		return
	}
	open := st.now.Open()
	did := false
	switch f {
	case Split:
		if len(open) < 40 && w.strikes(f, id) {
			did = w.service.Split(st.now, open[d.below(len(open))], w.clock())
		}
	case Merge:
		if len(open) > 1 && w.strikes(f, id) {
			did = w.service.Merge(st.now, open[d.below(len(open))], w.clock())
		}
	case Doubles:
		if len(open) <= 12 && w.strikes(f, id) {
			for _, sh := range open {
				did = w.service.Split(st.now, sh, w.clock()) || did
			}
		}
	case Trim:
		if !w.strikes(f, id) {
			return
		}
		did = true
		now := w.clock()
		st.now.Trim(now.Add(-d.span(shortestRetention, 4*time.Minute)), now, func(sh *model.Shard, r model.Record) { w.expires(st, sh, r) })
	case Recreate:
		if !w.strikes(f, id) {
			return
		}
		did = true
		w.remove(st)
		w.after(d.often(10*time.Millisecond, 20*time.Second), func() {
			if st.now == nil {
				w.create(st, 1+d.below(6))
			}
		})
	}
	if did {
		w.note(nil, "FAULT", st.name, 0, id)
		w.born(st)
	}
}

// shortestRetention is the age at which the youngest records expire in a simulation.
const shortestRetention = 20 * time.Second

// Kinesis keeps records for at least 24 hours, and weir relies on that. So adapt weir's value to
// the simulation. In the profiles with parallel keys and expiring records, the service's clock
// differs from the true time by at most 2 s.
func init() { keyed.Kept = shortestRetention - 2*time.Second }

// expires tells the judge that a record has left the stream.
func (w *world) expires(st *stream, sh *model.Shard, r model.Record) {
	number := model.Number(r.Seq)
	for _, x := range w.reads(st) {
		if x.sink != nil {
			x.sink.expires(about(st.name, sh.ID), number)
		}
		for _, c := range x.books.kept[sh.Name] {
			if c.number == number {
				for _, id := range c.ids {
					x.books.expired[id] = true
					x.judge.Exempt(id)
				}
			}
		}
	}
}

// create creates a stream, or creates it again.
func (w *world) create(st *stream, shards int) {
	st.now = w.service.Create(st.name, shards, w.clock())
	st.lives = append(st.lives, st.now)
	if st.deleted {
		// Until a listing shows the difference, the new shards are mistaken for unread shards of
		// the old stream.
		st.anew = w.now()
		// Duties about the shards of the old stream do not apply to new shards with the same names.
		maps.DeleteFunc(w.duties.leases, func(of lease.Key, _ *duty) bool { return of.Stream == st.name })
	}
	st.deleted = false
	w.born(st)
}

// remove deletes a stream, with all records that are not handled.
func (w *world) remove(st *stream) {
	w.forgets(st)
	w.service.Delete(st.name)
	st.now, st.deleted = nil, true
	w.judge.Fault(judge.Worker{}, w.wall())
}

// forgets tells the judge that the records of a stream need not be handled any more.
func (w *world) forgets(st *stream) {
	if st.now == nil {
		return
	}
	for _, sh := range st.now.Shards {
		for _, r := range sh.Records {
			w.expires(st, sh, r)
		}
	}
}

// born notes the shards of a stream for all applications that read it.
func (w *world) born(st *stream) {
	for _, x := range w.reads(st) {
		x.birth(st)
	}
}

// birth tells the judge about the shards of a stream.
func (w *world) birth(st *stream) {
	if st.now == nil {
		return
	}
	for _, sh := range st.now.Shards {
		var parents []string
		for _, p := range sh.Parents {
			parents = append(parents, p.Name)
		}
		w.judge.Born(sh.Name, parents...)
	}
}

// put puts some records, and schedules the next call of put.
func (w *world) put() {
	if w.producing != nil {
		return
	}
	d := roll(w.seed, "put", uint64(w.now()))
	if w.stage < settling || w.stage == settling && time.Duration(w.now()) < w.settings.lasts+stillPutting {
		all := w.allStreams()
		st := all[0]
		if n := len(all); n > 1 {
			st = all[d.below(n)]
		}
		if st.now != nil && (w.stage < settling || st.named && !w.loose(st)) {
			for range 1 + d.below(5) {
				w.write(st, &d)
			}
		}
	}
	if w.stage < stopping {
		w.after(d.span(100*time.Millisecond, 2*w.profile.Records), w.put)
	}
}

func (w *world) write(st *stream, d *dice) {
	key := strconv.FormatInt(st.now.Life, 10) + ":k" + strconv.Itoa(d.below(w.settings.keys))
	size := d.below(60)
	if w.profile.Large {
		size = largeRecord
	}
	huge := w.profile.Huge > 0 && d.chance(w.profile.Huge)
	if huge {
		size = hugeRecord
	}
	many := 1
	if !huge && d.chance(w.packed()) {
		many = 2 + d.below(5)
		if w.profile.Large && d.chance(.8) { // few records are larger than a part of an answer
			size /= many
		}
	}
	ids := make([]judge.ID, 0, many)
	var data, rest []byte
	var payloads []model.Payload
	var numbers []aggregate.Number
	for range many {
		w.written[key]++
		ids = append(ids, judge.ID{Key: key, N: w.written[key]})
		if data, rest = payload(ids[len(ids)-1], size); many > 1 {
			payloads = append(payloads, model.Payload{Data: data, Rest: rest})
		}
	}
	if many > 1 {
		if w.numbers != nil {
			for range many {
				numbers = append(numbers, w.numbers.next(key, d))
			}
		}
		data, rest = model.Pack(key, payloads, field(numbers)), nil
	}
	at := w.arrives(d)
	sh, r := w.service.Put(st.now, key, data, rest, at)
	for _, x := range w.reads(st) {
		x.noteContainer(sh, container{model.Number(r.Seq), ids, w.now()}, r.Arrival, at)
	}
	w.noteNumbers(st, sh, numbers, ids)
	w.note(nil, "put", sh.Name, 0, ids[0].String()+" "+model.Number(r.Seq))
}

// noteContainer notes a record that was put into a stream that the application reads.
func (w *world) noteContainer(sh *model.Shard, c container, arrival, at time.Time) {
	name := sh.Name
	if !w.chosen.has(sh) {
		for _, id := range c.ids {
			w.judge.PutDropped(id, name)
		}
		return
	}
	rest := c.ids[len(c.ids):]
	if w.crosses.has(featKeepPacked) { // the first record represents all, because they are delivered as one record
		c.ids, rest = c.ids[:1], c.ids[1:]
	}
	w.books.kept[name] = append(w.books.kept[name], c)
	for _, id := range c.ids {
		w.books.home[id] = name
		if w.producing != nil && w.producing.strays[id] {
			w.judge.PutDropped(id, name)
			continue
		}
		w.putFiltered(id, name)
		if w.starts.Kind() == shard.Time && arrival.Before(w.starts.Time()) {
			w.judge.Exempt(id)
			w.books.early[id] = true
		}
	}
	for _, id := range rest {
		w.judge.PutDropped(id, name)
	}
	w.putInWindow(c.ids, name, c.number, at)
}

// settleStreams creates every missing stream. Records of streams that are not named need not be
// handled any more.
func (w *world) settleStreams() {
	for _, st := range w.streams {
		if st.now == nil {
			w.create(st, 1)
		}
		if !st.named || w.loose(st) {
			w.forgets(st)
		}
	}
}

// unnamed checks that no worker holds leases of a stream that is not named, once all workers can
// know that.
func (w *world) unnamed(st *stream, led int64) {
	s := w.settings
	for key, l := range w.books.last {
		if key.Stream != st.name {
			continue
		}
		delete(w.duties.leases, key)
		if owner, runs := w.runs(l.Owner); runs && led != math.MaxInt64 {
			since := max(w.learned(st), led, owner.fromStore(), w.outage, owner.hindered.handles[about(l.Stream, l.Shard)])
			if st.since == math.MinInt64 {
				since = max(0, led)
			}
			w.within(since, s.handoff+s.failover+6*s.beat, "unnamed", func() string { return fmt.Sprintf("%s of a stream that is not named", l) })
		}
	}
}

// shards returns the shards of a stream in the order of their creation, without expired shards.
func (st *stream) shards() iter.Seq[*model.Shard] {
	return func(yield func(*model.Shard) bool) {
		if st.now == nil {
			return
		}
		for _, sh := range st.now.Shards {
			if sh.GoneAt.IsZero() && !yield(sh) {
				return
			}
		}
	}
}
