package weir

import (
	"context"
	"iter"
)

// Counted is r.Batches, and how many bytes it has in memory.
func Counted(ctx context.Context, r *Reader) (batches iter.Seq2[*Batch, error], bytes func() int) {
	run := r.reading()
	return func(yield func(*Batch, error) bool) { run.run(ctx, yield) }, run.budget.InUse
}
