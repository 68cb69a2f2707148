package sqlstore

import (
	"context"
	"slices"
)

// Apps implements [lease.Admin]. It reads an index of each table.
func (s *Store) Apps(ctx context.Context) ([]string, error) {
	var apps []string
	err := s.inTxOf(ctx, "", false, func(t *tx) error {
		apps = nil
		const each = "SELECT app FROM {applications} UNION SELECT app FROM {sessions} UNION SELECT app FROM {leases}"
		return t.query(each, 1, func(values []any) error {
			d := decoder{row: values}
			apps = append(apps, d.text("app"))
			return d.err
		})
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(apps) // the database may sort differently
	return slices.Compact(apps), nil
}

// Remove implements [lease.Admin], in one transaction.
func (s *Store) Remove(ctx context.Context, app string) error {
	return s.inTx(ctx, app, true, func(t *tx) error {
		for _, table := range [...]string{"{leases}", "{sessions}", "{applications}", "{history}"} {
			if _, err := t.exec("DELETE FROM "+table+" WHERE app = ?", app); err != nil {
				return err
			}
		}
		return nil
	})
}
