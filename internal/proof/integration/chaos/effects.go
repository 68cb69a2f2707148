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

// With -sink each record is an effect, and what is judged is these effects: journals could not say
// which of the calls that they tell of were rolled back.

const (
	sinkSQL = "sql" // a row of the store's database, by sqlsink
	sinkS3  = "s3"  // a line of an object, by s3sink
)

// effects are what a sink has made of records.
type effects interface {
	// prepare makes what workers expect to be there.
	prepare(ctx context.Context) error
	// count is how many there are. It is called again and again while there are more to come.
	count(ctx context.Context) (int64, error)
	// all are all of them, those of a key in the order in which they are there.
	all(ctx context.Context) ([]verdict.Put, error)
}

// rows are the effects in a database.
type rows struct{ place string }

func sinkOn(db *sql.DB) (*sqlsink.Sink, error) {
	return sqlsink.New(db, sqlsink.Options{Dialect: sqlsink.Postgres, App: app, MaxIdle: 5 * time.Second})
}

func (r rows) prepare(ctx context.Context) error {
	db, err := sql.Open("pgx", r.place)
	if err != nil {
		return err
	}
	defer db.Close()
	sink, err := sinkOn(db)
	if err != nil {
		return err
	}
	if err := sink.Migrate(ctx); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "CREATE TABLE effects (id BIGSERIAL PRIMARY KEY, key TEXT NOT NULL, number INTEGER NOT NULL)")
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

func (r rows) count(ctx context.Context) (n int64, err error) {
	db, err := sql.Open("pgx", r.place)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM effects").Scan(&n)
	return n, err
}

func (r rows) all(ctx context.Context) (all []verdict.Put, err error) {
	db, err := sql.Open("pgx", r.place)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	found, err := db.QueryContext(ctx, "SELECT key, number FROM effects ORDER BY id")
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var p verdict.Put
		if err := found.Scan(&p.Key, &p.Number); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, found.Err()
}

// judgeEffects holds each record that was put to be one effect, in the order of its key.
func (s *stage) judgeEffects(puts []verdict.Put) error {
	all, err := s.made.all(context.Background())
	if err != nil {
		return err
	}
	s.effects = len(all)
	if wrong := wrongEffects(puts, all); wrong != "" {
		s.blame("%s", wrong)
	}
	return nil
}

// wrongEffects says what is wrong with the effects of what was put, "" for nothing.
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
