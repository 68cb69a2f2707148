package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
	"github.com/weir-go/weir/sink/sqlsink"
)

// With -sink each record is a row of the store's database, by sqlsink, and what is judged is these
// rows: journals could not say which of the calls that they tell of were rolled back.

func sinkOn(db *sql.DB) (*sqlsink.Sink, error) {
	return sqlsink.New(db, sqlsink.Options{Dialect: sqlsink.Postgres, App: app, MaxIdle: 5 * time.Second})
}

// prepareEffects makes the tables.
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

// apply is a worker whose handler makes rows, slowly now and then, as that with a journal is.
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
	pauses := &journal{slowed: map[string]time.Time{}} // writes nothing
	return c.RunShards(ctx, sink.Handlers(func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error {
		pauseAt := -1 // no record
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

// countEffects is how many rows there are.
func (s *stage) countEffects() (n int64, err error) {
	db, err := sql.Open("pgx", s.backing.place(""))
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRow("SELECT count(*) FROM effects").Scan(&n)
	return n, err
}

// judgeEffects holds each record that was put to be one row, in the order of its key.
func (s *stage) judgeEffects(puts []verdict.Put) error {
	db, err := sql.Open("pgx", s.backing.place(""))
	if err != nil {
		return err
	}
	defer db.Close()
	found, err := db.Query("SELECT key, number FROM effects ORDER BY id")
	if err != nil {
		return err
	}
	defer found.Close()
	var rows []verdict.Put
	for found.Next() {
		var p verdict.Put
		if err := found.Scan(&p.Key, &p.Number); err != nil {
			return err
		}
		rows = append(rows, p)
	}
	if err := found.Err(); err != nil {
		return err
	}
	s.effects = len(rows)
	if wrong := wrongEffects(puts, rows); wrong != "" {
		s.blame("%s", wrong)
	}
	return nil
}

// wrongEffects says what is wrong with the rows of what was put, "" for nothing.
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
