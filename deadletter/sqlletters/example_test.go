package sqlletters_test

import (
	"context"
	"database/sql"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter/sqlletters"
)

// Records that fail three times are kept in the application's own database.
func Example() {
	keep := func(ctx context.Context, db *sql.DB) (weir.Options, error) {
		letters, err := sqlletters.New(db, sqlletters.Postgres, "")
		if err != nil {
			return weir.Options{}, err
		}
		if err := letters.Migrate(ctx); err != nil {
			return weir.Options{}, err
		}
		return weir.Options{Streams: []string{"orders"}, App: "billing", OnFailure: weir.FailurePolicy{Destination: letters, MaxAttempts: 3}}, nil
	}
	_ = keep
}
