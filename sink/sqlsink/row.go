package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/sink"
)

// Rows returns the rows of the application, for a program that builds on package sink itself, and
// for package sinktest.
func (s *Sink) Rows() sink.Rows[*sql.Tx] { return rows{s} }

// rows implements [sink.Rows].
type rows struct{ *Sink }

var _ sink.Rows[*sql.Tx] = rows{}

// The values of the column ended. Versions without partitions refuse rows with other values than 0
// and 1, so they do not apply records again whose effects a partition has stored.
const (
	endedBit = 1
	splitBit = 2
)

// shardColumn returns the shard column of a row: the shard's ID, followed for a partition by its
// number and the number of partitions. No shard ID contains a slash.
func shardColumn(k sink.Key) string {
	if k.Of == 0 {
		return k.Shard
	}
	return fmt.Sprintf("%s/%d/%d", k.Shard, k.Partition, k.Of)
}

// keyOf returns the key of a row.
func keyOf(stream, column string) (sink.Key, error) {
	id, rest, split := strings.Cut(column, "/")
	k := sink.Key{Stream: stream, Shard: id}
	if !split {
		return k, nil
	}
	part, of, _ := strings.Cut(rest, "/")
	var err, failed error
	k.Partition, err = strconv.Atoi(part)
	k.Of, failed = strconv.Atoi(of)
	if err != nil || failed != nil || k.Partition < 0 || k.Partition >= k.Of || column != shardColumn(k) {
		return sink.Key{}, fmt.Errorf("sqlsink: a row has the shard %.200q, which is neither a shard nor a partition of one", column)
	}
	return k, nil
}

const (
	where   = " WHERE app = ? AND stream = ? AND shard = ?"
	parts   = " WHERE app = ? AND stream = ? AND shard > ? AND shard < ?" // the rows of partitions
	columns = "SELECT shard, epoch, position, ended FROM {table}"
	update  = "UPDATE {table} SET epoch = ?, position = ?, ended = ?, updated = "
	insert  = "INSERT INTO {table} (app, stream, shard, epoch, position, ended, updated) VALUES (?, ?, ?, ?, ?, ?, "
)

// partitionsOf returns the bounds of the shard columns of a shard's partitions. The character after
// the slash is the zero.
func partitionsOf(id string) (after, before string) { return id + "/", id + "0" }

// Read implements [sink.Rows].
func (s rows) Read(ctx context.Context, stream, id string) (map[sink.Key]sink.Row, error) {
	after, before := partitionsOf(id)
	found, err := s.db.QueryContext(ctx, s.named(columns+" WHERE app = ? AND stream = ? AND (shard = ? OR shard > ? AND shard < ?)"), s.o.App, stream, id, after, before)
	if err != nil {
		return nil, s.readFailed(sink.Key{Stream: stream, Shard: id}, err)
	}
	defer found.Close()
	all := map[sink.Key]sink.Row{}
	for found.Next() {
		k, r, err := s.scan(found, stream)
		if err != nil {
			return nil, err
		}
		all[k] = r
	}
	if err := found.Err(); err != nil {
		return nil, s.readFailed(sink.Key{Stream: stream, Shard: id}, err)
	}
	return all, nil
}

// one reads and locks a row in a transaction.
func (s rows) one(ctx context.Context, tx *sql.Tx, k sink.Key) (sink.Row, bool, error) {
	_, r, err := s.scan(tx.QueryRowContext(ctx, s.named(columns+where+s.dialect.locking), s.o.App, k.Stream, shardColumn(k)), k.Stream)
	if errors.Is(err, sql.ErrNoRows) {
		return sink.Row{}, false, nil
	}
	return r, err == nil, err
}

// scan reads a row of a result.
func (s rows) scan(from interface{ Scan(...any) error }, stream string) (sink.Key, sink.Row, error) {
	var (
		epoch, ended int64
		id, position string
	)
	if err := from.Scan(&id, &epoch, &position, &ended); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return sink.Key{}, sink.Row{}, err
		}
		return sink.Key{}, sink.Row{}, s.readFailed(sink.Key{Stream: stream, Shard: id}, err)
	}
	k, err := keyOf(stream, id)
	if err != nil {
		return sink.Key{}, sink.Row{}, err
	}
	r, err := decode(epoch, position, ended)
	if err != nil {
		return sink.Key{}, sink.Row{}, fmt.Errorf("sqlsink: the row of %s, %s in %s: %w", s.o.App, k, s.name, err)
	}
	return k, r, nil
}

// readFailed returns the error of a read that failed.
func (s rows) readFailed(k sink.Key, err error) error {
	if noTable(err) {
		return fmt.Errorf("sqlsink: there is no table %s: call Migrate once, or run the statement that Schema returns (%w)", s.name, err)
	}
	return fmt.Errorf("sqlsink: reading the position of %s: %w", k, err)
}

// decode converts columns to a row.
func decode(epoch int64, position string, ended int64) (sink.Row, error) {
	at, err := shard.Parse(position)
	switch kind := at.Kind(); {
	case err != nil:
		return sink.Row{}, err
	case kind == shard.Tip || kind == shard.Finished:
		return sink.Row{}, fmt.Errorf("the position %q is not valid in a row", position)
	case epoch < 0:
		return sink.Row{}, fmt.Errorf("the epoch %d is below zero", epoch)
	case ended < 0 || ended > endedBit|splitBit:
		return sink.Row{}, fmt.Errorf("ended is %d, and must be 0 to %d", ended, endedBit|splitBit)
	}
	return sink.Row{Epoch: uint64(epoch), At: at, Ended: ended&endedBit != 0, Split: ended&splitBit != 0}, nil
}

// encode converts a row to columns.
func encode(r sink.Row) (epoch int64, position string, ended int64, err error) {
	if r.Epoch > math.MaxInt64 {
		return 0, "", 0, fmt.Errorf("sqlsink: the epoch %d is too large for a database", r.Epoch)
	}
	if r.Ended {
		ended |= endedBit
	}
	if r.Split {
		ended |= splitBit
	}
	return int64(r.Epoch), r.At.String(), ended, nil
}

// Make implements [sink.Rows].
func (s rows) Make(ctx context.Context, k sink.Key, r sink.Row) error {
	epoch, position, ended, err := encode(r)
	if err == nil {
		_, err = s.change(ctx, "making the row of a shard", insert+s.dialect.now+")"+s.dialect.insert, s.o.App, k.Stream, shardColumn(k), epoch, position, ended)
	}
	return err
}

// Insert implements [sink.Rows].
func (s rows) Insert(ctx context.Context, tx *sql.Tx, k sink.Key, r sink.Row) error {
	epoch, position, ended, err := encode(r)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, s.named(insert+s.dialect.now+")"+s.dialect.insert), s.o.App, k.Stream, shardColumn(k), epoch, position, ended); err != nil {
		return fmt.Errorf("sqlsink: making the row of %s: %w", k, err)
	}
	return nil
}

// store writes a row in a transaction that has locked it.
func (s rows) store(ctx context.Context, tx *sql.Tx, k sink.Key, r sink.Row) error {
	epoch, position, ended, err := encode(r)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, s.named(update+s.dialect.now+where), epoch, position, ended, s.o.App, k.Stream, shardColumn(k)); err != nil {
		return fmt.Errorf("sqlsink: moving the position of %s: %w", k, err)
	}
	return nil
}

// Prune implements [sink.Rows].
func (s rows) Prune(ctx context.Context, tx *sql.Tx, stream, id string, keep int) error {
	after, before := partitionsOf(id)
	if _, err := tx.ExecContext(ctx, s.named("DELETE FROM {table}"+parts+" AND shard NOT LIKE ?"), s.o.App, stream, after, before, fmt.Sprintf("%%/%d", keep)); err != nil {
		return fmt.Errorf("sqlsink: removing the positions of partitions of %s/%s: %w", stream, id, err)
	}
	return nil
}
