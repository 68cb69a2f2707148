package sinktest_test

import (
	"context"
	"testing"

	"github.com/weir-go/weir/sink"
	"github.com/weir-go/weir/sink/sinktest"
)

func TestMemory(t *testing.T) {
	var m *sinktest.Memory
	sinktest.Run(t, sinktest.Place[*sinktest.Tx]{
		Open:    func(testing.TB) sink.Rows[*sinktest.Tx] { m = new(sinktest.Memory); return m },
		Add:     func(_ context.Context, tx *sinktest.Tx, effect string) error { tx.Add(effect); return nil },
		Effects: func(testing.TB) []string { return m.Effects() },
	})
}
