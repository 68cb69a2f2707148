package window

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/shard"
)

// open contains the open windows of a shard. It decides which window a record belongs to, when
// windows end, and where the next owner of the shard starts reading. The decisions depend only on
// the records after the starting point. So the next owner computes the same windows, no matter when
// the shard moves.
//
// max is the maximum of the times of all records so far. A mark is a point right before a record
// with which max entered a new window. The next owner can start at a mark as soon as all earlier
// windows have ended. From there it computes the same maximum. If a later record belongs to one of
// the earlier windows, it is late for the next owner too, or it is already in a result. If no
// window is open, the next owner starts after the last record, without state.
type open[S any] struct {
	*Config[S]
	term weir.Term

	upTo  weir.Position // position of the last results, or where reading started
	last  weir.Record   // last record of the current batch; its strings are valid only with the batch
	rest  weir.Position // position after the last record of the previous batches; zero in the first batch
	marks []*mark[S]    // the next owner starts at marks[0]; empty if no window is open
	panes panes[S]      // the open windows
	max   time.Time     // maximum of the times so far; zero before the first record
	// The previous owner has delivered all windows that start before this time.
	floor          time.Time
	records, bytes int // totals since reading started
}

// mark is a point at which the next owner can start: right before a record. With this record, the
// maximum of the times entered a new window, or the record opened a window while no window was
// open.
type mark[S any] struct {
	from           weir.Position
	id             string    // position of the record, which is part of the names of results
	start          time.Time // start of the window; zero if the record has no valid time
	arrived        time.Time
	records, bytes int // totals before this record, since reading started
	// The following fields cover the records from this mark up to the next one.
	strays       panes[S]
	late, noTime int
}

// pane contains the results of one window, by key.
type pane[S any] struct {
	results []Result[S]
	index   map[string]int
}

type paneID struct {
	start time.Time
	why   Why // Late or NoTime; 0 for records that belong to a window
}

type panes[S any] map[paneID]*pane[S]

// placed is the window to which a record belongs.
type placed struct {
	at, start time.Time
	timed     bool
}

// place computes the window to which a record belongs.
func (c *Config[S]) place(r weir.Record) (p placed, err error) {
	arrived := r.ArrivalTime()
	p.at, p.timed = arrived, true
	if c.Time != nil {
		p.at, err = c.Time(r)
		p.timed = !p.at.Before(time.Unix(0, 0)) && !p.at.After(arrived.Add(c.Ahead))
	}
	of := p.at
	if !p.timed {
		of = arrived
	}
	p.start = truncate(of, c.Size)
	return p, err
}

// truncate returns the last multiple of size since 1970 that is not after t.
func truncate(t time.Time, size time.Duration) time.Time {
	past := time.Duration(t.UnixNano()) % size
	if past < 0 {
		past += size
	}
	return t.Add(-past).Round(0).UTC()
}

// before places a record and returns the windows that end before the record is added.
func (o *open[S]) before(r weir.Record, p *placed) (ended []Results[S]) {
	// Windows end only between aggregates. Within an aggregate, a reset of the state would look
	// like a mark.
	apart := !o.within(r)
	if apart && len(o.marks) > 0 {
		n, size := o.held()
		limit, why := o.ages()
		switch { // tip may have ended these windows already
		case !limit.IsZero() && !r.ArrivalTime().Before(limit):
			ended = append(ended, o.afresh(why))
		case n >= o.MaxRecords, size+len(r.Data) > o.MaxBytes:
			ended = append(ended, o.afresh(Full))
		}
	}
	if o.Time == nil && p.at.Before(o.max) { // belongs to the window of the earlier, later-timed record
		p.at, p.start = o.max, truncate(o.max, o.Size)
	}
	switch {
	case !p.timed:
	case o.max.IsZero() || p.start.After(truncate(o.max, o.Size)):
		if apart && len(o.marks) > 0 && (o.max.IsZero() || !p.at.Add(-o.Lateness).Before(truncate(o.max, o.Size).Add(o.Size))) {
			ended = append(ended, o.afresh(Passed)) // no window stays open
		}
		if o.at().IsZero() && begins(o.term.From, r) {
			o.floor = p.start
		}
		o.max = p.at
		o.mark(r, p.start)
	case p.at.After(o.max):
		o.max = p.at
	}
	if len(o.marks) == 0 {
		o.mark(r, time.Time{})
	}
	for len(o.marks) > 1 && !o.max.Add(-o.Lateness).Before(o.marks[1].start) {
		ended = append(ended, o.step())
	}
	return ended
}

// begins reports whether from is a position right before r.
func begins(from weir.Position, r weir.Record) bool {
	return from.SequenceNumber() == r.SequenceNumber
}

// mark adds a mark, so that the next owner can start at r.
func (o *open[S]) mark(r weir.Record, start time.Time) {
	m := &mark[S]{id: r.Position().String(), start: start, arrived: r.ArrivalTime(), records: o.records, bytes: o.bytes, strays: panes[S]{}}
	switch {
	case len(o.marks) == 0:
		m.from = o.upTo
	case o.within(r):
		m.from = o.at()
	default:
		// Before fails only for an invalid number, which a record of a stream never has.
		m.from, _ = shard.Before(strings.Clone(r.SequenceNumber))
	}
	o.marks = append(o.marks, m)
}

// within reports whether r is in the same aggregate as the previous record.
func (o *open[S]) within(r weir.Record) bool {
	if o.last.SequenceNumber != "" {
		return o.last.SequenceNumber == r.SequenceNumber
	}
	return o.rest.SequenceNumber() == r.SequenceNumber
}

// at returns the position after the last record. It is zero before the first record.
func (o *open[S]) at() weir.Position {
	if o.last.SequenceNumber != "" {
		return o.last.Position()
	}
	return o.rest
}

// leave releases the current batch: it keeps only the position after it. A position is not computed
// for each record, because that would allocate memory.
func (o *open[S]) leave() { o.rest, o.last = o.at(), weir.Record{} }

// add adds a record to its window.
func (o *open[S]) add(ctx context.Context, r weir.Record, p placed) error {
	o.last = r
	o.records++
	o.bytes += len(r.Data)
	last := o.marks[len(o.marks)-1]
	switch {
	case !p.timed:
		last.noTime++
		return o.stray(ctx, last, r, p, NoTime)
	case !o.max.Add(-o.Lateness).Before(p.start.Add(o.Size)):
		last.late++
		return o.stray(ctx, last, r, p, Late)
	case p.start.Before(o.floor):
		return nil
	}
	return o.put(o.panes, paneID{start: p.start}, r)
}

// stray handles a record that belongs to no open window. It calls Stray if that is set. Otherwise
// it adds the record to a separate result.
func (o *open[S]) stray(ctx context.Context, m *mark[S], r weir.Record, p placed, why Why) error {
	if o.Stray != nil {
		return o.Stray(ctx, Stray{Record: r, Time: p.at, Why: why})
	}
	return o.put(m.strays, paneID{p.start, why}, r)
}

// put adds a record to the state of a window.
func (o *open[S]) put(all panes[S], id paneID, r weir.Record) error {
	of := all[id]
	if of == nil {
		of = &pane[S]{index: map[string]int{}}
		all[id] = of
	}
	key := ""
	if o.ByKey {
		key = r.PartitionKey
	}
	i, known := of.index[key]
	if !known {
		i, key = len(of.results), strings.Clone(key) // the record's key belongs to a page
		of.index[key] = i
		of.results = append(of.results, Result[S]{Key: key, State: o.New(), Start: id.start, End: id.start.Add(o.Size)})
	}
	w := &of.results[i]
	state, err := o.Add(w.State, r)
	if err != nil {
		return err
	}
	w.State = state
	w.Records++
	return nil
}

// first returns the mark at which the next owner starts. It returns nil if no window is open.
func (o *open[S]) first() *mark[S] {
	if len(o.marks) == 0 {
		return nil
	}
	return o.marks[0]
}

// held returns the number and size of the records that the next owner would read again.
func (o *open[S]) held() (records, bytes int) {
	if len(o.marks) == 0 {
		return 0, 0
	}
	return o.records - o.marks[0].records, o.bytes - o.marks[0].bytes
}

// ages returns the arrival time at which the open windows end, and the reason. The limit is zero if
// only the times of records end the windows. The age of the oldest mark decides. The next owner may
// start at a later mark and still compute the same results, because in that case the age of the
// older mark has not ended a window.
func (o *open[S]) ages() (limit time.Time, why Why) {
	if o.Time == nil {
		limit = truncate(o.max, o.Size).Add(o.Size)
	}
	if o.MaxAge == 0 {
		return limit, Passed
	}
	for _, m := range o.marks {
		if age := m.arrived.Add(o.MaxAge); limit.IsZero() || age.Before(limit) {
			limit, why = age, Aged
		}
	}
	return limit, why
}

// tip returns the windows that end because the shard was seen to be empty. seen is the time of that
// observation. A zero time ends no window.
func (o *open[S]) tip(seen time.Time) (ended []Results[S]) {
	if len(o.marks) == 0 {
		return nil
	}
	limit, why := o.ages()
	if limit.IsZero() || seen.Before(limit.Add(o.Allowance)) {
		return nil
	}
	return append(ended, o.afresh(why))
}

// end returns the last results of a shard that has ended.
func (o *open[S]) end() Results[S] {
	if len(o.marks) == 0 {
		return Results[S]{Term: o.term, From: o.upTo, UpTo: o.upTo, End: true}
	}
	r := o.afresh(ShardEnded)
	r.End = true
	return r
}

// step ends the windows before the second mark, and removes the first mark.
func (o *open[S]) step() Results[S] {
	m, next := o.marks[0], o.marks[1]
	passed := panes[S]{}
	for id, of := range o.panes {
		if id.start.Before(next.start) {
			passed[id] = of
			delete(o.panes, id)
		}
	}
	r := o.results(next.from)
	r.take(o.name(m), passed, Passed)
	r.count(o.name(m), m.strays, m.late, m.noTime)
	o.marks = o.marks[1:]
	return r.sorted()
}

// afresh ends all open windows and resets the state to that of a new shard. If all windows have
// passed, the reset does not change any later result.
func (o *open[S]) afresh(why Why) Results[S] {
	r := o.results(o.at())
	r.take(o.name(o.marks[0]), o.panes, why)
	for _, m := range o.marks {
		r.count(o.name(m), m.strays, m.late, m.noTime)
	}
	o.panes, o.marks, o.max, o.floor = panes[S]{}, nil, time.Time{}, time.Time{}
	return r.sorted()
}

// results returns an empty Results that extends to the position upTo. The next Results starts
// there.
func (o *open[S]) results(upTo weir.Position) *Results[S] {
	r := &Results[S]{Term: o.term, From: o.upTo, UpTo: upTo}
	o.upTo = upTo
	return r
}

// name returns a function that computes the IDs of results. m is the mark at which they started.
func (o *open[S]) name(m *mark[S]) func(paneID, string) string {
	return func(of paneID, key string) string {
		id := o.term.Stream + "/" + o.term.Shard + "/" + of.start.Format(time.RFC3339Nano) + "/"
		if of.why != 0 {
			id += strings.ReplaceAll(of.why.String(), " ", "-") + ":"
		}
		if id += m.id; o.ByKey {
			id += "/" + key
		}
		return id
	}
}

// take moves ended windows to the results.
func (r *Results[S]) take(name func(paneID, string) string, all panes[S], why Why) {
	for id, of := range all {
		for i := range of.results {
			w := &of.results[i]
			w.Why, w.ID = cmp.Or(id.why, why), name(id, w.Key)
		}
		r.Windows = append(r.Windows, of.results...)
	}
}

// count adds the late and timeless records since a mark to the results.
func (r *Results[S]) count(name func(paneID, string) string, strays panes[S], late, noTime int) {
	r.take(name, strays, 0)
	r.Late += late
	r.NoTime += noTime
}

// sorted sorts the windows by start and ID.
func (r *Results[S]) sorted() Results[S] {
	slices.SortFunc(r.Windows, func(a, b Result[S]) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID))
	})
	return *r
}
