package sinktest

import (
	"context"
	"testing"

	"github.com/weir-go/weir/sink"
)

func TestMemory(t *testing.T) {
	var m *Memory
	Run(t, Place[*Tx]{
		Open:    func(testing.TB) sink.Rows[*Tx] { m = new(Memory); return m },
		Add:     func(_ context.Context, tx *Tx, effect string) error { tx.Add(effect); return nil },
		Effects: func(testing.TB) []string { return m.Effects() },
	})
}
