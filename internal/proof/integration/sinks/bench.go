package sinks

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Bench measures the cost of the position. It compares batches that a sink applies with the same
// inserts in transactions without a position.
func Bench(b *testing.B, p Place) {
	for _, size := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(size, " records"), func(b *testing.B) {
			db, s := p.ready(b)
			h := term(b, s, 1, apply)
			ctx, number := b.Context(), 1
			var with, without []time.Duration
			for b.Loop() { // both alternately, under the same load
				batch := batch(1, number, number+size-1)
				number += size
				began := time.Now()
				if err := h.Handle(ctx, batch); err != nil {
					b.Fatal(err)
				}
				with = append(with, time.Since(began))
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
				without = append(without, time.Since(began))
			}
			one, plain := median(with), median(without)
			b.ReportMetric(1/one.Seconds(), "transactions/s")
			b.ReportMetric(float64(one.Microseconds()), "us/batch")
			b.ReportMetric(float64(plain.Microseconds()), "us/plain")
			b.ReportMetric(one.Seconds()/plain.Seconds(), "ratio")
		})
	}
}

// median returns the median, the value that other load affects least.
func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
