package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/window"
)

// windows contains the data about the results of an application with windows, by arrival time or by
// a time in the payload. The expected results follow from the records of each shard; see
// [windows.cut] and [payloadTime.late].
type windows struct {
	w      *world
	size   time.Duration
	byKey  bool
	most   int  // Config.MaxRecords; a cut ends at the end of an aggregate, so it may be larger
	once   bool // results are stored in the sink, with their position
	made   map[string]madeResult
	of     map[judge.ID]string    // the result of each record
	cuts   map[string]map[int]cut // cuts of each shard, by their first record
	places map[judge.ID]int       // index in the shard, among the records that are not dropped
	shards map[string][]arrived
	// payload is nil for windows by arrival time.
	payload *payloadTime
}

// arrived is a record of a shard with the service's arrival time.
type arrived struct {
	id   judge.ID
	at   time.Time
	last bool // last record of its aggregate
	// number is the record's sequence number in the stream. The following fields are the time in
	// its payload, if valid.
	number string
	index  uint32
	of     time.Time
	timed  bool
}

// cut is a sequence of records of a shard whose windows ended together.
type cut struct {
	next int // index of the first record after the cut
	full bool
}

// madeResult is the first version of a result.
type madeResult struct {
	ids   []judge.ID
	start time.Time
	key   string
	why   window.Why
}

// windowAllowance is the value of Config.Allowance. It is larger than the difference of the clocks.
const windowAllowance = 5 * time.Second

// mostAggregated is the maximum number of records in an aggregate.
const mostAggregated = 6

// makeWindows chooses a random configuration of windows. The service's clock then differs from the
// true time by less than the allowance.
func (w *world) makeWindows() {
	if !w.profile.Windows {
		return
	}
	d := roll(w.seed, "windows")
	w.skew = d.span(-2*time.Second, 2*time.Second)
	w.windows = &windows{
		w: w, size: d.often(time.Second, 30*time.Second).Truncate(time.Second), byKey: d.chance(.5), most: 5 + d.below(60), once: d.chance(.5),
		made: map[string]madeResult{}, of: map[judge.ID]string{}, cuts: map[string]map[int]cut{}, places: map[judge.ID]int{}, shards: map[string][]arrived{},
	}
	if w.crosses != nil {
		w.windows.once = w.crosses.has(featPosition)
	} else if d.chance(.5) { // dropped records lie between windows and within them
		w.profile.Filters = true
	}
	w.windows.makePayload()
}

// arrives returns the service's arrival time for a record that is put now. If two records are put
// in quick succession, the second may have the earlier time.
func (w *world) arrives(d *dice) time.Time {
	if w.windows == nil || !d.chance(.3) {
		return w.clock()
	}
	return w.clock().Add(-d.span(0, 400*time.Millisecond))
}

// putInWindow notes the records of a container that was put, except records that the filter drops.
// It marks the last noted record of the shard as the last one of its aggregate.
func (w *world) putInWindow(ids []judge.ID, shard, number string, at time.Time) {
	v := w.windows
	if v == nil {
		return
	}
	for i, id := range ids {
		if w.filters.drops(id) {
			continue
		}
		a := arrived{id: id, at: time.UnixMilli(at.UnixMilli()).UTC(), number: number, index: uint32(i)}
		if v.payload != nil {
			a.of, a.timed = v.timeOf(id, a.at)
		}
		v.places[id] = len(v.shards[shard])
		v.shards[shard] = append(v.shards[shard], a)
	}
	if n := len(v.shards[shard]); n > 0 {
		v.shards[shard][n-1].last = true
	}
}

// held returns the additional time that a record may wait for the end of its window.
func (w *world) held() time.Duration {
	if w.windows == nil {
		return 0
	}
	longest := w.windows.size
	if p := w.windows.payload; p != nil {
		longest = p.maxAge
	}
	return longest + windowAllowance + 3*time.Second + 2*w.settings.idle + 15*time.Second
}

// windowHandlers returns the handler of a worker with windows.
func (l *life) windowHandlers() (weir.PullHandler, error) {
	v := l.w.windows
	c := window.Config[[]judge.ID]{
		Size: v.size, ByKey: v.byKey, MaxRecords: v.most, Allowance: windowAllowance,
		Add: func(ids []judge.ID, r weir.Record) ([]judge.ID, error) {
			id, ok := idOf(r.Data)
			if !ok {
				return nil, fmt.Errorf("sim: a record that nobody put: %.60q", r.Data)
			}
			return append(ids, id), nil
		},
		Emit: l.emit,
	}
	if v.once {
		c.Position = l.position
	}
	v.configure(l, &c)
	return window.PullHandler(c)
}

// emission is a call with results.
type emission struct {
	results window.Results[[]judge.ID]
	judge   *judge.Batch
}

// emit stores results. It is the window.Config.Emit of every worker, and carries out the decision
// of the driver.
func (l *life) emit(ctx context.Context, r window.Results[[]judge.ID]) error {
	of := about(r.Term.Stream, r.Term.Shard)
	c := &call{life: l, op: "emit", about: of, ctx: ctx, body: &emission{results: r}}
	if p := l.w.profile.Rates[HandlerIgnores]; p > 0 && !l.w.calm.Load() {
		d := roll(l.w.seed, "deaf "+l.String()+of+r.UpTo.String(), r.Term.Epoch, uint64(time.Since(l.w.began)))
		c.deaf = d.chance(p)
	}
	answer := l.w.gate.wait(c)
	if answer.err != nil {
		return answer.err
	}
	return answer.value.(verdict).end()
}

// begins returns the start of the window that contains a time. Windows are counted from 1970.
func (v *windows) begins(t time.Time) time.Time {
	at := t.UnixMilli()
	return time.UnixMilli(at - at%v.size.Milliseconds()).UTC()
}

// check compares results with their records.
func (v *windows) check(shard string, r *window.Results[[]judge.ID]) (ids []judge.ID, wrong string) {
	for i := range r.Windows {
		w := &r.Windows[i]
		if len(w.State) != w.Records || w.Records == 0 {
			return nil, fmt.Sprintf("the result %s has %d records, and says %d", w.ID, len(w.State), w.Records)
		}
		if was, known := v.made[w.ID]; known && !v.w.loosely() && (!slices.Equal(was.ids, w.State) || !was.start.Equal(w.Start) || was.key != w.Key) {
			return nil, fmt.Sprintf("the result %s was of %v from %v, and is of %v from %v when it is made again", w.ID, was.ids, was.start, w.State, w.Start)
		}
		v.made[w.ID] = madeResult{slices.Clone(w.State), w.Start, w.Key, w.Why}
		for _, id := range w.State {
			if _, known := v.places[id]; !known || v.w.books.home[id] != shard {
				return nil, fmt.Sprintf("%s is in the result %s, and not in its shard", id, w.ID)
			}
			if of := v.of[id]; of != "" && of != w.ID && !v.w.loosely() {
				return nil, fmt.Sprintf("%s is in the results %s and %s", id, of, w.ID)
			}
			if v.byKey != (w.Key != "") || v.byKey && id.Key != w.Key {
				return nil, fmt.Sprintf("%s is in the result %s, of the key %q", id, w.ID, w.Key)
			}
			v.of[id] = w.ID
		}
		ids = append(ids, w.State...)
	}
	if v.w.loosely() {
		return ids, ""
	}
	if v.payload != nil {
		return ids, v.payload.check(v, shard, r)
	}
	return ids, v.cut(shard, r, ids)
}

// cut checks records whose windows ended together. The records must be consecutive in their shard.
// No record may belong to a later window than the first record.
func (v *windows) cut(shard string, r *window.Results[[]judge.ID], ids []judge.ID) string {
	if len(ids) == 0 {
		return ""
	}
	all := v.shards[shard]
	places := make([]int, 0, len(ids))
	for _, id := range ids {
		places = append(places, v.places[id])
	}
	slices.Sort(places)
	from, next := places[0], places[len(places)-1]+1
	if next-from != len(places) || len(slices.Compact(places)) != len(ids) {
		for n := from; n < next; n++ {
			if !slices.Contains(ids, all[n].id) {
				return fmt.Sprintf("%s is left out of the results from %s to %s of %s", all[n].id, all[from].id, all[next-1].id, shard)
			}
		}
		return fmt.Sprintf("a record is twice in the results from %s to %s of %s", all[from].id, all[next-1].id, shard)
	}
	start := v.begins(all[from].at)
	for _, w := range r.Windows {
		if !w.Start.Equal(start) || !w.End.Equal(start.Add(v.size)) {
			return fmt.Sprintf("the result %s is from %v to %v, and begins with %s, which arrived at %v", w.ID, w.Start, w.End, all[from].id, all[from].at)
		}
	}
	for _, a := range all[from:next] {
		if v.begins(a.at).After(start) {
			return fmt.Sprintf("%s, which arrived at %v, is in a window from %v", a.id, a.at, start)
		}
	}
	made := cut{next, len(ids) >= v.most}
	if v.cuts[shard] == nil {
		v.cuts[shard] = map[int]cut{}
	}
	if was, known := v.cuts[shard][from]; known && was != made {
		return fmt.Sprintf("the results from %s of %s ended before %d, and end before %d when they are made again", all[from].id, shard, was.next, made.next)
	}
	v.cuts[shard][from] = made
	return ""
}

// tallied checks all results together at the end of the simulation. The cuts of each shard must be
// consecutive, from its first record to its last. There are three valid reasons for the end of a
// cut: the next record belongs to a later window, a size limit was reached, or the shard ended.
func (w *world) tallied() {
	v := w.windows
	if v == nil || w.loosely() {
		return
	}
	if v.payload != nil {
		w.talliedPayload()
		return
	}
	for _, shard := range slices.Sorted(maps.Keys(v.shards)) {
		all, n := v.shards[shard], 0
		for n < len(all) {
			c, known := v.cuts[shard][n]
			if !known {
				w.breaks("no result of %s begins with %s", shard, all[n].id)
				return
			}
			start := v.begins(all[n].at)
			if c.next < len(all) && !c.full && !v.begins(all[c.next].at).After(start) {
				w.breaks("the results from %s of %s ended before %s, which is of the same window", all[n].id, shard, all[c.next].id)
			}
			if c.next-n >= v.most+mostAggregated || c.next-n > v.most && !all[c.next-1].last {
				w.breaks("the results from %s of %s are of %d records, %d are allowed", all[n].id, shard, c.next-n, v.most)
			}
			n = c.next
		}
	}
}
