package weir

import (
	"context"
	"iter"
)

// Counted returns r.Batches, and a function that returns how many bytes r.Batches holds in memory.
func Counted(ctx context.Context, r *Reader) (batches iter.Seq2[*Batch, error], bytes func() int) {
	run := r.reading()
	return func(yield func(*Batch, error) bool) { run.run(ctx, yield) }, run.budget.InUse
}
