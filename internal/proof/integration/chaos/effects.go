package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
	"github.com/weir-go/weir/sink/sqlsink"
)

// With -sink, the verdict is about the content of a sink. With sqlsink, the content is a row in the
// store's database for each record. With s3sink, it is a line of an object in S3 for each record.
// Journals could not show which calls were rolled back.
const (
	sqlSink = "sqlsink"
	s3Sink  = "s3sink"
)

// prepareSink sets up a sink.
func (s *stage) prepareSink(t testing.TB) error {
	switch s.Sink {
	case sqlSink:
		return s.prepareEffects()
	case s3Sink:
		return s.prepareBucket(t)
	}
	return nil
}

// countDone returns the number of records that were handled or dead-lettered.
func (s *stage) countDone() (int64, error) {
	switch s.Sink {
	case sqlSink:
		return s.countEffects()
	case s3Sink:
		err := s.bucket.follow(context.Background())
		return int64(len(s.bucket.rows())), err
	}
	return countDistinct(s.dir)
}

func sinkOn(db *sql.DB) (*sqlsink.Sink, error) {
	return sqlsink.New(db, sqlsink.Options{Dialect: sqlsink.Postgres, App: app, MaxIdle: 5 * time.Second})
}

// prepareEffects creates the tables.
func (s *stage) prepareEffects() error {
	db, err := sql.Open("pgx", s.backing.place(""))
	if err != nil {
		return err
	}
	defer db.Close()
	sink, err := sinkOn(db)
	if err != nil {
		return err
	}
	if err := sink.Migrate(s.ctx); err != nil {
		return err
	}
	_, err = db.ExecContext(s.ctx, "CREATE TABLE effects (id BIGSERIAL PRIMARY KEY, key TEXT NOT NULL, number INTEGER NOT NULL)")
	return err
}

// apply runs a worker whose handler inserts rows. Like the handler with a journal, it is sometimes
// slow.
func (w worker) apply(ctx context.Context, c *weir.Consumer) error {
	db, err := sql.Open("pgx", w.Place)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(20)
	sink, err := sinkOn(db)
	if err != nil {
		return err
	}
	pauses := &journal{slowed: map[string]time.Time{}} // used only for pauses; writes nothing
	return c.RunShards(ctx, sink.Handlers(func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
		pauseAt := -1 // do not pause
		if pauses.sometimes(pauses.slowed, b.Shard, slowOne) {
			pauseAt = rand.IntN(len(b.Records) + 1)
		}
		for i, r := range b.Records {
			put, err := parseRecord(r.PartitionKey, r.Data)
			if err != nil {
				return weir.Stop(err)
			}
			if i == pauseAt {
				timer := time.NewTimer(rand.N(slow))
				select {
				case <-timer.C:
				case <-ctx.Done():
					timer.Stop()
					return context.Cause(ctx)
				}
			}
			if _, err := tx.ExecContext(ctx, "INSERT INTO effects (key, number) VALUES ($1, $2)", put.Key, put.Number); err != nil {
				return err
			}
		}
		return nil
	}))
}

// countEffects returns the number of rows.
func (s *stage) countEffects() (n int64, err error) {
	db, err := sql.Open("pgx", s.backing.place(""))
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRow("SELECT count(*) FROM effects").Scan(&n)
	return n, err
}

// judgeEffects checks that each record that was put has exactly one effect, and that the effects of
// a key are in order.
func (s *stage) judgeEffects(puts []verdict.Put) error {
	rows, err := s.allEffects()
	if err != nil {
		return err
	}
	s.effects = len(rows)
	if wrong := wrongEffects(puts, rows); wrong != "" {
		s.blame("%s", wrong)
	}
	return nil
}

// allEffects returns all effects. The effects of a key are in the order of insertion.
func (s *stage) allEffects() ([]verdict.Put, error) {
	if s.Sink == s3Sink {
		return s.allLines(context.Background())
	}
	db, err := sql.Open("pgx", s.backing.place(""))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	found, err := db.Query("SELECT key, number FROM effects ORDER BY id")
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var rows []verdict.Put
	for found.Next() {
		var p verdict.Put
		if err := found.Scan(&p.Key, &p.Number); err != nil {
			return nil, err
		}
		rows = append(rows, p)
	}
	return rows, found.Err()
}

// wrongEffects describes what is wrong with the effects. It returns "" if they are correct.
func wrongEffects(puts, rows []verdict.Put) string {
	last, seen := map[string]int{}, map[verdict.Put]bool{}
	lost, doubled, disorder, strange := 0, 0, 0, len(rows)
	for _, r := range rows {
		switch {
		case seen[r]:
			doubled++
		case r.Number != last[r.Key]+1:
			disorder++
		}
		seen[r], last[r.Key] = true, r.Number
	}
	for _, p := range puts {
		if seen[verdict.Put{Key: p.Key, Number: p.Number}] {
			strange--
		} else {
			lost++
		}
	}
	strange -= doubled
	if lost == 0 && doubled == 0 && disorder == 0 && strange == 0 {
		return ""
	}
	return fmt.Sprintf("%d records have %d effects: %d have none, %d are there again, %d are out of order, %d are of no record",
		len(puts), len(rows), lost, doubled, disorder, strange)
}
