package operate

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// MovesApp is the name of an application without workers. Its leases are the [Move] records of all
// applications in the store. Lists of applications leave it out.
const MovesApp = "weir.moves"

// Apps returns the applications in a list without [MovesApp].
func Apps(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == MovesApp })
}

// Move records that an application came from a table of another client.
type Move struct {
	Kind  string // of the client, such as kcl; without a colon
	Table string
	// Sum is a fingerprint of the table at the time of the move. It is cut to 62 bits.
	Sum uint64
	At  time.Time // by the clock of the command
}

const sumBits = 1<<62 - 1

// key returns the key of the record.
func (m Move) key(app string) lease.Key { return lease.Key{Stream: app, Shard: m.Kind + ":" + m.Table} }

// Remember stores a move. It replaces an older record of the same table.
func Remember(ctx context.Context, store lease.Store, app string, m Move) error {
	if err := Forget(ctx, store, app, m.Kind, m.Table); err != nil {
		return err
	}
	_, err := store.Apply(ctx, MovesApp, []lease.Action{{Kind: lease.Create, Lease: lease.Lease{
		Key: m.key(app), Range: shard.HashRange{End: shard.MaxHashKey}, Position: shard.End,
		Epoch: m.Sum&sumBits + 1, Born: m.At.UnixMilli(),
	}}})
	return err
}

// Forget deletes the record of a table. Without a record it does nothing. An empty table means all
// tables of an application.
func Forget(ctx context.Context, store lease.Store, app, kind, table string) error {
	v, err := store.View(ctx, MovesApp, "")
	if err != nil {
		return err
	}
	var actions []lease.Action
	for _, l := range v.Leases {
		if l.Stream == app && (table == "" || l.Shard == kind+":"+table) {
			actions = append(actions, lease.Action{Kind: lease.Delete, Key: l.Key, Epoch: l.Epoch})
		}
	}
	if len(actions) == 0 {
		return nil
	}
	_, err = store.Apply(ctx, MovesApp, actions)
	return err
}

// Moves returns the moves of an application, sorted by table.
func Moves(ctx context.Context, store lease.Store, app string) ([]Move, error) {
	v, err := store.View(ctx, MovesApp, "")
	if err != nil {
		return nil, err
	}
	var moves []Move
	for _, l := range v.Leases {
		kind, table, named := strings.Cut(l.Shard, ":")
		if l.Stream == app && named {
			moves = append(moves, Move{kind, table, l.Epoch - 1, time.UnixMilli(l.Born)})
		}
	}
	slices.SortFunc(moves, func(a, b Move) int { return strings.Compare(a.Table, b.Table) })
	return moves, nil
}
