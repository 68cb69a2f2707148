package sinks

import (
	"fmt"
	"testing"
	"time"
)

// Bench measures what the position costs: batches that are applied by a sink, and the same inserts
// in transactions without one.
func Bench(b *testing.B, p Place) {
	for _, size := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(size, " records"), func(b *testing.B) {
			db, s := p.ready(b)
			h := term(b, s, 1, apply)
			ctx, number := b.Context(), 1
			var with, without time.Duration
			for b.Loop() { // in turns, so that both see the same machine
				batch := batch(1, number, number+size-1)
				number += size
				began := time.Now()
				if err := h.Handle(ctx, batch); err != nil {
					b.Fatal(err)
				}
				with += time.Since(began)
				began = time.Now()
				tx, err := db.BeginTx(ctx, nil)
				if err == nil {
					err = apply(ctx, tx, batch)
				}
				if err == nil {
					err = tx.Commit()
				}
				if err != nil {
					b.Fatal(err)
				}
				without += time.Since(began)
			}
			b.ReportMetric(float64(b.N)/with.Seconds(), "transactions/s")
			b.ReportMetric(float64(with.Microseconds())/float64(b.N), "us/batch")
			b.ReportMetric(float64(without.Microseconds())/float64(b.N), "us/plain")
			b.ReportMetric(with.Seconds()/without.Seconds(), "ratio")
		})
	}
}
