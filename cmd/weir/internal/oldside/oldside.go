// Package oldside looks at the table of the KCL from which an application came, and finds out
// whether a worker of the KCL has used it since the move.
package oldside

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/internal/kcl"
	"github.com/weir-go/weir/internal/kcl/leasetable"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
)

// KCL is the kind of a move from the KCL.
const KCL = "kcl"

// readBound is the timeout of one read of the table.
const readBound = 30 * time.Second

// Look is the state of a table after a move.
type Look struct {
	Table  string
	Moved  time.Time
	Used   bool   // a worker of the KCL has used the table since the move
	Sum    uint64 // the sum of the counters now
	Owners string // the workers that own leases, for people
}

// Read reads the table of a move. It returns nil if there is no such table any more.
func Read(ctx context.Context, client *dynamodb.Client, m operate.Move) (*Look, error) {
	ctx, cancel := context.WithTimeout(ctx, readBound)
	defer cancel()
	table, err := leasetable.Scan(ctx, client, m.Table)
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sum := kcl.Sum(table)
	return &Look{
		Table: m.Table, Moved: m.At, Used: sum != m.Sum, Sum: sum, Owners: kcl.Owners(table),
	}, nil
}

// Of returns the moves of an application from the KCL.
func Of(ctx context.Context, store lease.Store, app string) ([]operate.Move, error) {
	moves, err := operate.Moves(ctx, store, app)
	var found []operate.Move
	for _, m := range moves {
		if m.Kind == KCL {
			found = append(found, m)
		}
	}
	return found, err
}

// every is the interval at which a worker reads the old tables.
const every = time.Minute

// Start watches the tables of the KCL from which an application came. It calls dynamo only if there
// are such tables. The caller calls end, which ends the watch and waits for it.
func Start(
	ctx context.Context, store lease.Store, app string, dynamo func() (*dynamodb.Client, error),
	log *slog.Logger,
) (end func()) {
	moves, err := Of(ctx, store, app)
	if err != nil {
		log.Warn("the store does not say whether the application came from the KCL", "err", explain.Error(err))
	}
	if len(moves) == 0 {
		return func() {}
	}
	client, err := dynamo()
	if err != nil {
		log.Warn("the old table of the KCL is not watched", "err", explain.Error(err))
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { Watch(ctx, client, moves, every, log) })
	return func() {
		cancel()
		watching.Wait()
	}
}

// Watch reads the tables of moves at an interval, and logs an error each time when a worker of the
// KCL has used a table since the last read. It returns when ctx ends, or when no table is left. The
// first failed read of a table is logged, too.
func Watch(
	ctx context.Context, client *dynamodb.Client, moves []operate.Move, every time.Duration,
	log *slog.Logger,
) {
	failed := map[string]bool{}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for len(moves) > 0 {
		var left []operate.Move
		for _, m := range moves {
			look, err := Read(ctx, client, m)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				if !failed[m.Table] {
					log.Warn("the old table of the KCL cannot be read, so weir cannot see whether a worker of the KCL runs",
						"table", m.Table, "err", explain.Error(err))
				}
				failed[m.Table] = true
			case look == nil:
				continue // the table was deleted
			case look.Used:
				log.Error("a worker of the KCL has used its old table since the move to weir, so records are handled twice; stop the KCL",
					"table", m.Table, "owners", look.Owners, "moved", m.At.UTC().Format(time.RFC3339))
				m.Sum = look.Sum
			}
			left = append(left, m)
		}
		if moves = left; len(moves) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
