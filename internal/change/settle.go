package change

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Plan contains the leases that an application of weir gets for one stream. Notes are the sentences
// that an operator should read about them.
type Plan struct {
	Leases []Wanted // ancestors before descendants
	Notes  []string
}

// Note adds a sentence that an operator should read.
func (p *Plan) Note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// Differences returns the differences between a view and the leases of a plan, as sentences. A
// lease with later progress is not a difference, because a worker may already have made progress.
func Differences(want []Wanted, v lease.View) []string {
	have := map[lease.Key]*lease.Lease{}
	for i := range v.Leases {
		have[v.Leases[i].Key] = &v.Leases[i]
	}
	var found []string
	for _, w := range want {
		switch l := have[w.Lease.Key]; {
		case l == nil:
			found = append(found, fmt.Sprintf("%s has no lease", w.Lease.Key))
		case l.Position.Kind() == shard.Time && w.Lease.Position.Kind() == shard.Time:
			// An earlier run of the same plan has pinned LATEST to an earlier time.
		case l.Position.Compare(w.Lease.Position) < 0:
			found = append(
				found,
				fmt.Sprintf("%s is at %s, before %s", w.Lease.Key, l.Position, w.Lease.Position),
			)
		}
	}
	return found
}

// Seen describes what the stream contains at the checkpoint of a lease.
type Seen struct {
	// Records is the number of user records in the record at the checkpoint. It is 1 for a record
	// that is no aggregate, and 0 if the stream no longer has the record.
	Records int
	// Arrived is when the record at the checkpoint arrived. It is zero if it is not known.
	Arrived time.Time
	// Expired is true if the oldest record of the shard came after the checkpoint.
	Expired bool
	// Refused is the service's reason for refusing the sequence number. Failed is the reason why
	// the stream could not be read.
	Refused, Failed string
}

// Settle compares a plan with the stream. If all user records of a record are done, or if the
// stream no longer has the record, a position inside the record becomes the position after it. The
// table does not contain the number of user records. Records that have expired and shards that
// could not be read become notes. Settle returns an error for a sequence number that the service
// does not know.
func Settle(p Plan, seen map[lease.Key]Seen) (Plan, error) {
	settled := Plan{Leases: slices.Clone(p.Leases), Notes: slices.Clone(p.Notes)}
	for i := range settled.Leases {
		l := &settled.Leases[i].Lease
		s, looked := seen[l.Key]
		switch {
		case !looked || l.Position.Kind() != shard.Sequence:
			continue
		case s.Refused != "":
			return Plan{}, fmt.Errorf(
				"the service does not know checkpoint %s of shard %s in stream %s (%s): check "+
					"--stream, and whether the stream was created again",
				l.Position.SequenceNumber(),
				l.Shard,
				l.Stream,
				s.Refused,
			)
		case s.Failed != "":
			settled.Notes = append(
				settled.Notes,
				fmt.Sprintf(
					"%s: the record at the checkpoint could not be read (%s): it may be handled "+
						"once more",
					l.Shard,
					s.Failed,
				),
			)
			continue
		case s.Expired:
			settled.Notes = append(
				settled.Notes,
				fmt.Sprintf(
					"%s: the checkpoint is older than the oldest record of the shard: records "+
						"in between are lost",
					l.Shard,
				),
			)
		}
		if l.Position.Done() == shard.Whole ||
			s.Records > 0 && int64(s.Records) > int64(l.Position.Done()) {
			continue
		}
		after, err := shard.After(l.Position.SequenceNumber())
		if err != nil {
			return Plan{}, err
		}
		l.Position = after
	}
	return settled, nil
}
