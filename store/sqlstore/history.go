package sqlstore

import (
	"context"

	"github.com/weir-go/weir/lease"
)

// PutHistory implements [lease.Historian], in one transaction.
func (s *Store) PutHistory(ctx context.Context, app string, c lease.HistoryChunk) error {
	if err := c.Check(); err != nil {
		return err
	}
	return s.inTx(ctx, app, true, func(t *tx) error {
		const gone = "DELETE FROM {history} WHERE app = ? AND "
		if _, err := t.exec(gone+"since < ?", app, c.Expired()); err != nil {
			return err
		}
		if _, err := t.exec(gone+"since = ? AND session = ?", app, c.Since, c.Session); err != nil {
			return err
		}
		_, err := t.exec("INSERT INTO {history} (app, since, session, data) VALUES (?, ?, ?, ?)", app, c.Since, c.Session, c.Data)
		return err
	})
}

// History implements [lease.Historian].
func (s *Store) History(ctx context.Context, app string, since int64) ([]lease.HistoryChunk, error) {
	var chunks []lease.HistoryChunk
	err := s.inTx(ctx, app, false, func(t *tx) error {
		chunks = nil
		const query = "SELECT since, session, data FROM {history} WHERE app = ? AND since >= ? ORDER BY since, session"
		return t.query(query, 3, func(values []any) error {
			d := decoder{row: values}
			c := lease.HistoryChunk{Since: d.integer("since"), Session: d.text("session"), Data: []byte(d.text("data"))}
			if d.err == nil && c.Check() == nil {
				chunks = append(chunks, c)
			}
			return nil
		}, app, max(since, 0))
	})
	if err != nil {
		return nil, err
	}
	return chunks, nil
}
