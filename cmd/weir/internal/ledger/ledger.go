// Package ledger is the sink of docs/guide/handlers.md: it books each record once, in a database
// that keeps the positions itself.
package ledger

import (
	"context"
	"database/sql"
	"errors"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/shard"
)

// Tables are what a ledger needs. A position is about 70 bytes of text.
const Tables = `
create table if not exists bookings (id text primary key, partition_key text, data text);
create table if not exists positions (stream text, shard text, epoch integer, position text,
	primary key (stream, shard));`

// Ledger books records. What it books and how far it is are one transaction, so each record is
// booked once, whatever dies when.
type Ledger struct{ DB *sql.DB }

// Handlers is for weir.Consumer.RunShards.
func (l *Ledger) Handlers() weir.ShardHandlers {
	return weir.ShardHandlers{
		Open:     func(context.Context, weir.Term) (weir.ShardHandler, error) { return l, nil },
		Position: l.position,
	}
}

// Handle books a batch.
func (l *Ledger) Handle(ctx context.Context, b *weir.Batch) error {
	at := shard.End // also of a last batch without records
	if !b.End {
		at = b.Records[len(b.Records)-1].Position()
	}
	tx, err := l.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	moved, err := tx.ExecContext(ctx, `insert into positions values ($1, $2, $3, $4)
		on conflict (stream, shard) do update set epoch = $3, position = $4
		where positions.epoch <= $3`, b.Stream, b.Shard, b.Epoch, at.String())
	if err != nil {
		return err
	}
	if n, err := moved.RowsAffected(); err != nil {
		return err
	} else if n == 0 {
		return weir.ErrLeaseLost // a later owner was here: this worker is late
	}
	for _, r := range b.Records {
		// A shard that had ended is read again if the leases are lost. What it held is there by its
		// ID.
		if _, err := tx.ExecContext(ctx, `insert into bookings values ($1, $2, $3)
			on conflict (id) do nothing`, r.ID(), r.PartitionKey, string(r.Data)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Close is called at the end of a term. A ledger keeps nothing of a term.
func (l *Ledger) Close(context.Context, weir.EndReason) {}

// position is where reading begins: the zero Position if nothing of the shard was booked.
func (l *Ledger) position(ctx context.Context, stream, id string) (weir.Position, error) {
	var text string
	err := l.DB.QueryRowContext(ctx, `select position from positions where stream = $1 and shard = $2`,
		stream, id).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return weir.Position{}, nil
	}
	if err != nil {
		return weir.Position{}, err // asked again after a pause, never taken for "nowhere"
	}
	return shard.Parse(text)
}
