package sinktest

import (
	"context"
	"maps"
	"sync"

	"github.com/weir-go/weir/sink"
)

// Memory is a database in memory for tests: rows of positions, and effects in the order of their
// commits. It is safe for concurrent use.
type Memory struct {
	// Before is called at the beginning of each method but Insert and Prune. An error makes the
	// method fail before it does anything. It may be nil, and must be set before the first call.
	Before func(method string) error
	// After is called after Update has committed. An error makes Update fail all the same, as if
	// the answer was lost. It may be nil, and must be set before the first call.
	After func() error

	mu      sync.Mutex // guards the fields below, and is held during a transaction
	rows    map[sink.Key]sink.Row
	effects []string
}

// Tx is a transaction of a [Memory].
type Tx struct {
	rows    map[sink.Key]sink.Row
	effects []string
}

// Add adds an effect.
func (t *Tx) Add(effect string) { t.effects = append(t.effects, effect) }

// Effects returns the effects.
func (m *Memory) Effects() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.effects...)
}

// Backup returns a function that restores the present state.
func (m *Memory) Backup() (restore func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows, effects := maps.Clone(m.rows), m.effects[:len(m.effects):len(m.effects)]
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.rows, m.effects = maps.Clone(rows), effects
	}
}

func (m *Memory) before(method string) error {
	if m.Before == nil {
		return nil
	}
	return m.Before(method)
}

// Read implements [sink.Rows].
func (m *Memory) Read(_ context.Context, stream, shard string) (map[sink.Key]sink.Row, error) {
	if err := m.before("Read"); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[sink.Key]sink.Row{}
	for k, r := range m.rows {
		if k.Stream == stream && k.Shard == shard {
			all[k] = r
		}
	}
	return all, nil
}

// Make implements [sink.Rows].
func (m *Memory) Make(ctx context.Context, k sink.Key, r sink.Row) error {
	if err := m.before("Make"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.begin()
	_ = m.Insert(ctx, t, k, r)
	m.rows = t.rows
	return nil
}

// begin returns a transaction. m.mu is held.
func (m *Memory) begin() *Tx {
	rows := maps.Clone(m.rows)
	if rows == nil {
		rows = map[sink.Key]sink.Row{}
	}
	return &Tx{rows: rows, effects: m.effects[:len(m.effects):len(m.effects)]}
}

// Update implements [sink.Rows].
func (m *Memory) Update(ctx context.Context, k sink.Key, decide func(was sink.Row, found bool) (*sink.Row, error), effects func(ctx context.Context, tx *Tx) error) error {
	if err := m.before("Update"); err != nil {
		return err
	}
	committed, err := m.update(ctx, k, decide, effects)
	if committed && m.After != nil {
		return m.After()
	}
	return err
}

func (m *Memory) update(ctx context.Context, k sink.Key, decide func(was sink.Row, found bool) (*sink.Row, error), effects func(ctx context.Context, tx *Tx) error) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.begin()
	was, found := t.rows[k]
	next, err := decide(was, found)
	if err != nil || next == nil {
		return false, err
	}
	if found {
		t.rows[k] = *next
	}
	if effects != nil {
		if err := effects(ctx, t); err != nil {
			return false, err
		}
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	m.rows, m.effects = t.rows, t.effects
	return true, nil
}

// Insert implements [sink.Rows].
func (m *Memory) Insert(_ context.Context, t *Tx, k sink.Key, r sink.Row) error {
	if _, ok := t.rows[k]; !ok {
		t.rows[k] = r
	}
	return nil
}

// Prune implements [sink.Rows].
func (m *Memory) Prune(_ context.Context, t *Tx, stream, shard string, keep int) error {
	for k := range t.rows {
		if k.Stream == stream && k.Shard == shard && k.Of > 0 && k.Of != keep {
			delete(t.rows, k)
		}
	}
	return nil
}
