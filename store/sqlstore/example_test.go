package sqlstore_test

import (
	"context"
	"database/sql"

	"github.com/weir-go/weir/store/sqlstore"
)

// The leases are stored in tables of the application's own database.
func ExampleNew() {
	open := func(ctx context.Context, db *sql.DB) (*sqlstore.Store, error) {
		store, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.Postgres})
		if err != nil {
			return nil, err
		}
		if err := store.Migrate(ctx); err != nil { // creates or updates the tables
			return nil, err
		}
		return store, nil
	}
	_ = open
}
