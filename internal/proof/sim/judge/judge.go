// Package judge checks whether weir kept its promises to the handlers and the producers of an
// application. Its input is the records in the stream, the faults, the calls of the handlers and
// the outcomes of the producers. It knows the promises but not how weir keeps them, and it imports
// nothing of weir.
package judge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// ID identifies a record: it is the N-th record of its key, counted from 1.
type ID struct {
	Key string
	N   int
}

// String returns "key/n".
func (id ID) String() string { return id.Key + "/" + strconv.Itoa(id.N) }

// Worker is one run of a worker. The zero value means no worker.
type Worker struct {
	Name string
	Life int
}

// String returns "name.life".
func (w Worker) String() string { return w.Name + "." + strconv.Itoa(w.Life) }

// record is the state of one record.
type record struct {
	shard   string
	place   int  // with Span: position in the shard, counted from 0
	exempt  bool // the record need not be handled any more
	dropped bool // the record must not be handled
	done    bool // a handler marked the record as done
	acked   bool // the handler was told that its mark counts
	undone  bool // the record was done, but that was lost
	letter  bool // the record has a dead letter
	by      Worker
	epoch   uint64
	at      time.Time
	handled int
}

// Batch is one call of a handler.
type Batch struct {
	Worker Worker
	Shard  string
	Epoch  uint64
	IDs    []ID
	End    bool
	Alive  func() bool // reports whether the context of the call has not ended
	// Stale means that the batch was read with a lease of a stream that was deleted and created
	// again. The batch does not count, and all its records must be handled again. Their order
	// matters only from then on.
	Stale bool
	// Amid means that an operator is moving checkpoints (see [Judge.Moved]). The operator may have
	// reached the shard's parents but not the shard. All records of the batch must be handled again
	// after the parents' records.
	Amid bool
	// Repeats contains records that may be handled again without a reason.
	Repeats map[ID]bool
	// Unordered means that the records of a key may come in any order.
	Unordered bool
	// Partitions is the number of partitions whose batches may be handled at the same time, and
	// Partition is that of the batch. With 1, no two batches of a shard may be. 0 means that the
	// keys, not partitions, are handled in parallel, if Span is set.
	Partition, Partitions int
	// Unsure means that the code that handles the batch does not notice the end of its lease.
	// Records that it handled after the end may be handled again with the same lease.
	Unsure bool
}

// Judge records events as they happen. It keeps the first violation of a promise. It is not safe
// for concurrent use.
type Judge struct {
	now     time.Time
	keys    map[string][]record // records by key; the N-th record has index N-1
	low     map[string]int      // number of leading records of a key that are done or exempt
	missing int
	shards  map[string]*shardState
	faults  map[Worker]time.Time // for each worker, the last fault that explains repeated records
	general time.Time            // the last fault that may affect all workers
	wrong   string

	// Grace limits how long after a fault its consequences may appear. A fault does not explain
	// that a record is handled again if the last handling was more than Grace after the fault. New
	// sets it to 15 s.
	Grace time.Duration

	// Span is not 0 if the keys of a shard are handled in parallel. It is the number of records of
	// a shard that an owner may have started, counted from the oldest record that is not done. The
	// next owner may handle this many records again without another reason.
	Span int

	// Moving means that an operator is moving checkpoints while a dead letter is stored. It
	// corresponds to Batch.Amid.
	Moving bool

	Handled, Again int // numbers of records
}

type shardState struct {
	parents []string
	left    int       // number of records that are neither done nor exempt
	since   time.Time // when a record was last handled, or when the first record in left was put
	over    bool      // the end of the shard was handled
	epoch   uint64    // highest epoch that has begun
	counts  uint64    // lowest epoch whose progress counts
	doubted bool      // any owner may read the shard again
	order   []ID      // with Span: all records
	low     int       // with Span: number of leading records that are done or exempt
	again   int       // with Span: records repeated at the current epoch without another reason
	active  []*Batch
}

// New returns a Judge.
func New() *Judge {
	return &Judge{Grace: 15 * time.Second, keys: map[string][]record{}, low: map[string]int{}, shards: map[string]*shardState{}, faults: map[Worker]time.Time{}}
}

// Wrong describes the first broken promise. It returns "" if there is none.
func (j *Judge) Wrong() string { return j.wrong }

// Missing returns the number of records that should have been handled but were not.
func (j *Judge) Missing() int { return j.missing }

// Lost returns the name of a missing record.
func (j *Judge) Lost() string {
	for _, key := range slices.Sorted(maps.Keys(j.keys)) {
		all := j.keys[key]
		if n := j.low[key]; n < len(all) {
			return fmt.Sprintf("%s of %s", ID{key, n + 1}, all[n].shard)
		}
	}
	return ""
}

// Waits returns the number of records of a shard that should have been handled but were not. since
// is when one of them was last handled, or when they began to wait.
func (j *Judge) Waits(shard string) (since time.Time, left int) {
	s := j.shard(shard)
	return s.since, s.left
}

// Over reports whether a handler has handled the end of a shard.
func (j *Judge) Over(shard string) bool { return j.shard(shard).over }

func (j *Judge) breaks(format string, args ...any) {
	if j.wrong == "" {
		j.wrong = fmt.Sprintf(format, args...)
	}
}

func (j *Judge) shard(id string) *shardState {
	s := j.shards[id]
	if s == nil {
		s = &shardState{}
		j.shards[id] = s
	}
	return s
}

// Born notes that a shard exists, and its parents.
func (j *Judge) Born(id string, parents ...string) { j.shard(id).parents = parents }

// Put notes that a record was put into a shard. Put must be called in the order of the records of a
// key.
func (j *Judge) Put(id ID, shard string, now time.Time) {
	s := j.shard(shard)
	j.keys[id.Key] = append(j.keys[id.Key], record{shard: shard, place: len(s.order)})
	if j.Span > 0 {
		s.order = append(s.order, id)
	}
	if s.left++; s.left == 1 {
		s.since = now
	}
	j.missing++
}

// PutDropped notes that a record was put, and that the record must not be handled.
func (j *Judge) PutDropped(id ID, shard string) {
	j.keys[id.Key] = append(j.keys[id.Key], record{shard: shard, place: len(j.shard(shard).order), exempt: true, dropped: true})
	j.advance(id.Key)
}

// Exempt notes that a record has left the stream, so it need not be handled any more.
func (j *Judge) Exempt(id ID) {
	r := j.record(id)
	if !r.done && !r.exempt {
		r.exempt = true
		j.missing--
		j.shard(r.shard).left--
		j.advance(id.Key)
	}
}

// Wants reports whether a record should be handled and has not been.
func (j *Judge) Wants(id ID) bool {
	r := j.record(id)
	return r != nil && !r.done && !r.exempt
}

// Exempted reports whether a record need not be handled and has not been.
func (j *Judge) Exempted(id ID) bool {
	r := j.record(id)
	return r != nil && r.exempt
}

// Home returns the shard into which a record was put, or "" if the record was never put.
func (j *Judge) Home(id ID) string {
	r := j.record(id)
	if r == nil {
		return ""
	}
	return r.shard
}

// Fault notes a fault of a worker. After it, another worker may handle the worker's records again.
// The zero Worker means all workers.
func (j *Judge) Fault(w Worker, at time.Time) {
	if w == (Worker{}) {
		j.general = later(j.general, at)
		return
	}
	j.faults[w] = later(j.faults[w], at)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (j *Judge) record(id ID) *record {
	all := j.keys[id.Key]
	if id.N < 1 || id.N > len(all) {
		return nil
	}
	return &all[id.N-1]
}

func (j *Judge) advance(key string) {
	all := j.keys[key]
	n := j.low[key]
	for n < len(all) && (all[n].done || all[n].exempt) {
		n++
	}
	j.low[key] = n
}

// Begin checks a batch that a handler receives.
func (j *Judge) Begin(b *Batch, now time.Time) {
	j.now = now
	s := j.shard(b.Shard)
	for _, other := range s.active {
		if other.Alive() && !j.beside(b, other) {
			j.breaks("the lease of %s is valid for two workers at once: %s with epoch %d, %s with epoch %d", b.Shard, other.Worker, other.Epoch, b.Worker, b.Epoch)
		}
	}
	s.active = append(s.active, b)
	if b.Epoch < s.epoch {
		j.breaks("%s begins with %s at epoch %d after somebody began at %d", b.Worker, b.Shard, b.Epoch, s.epoch)
	}
	if b.Epoch > s.epoch {
		s.epoch, s.again = b.Epoch, 0
	}
	if j.stale(b) {
		for _, id := range b.IDs {
			if r := j.record(id); r == nil || r.shard != b.Shard {
				j.breaks("%s is handed %s in %s, which was never put there", b.Worker, id, b.Shard)
			}
		}
		return
	}
	for _, p := range s.parents {
		if left := j.shard(p).left; left > 0 && !b.Amid {
			j.breaks("%s hands %s to its handler while %d records of its parent %s are not handled", b.Worker, b.Shard, left, p)
		}
	}
	if b.End && s.left > j.count(b) {
		j.breaks("%s hands the end of %s to its handler while %d records are not handled", b.Worker, b.Shard, s.left)
	}
	j.ofOneKey(b)
	for i, id := range b.IDs {
		r := j.record(id)
		switch {
		case r == nil || r.shard != b.Shard:
			j.breaks("%s is handed %s in %s, which was never put there", b.Worker, id, b.Shard)
			return
		case r.dropped:
			j.breaks("%s is handed %s in %s, which is to be dropped", b.Worker, id, b.Shard)
			return
		case !r.done:
			j.inOrder(b, i, id)
			j.inSpan(b, id, r)
		case r.acked:
			j.explained(b, id, r)
		}
	}
}

// count returns the number of records of a batch that are counted in the field left of the shard.
func (j *Judge) count(b *Batch) int {
	n := 0
	for _, id := range b.IDs {
		if r := j.record(id); r != nil && !r.done && !r.exempt {
			n++
		}
	}
	return n
}

// inOrder checks that all earlier records of the key are done, or precede id in the batch.
func (j *Judge) inOrder(b *Batch, i int, id ID) {
	low := j.low[id.Key]
	if b.Amid || b.Unordered || id.N <= low+1 || j.follows(b.IDs[:i], id, low) {
		return
	}
	ahead := map[ID]bool{}
	for _, before := range b.IDs[:i] {
		ahead[before] = true
	}
	for n := low + 1; n < id.N; n++ {
		before := ID{id.Key, n}
		if r := j.record(before); !r.done && !r.exempt && !ahead[before] {
			j.breaks("%s is handed %s in %s although %s of %s was not handled", b.Worker, id, b.Shard, before, r.shard)
			return
		}
	}
}

// inSpan checks that a record is not too far from the oldest record that is not done.
func (j *Judge) inSpan(b *Batch, id ID, r *record) {
	if j.Span == 0 || b.Partitions == 1 {
		return
	}
	s := j.shard(r.shard)
	for s.low < len(s.order) {
		if first := j.record(s.order[s.low]); !first.done && !first.exempt {
			break
		}
		s.low++
	}
	ahead := r.place - s.low
	if ahead < j.Span {
		return
	}
	for _, between := range s.order[s.low:r.place] { // weir may have dropped exempt records
		if r := j.record(between); r.exempt && !r.done {
			ahead--
		}
	}
	if ahead >= j.Span {
		j.breaks("%s is handed %s in %s, which is %d records ahead of the first that was not handled, %s", b.Worker, id, b.Shard, ahead, s.order[s.low])
	}
}

// follows reports whether others contains all records of the key between low and id that are
// neither done nor exempt, in order. This is nearly always true.
func (j *Judge) follows(others []ID, id ID, low int) bool {
	for n := id.N - 1; n > low; n-- {
		before := ID{id.Key, n}
		if r := j.record(before); r.done || r.exempt {
			continue
		}
		i := len(others) - 1
		for i >= 0 && others[i] != before {
			i--
		}
		if i < 0 {
			return false
		}
		others = others[:i]
	}
	return true
}

// Done notes that the handler has done the first n records of a batch. If these are all records and
// the batch includes the end of the shard, the end is done too.
func (j *Judge) Done(b *Batch, n int, now time.Time) {
	if s := j.shard(b.Shard); b.End && n == len(b.IDs) && !j.stale(b) {
		s.over = true
	}
	j.Noted(b, n, now)
}

// Noted notes that the handler has marked the first n records of a batch as done. A checkpoint may
// then pass them. Until Acked is called, they may be handled again without a reason.
func (j *Judge) Noted(b *Batch, n int, now time.Time) {
	j.now = now
	if j.stale(b) {
		return
	}
	for _, id := range b.IDs[:n] {
		r := j.record(id)
		if r == nil {
			continue
		}
		j.Handled++
		if !r.done && !r.exempt {
			j.missing--
			s := j.shard(r.shard)
			s.left--
			s.since = now
		}
		// weir acknowledged the progress of an earlier owner, not of this owner.
		if r.by != b.Worker || r.epoch != b.Epoch {
			r.acked = false
		}
		r.done, r.letter, r.by, r.epoch, r.at = true, false, b.Worker, b.Epoch, now
		r.handled++
		j.advance(id.Key)
	}
}

// GivenUp notes that the dead letter of a record is durable, which counts as handling the record.
// again means that the worker may store the dead letter a second time, because it received no
// answer.
func (j *Judge) GivenUp(by Worker, epoch uint64, id ID, again bool, now time.Time) {
	r := j.record(id)
	if r == nil {
		j.breaks("%s dead-letters %s, which was never put", by, id)
		return
	}
	if epoch < j.shard(r.shard).counts { // an operator has moved the checkpoint since then
		return
	}
	low := j.low[id.Key]
	same := r.done && r.by == by && r.epoch == epoch
	if j.Span > 0 && j.faulty(by, r.at.Add(-j.Grace)) {
		same = false // the term may have started again, at the checkpoint
	}
	switch {
	case same && !r.letter && r.acked: // otherwise weir may not know that the record is handled
		j.breaks("%s dead-letters %s, which it has handled at the same epoch %d", by, id, epoch)
	case same && r.letter && !again:
		j.breaks("%s puts the dead letter of %s twice at the same epoch %d", by, id, epoch)
	case id.N > low+1 && !j.follows(nil, id, low) && !j.Moving:
		j.breaks("%s dead-letters %s although an earlier record of its key was not handled", by, id)
	}
	s := j.shard(r.shard)
	if !r.done && !r.exempt {
		j.missing--
		s.left--
	}
	s.since = now
	r.done, r.letter, r.acked, r.by, r.epoch, r.at = true, true, false, by, epoch, now
	j.advance(id.Key)
}

// Acked notes that weir has accepted the first n records of a batch as done, so the handler may
// rely on that.
func (j *Judge) Acked(b *Batch, n int) {
	if j.stale(b) {
		return
	}
	for _, id := range b.IDs[:n] {
		if r := j.record(id); r != nil {
			r.acked = true
		}
	}
}

// Unheard notes that the handler received an error for its progress, or that weir refuses the
// progress. The worker may then repeat the records.
func (j *Judge) Unheard(b *Batch) {
	for _, id := range b.IDs {
		if r := j.record(id); r != nil && r.by == b.Worker && r.epoch == b.Epoch {
			r.acked = false
		}
	}
}

// Ended notes that a handler has returned.
func (j *Judge) Ended(b *Batch) {
	s := j.shard(b.Shard)
	for i, a := range s.active {
		if a == b {
			s.active = append(s.active[:i], s.active[i+1:]...)
			return
		}
	}
}

// Passed checks a checkpoint after the given records. Each of them must have been done at some
// time, even if its effect was lost later.
func (j *Judge) Passed(shard string, ids ...ID) {
	for _, id := range ids {
		if r := j.record(id); r != nil && !r.done && !r.exempt && !r.undone {
			j.breaks("the checkpoint of %s passes %s, which was not handled", shard, id)
			return
		}
	}
}
