package multilang

import (
	"slices"
	"strings"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/shard"
)

// The names of the errors with which a checkpoint is refused. They are names of Java classes, on
// which programs decide.
const (
	errorShutdown        = "ShutdownException"                   // the lease is lost
	errorInvalidState    = "InvalidStateException"               // not allowed now
	errorDependency      = "KinesisClientLibDependencyException" // the store failed
	errorIllegalArgument = "IllegalArgumentException"            // no place between the last checkpoint and the last record
)

// progress holds the last checkpoint and the delivered records of one process of a program. It
// decides what a request for a checkpoint means. It makes no calls.
type progress struct {
	last      spot // the last checkpoint
	delivered spot // the last record that the program got; last if there was none
	any       bool // the program has got a record
	ending    bool // shardEnded was sent
	ended     bool // the program has confirmed that

	previous spot     // the last record, to number the records of its aggregate
	records  []record // the delivered records without a checkpoint, in order
	from     weir.Position
}

// record is a delivered record.
type record struct {
	after weir.Position
	sub   int64
}

func (r record) spot() spot { return spot{r.after.SequenceNumber(), r.sub} }

// mostRecords limits progress.records. If the program leaves more records without a checkpoint, and
// then requests one at a record that was forgotten, that record may be delivered again after a
// restart.
const mostRecords = 50_000

// begin returns the progress of a process that begins at a position.
func begin(from weir.Position) *progress {
	at := spotOf(from)
	return &progress{last: at, delivered: at, from: from}
}

// deliver notes the records of a batch, and returns the place of each.
func (p *progress) deliver(records []weir.Record) []spot {
	spots := make([]spot, len(records))
	for i, r := range records {
		at := r.Position()
		s := spot{at.SequenceNumber(), 0}
		switch done := at.Done(); {
		case done != shard.Whole:
			s.sub = int64(done) - 1
		case p.previous.sequence == s.sequence: // the last one of an aggregate
			s.sub = p.previous.sub + 1
		case p.from.SequenceNumber() == s.sequence && p.from.Done() != shard.Whole:
			s.sub = int64(p.from.Done())
		}
		spots[i], p.previous, p.delivered, p.any = s, s, s, true
		p.records = append(p.records, record{at, s.sub})
	}
	if over := len(p.records) - mostRecords; over > 0 {
		p.records = slices.Delete(p.records, 0, over)
	}
	return spots
}

// decision is the result of a request for a checkpoint.
type decision struct {
	failure string        // the request is refused with this error
	save    weir.Position // the position to save; zero if nothing is to be saved
	end     bool          // the request also confirms the end of the shard
	at      spot          // the checkpoint, once it is saved
}

// decide decides a request. allowed is false while the program must not checkpoint.
func (p *progress) decide(r request, allowed bool) decision {
	if !allowed {
		return decision{failure: errorInvalidState}
	}
	at := p.delivered
	switch {
	case r.Sequence == nil && p.ending:
		return p.finish()
	case r.Sequence == nil && !p.any:
		return decision{at: p.last}
	case r.Sequence != nil:
		at = spot{sequence: *r.Sequence}
		if _, ok := rank(at.sequence); !ok || r.Sub != nil && *r.Sub < 0 {
			return decision{failure: errorIllegalArgument}
		}
		if trimmed := strings.TrimLeft(at.sequence, "0"); trimmed == "" {
			at.sequence = "0"
		} else {
			at.sequence = trimmed
		}
		if r.Sub != nil {
			at.sub = *r.Sub
		}
	}
	switch {
	case p.ending && (at == p.delivered || at.sequence == shardEnd):
		return p.finish()
	case at.compare(p.last) < 0 || at.compare(p.delivered) > 0:
		return decision{failure: errorIllegalArgument}
	case at == p.last:
		return decision{at: at}
	}
	save, ok := p.positionOf(at)
	if !ok {
		return decision{failure: errorIllegalArgument}
	}
	return decision{save: save, at: at}
}

// finish decides a request that confirms the end of the shard.
func (p *progress) finish() decision {
	d := decision{end: true, at: spot{sequence: shardEnd}}
	if len(p.records) > 0 {
		d.save = p.records[len(p.records)-1].after
	}
	return d
}

// positionOf returns the position after the last delivered record that is not after a place.
func (p *progress) positionOf(at spot) (weir.Position, bool) {
	i, found := slices.BinarySearchFunc(p.records, at, func(r record, at spot) int { return r.spot().compare(at) })
	if found {
		return p.records[i].after, true
	}
	if i > 0 {
		return p.records[i-1].after, true
	}
	after, err := shard.Part(at.sequence, uint32(min(at.sub+1, shard.Whole-1))) // the record was forgotten
	return after, err == nil
}

// saved records a checkpoint after the store has saved it.
func (p *progress) saved(d decision) {
	p.last = d.at
	if d.end {
		p.ended = true
	}
	if d.save.IsZero() {
		return
	}
	i, found := slices.BinarySearchFunc(p.records, d.save, func(r record, at weir.Position) int { return r.after.Compare(at) })
	if found {
		i++
	}
	p.records = slices.Delete(p.records, 0, i)
}
