package foreign

import (
	"cmp"
	"time"

	"github.com/weir-go/weir/shard"
)

// The attributes of kinsumer.
const (
	kinsumerShard    = "Shard"
	kinsumerNumber   = "SequenceNumber"
	kinsumerUpdated  = "LastUpdate"
	kinsumerRFC      = "LastUpdateRFC"
	kinsumerOwner    = "OwnerID"
	kinsumerName     = "OwnerName"
	kinsumerDone     = "Finished"
	kinsumerDoneRFC  = "FinishedRFC"
	kinsumerClientID = "ID"
	kinsumerTip      = "LATEST"
)

// KinsumerCheck is the default interval at which kinsumer's clients update their rows.
const KinsumerCheck = time.Minute

// KinsumerTables returns the tables of an application: checkpoints, clients and metadata.
func KinsumerTables(app string) (checkpoints, clients, metadata string) {
	return app + "_checkpoints", app + "_clients", app + "_metadata"
}

// ReadKinsumer returns the state of an application from the items of its tables of checkpoints and
// of clients. every is the interval of its shard checks.
func ReadKinsumer(checkpoints, clients []Item, every time.Duration) (State, error) {
	var s State
	for _, it := range checkpoints {
		if err := s.kinsumerRow(it, every); err != nil {
			return s, err
		}
	}
	for _, it := range clients {
		id, err := it.text("", kinsumerClientID)
		if err != nil {
			return s, err
		}
		name, err := it.text(id, "Name")
		if err != nil {
			return s, err
		}
		updated, err := it.number(id, kinsumerUpdated)
		if err != nil {
			return s, err
		}
		s.sign(Sign{
			"client " + id, cmp.Or(name, id), string(numberOf(it[kinsumerUpdated])),
			time.Unix(0, updated), every,
		})
	}
	s.sort()
	return s, nil
}

func (s *State) kinsumerRow(it Item, every time.Duration) error {
	id, err := it.text("", kinsumerShard)
	if err != nil {
		return err
	}
	if err := checkShard(id); err != nil {
		return err
	}
	number, err := it.text(id, kinsumerNumber)
	if err != nil {
		return err
	}
	updated, err := it.number(id, kinsumerUpdated)
	if err != nil {
		return err
	}
	finished, err := it.number(id, kinsumerDone)
	if err != nil {
		return err
	}
	owner, err := it.text(id, kinsumerOwner)
	if err != nil {
		return err
	}
	name, err := it.text(id, kinsumerName)
	if err != nil {
		return err
	}
	row := Row{Shard: id, Raw: number, Was: it.was(kinsumerNumber, kinsumerUpdated, kinsumerOwner)}
	switch {
	case finished > 0:
		row.At, row.Raw = shard.End, "Finished"
	case number == kinsumerTip:
		row.At = shard.Latest
	default:
		if row.At, err = after(id, number); err != nil {
			return err
		}
	}
	s.add(row)
	at := time.Unix(0, updated)
	s.see(at)
	if owner != "" {
		value := string(numberOf(it[kinsumerUpdated])) + " " + number
		s.sign(Sign{"shard " + id, cmp.Or(name, owner), value, at, every})
	}
	return nil
}
