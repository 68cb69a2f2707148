package memstore

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/weir-go/weir/lease"
)

type historyKey struct {
	since   int64
	session string
}

// PutHistory implements [lease.Historian].
func (s *Store) PutHistory(ctx context.Context, app string, c lease.HistoryChunk) error {
	if err := cmp.Or(ctx.Err(), lease.CheckApp(app), c.Check()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.app(app)
	for k := range a.history {
		if k.since < c.Expired() {
			delete(a.history, k)
		}
	}
	a.history[historyKey{c.Since, c.Session}] = bytes.Clone(c.Data)
	return nil
}

// History implements [lease.Historian].
func (s *Store) History(ctx context.Context, app string, since int64) ([]lease.HistoryChunk, error) {
	if err := cmp.Or(ctx.Err(), lease.CheckApp(app)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var chunks []lease.HistoryChunk
	for k, data := range s.app(app).history {
		if k.since >= since {
			chunks = append(chunks, lease.HistoryChunk{Session: k.session, Since: k.since, Data: bytes.Clone(data)})
		}
	}
	slices.SortFunc(chunks, func(a, b lease.HistoryChunk) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), strings.Compare(a.Session, b.Session))
	})
	return chunks, nil
}
