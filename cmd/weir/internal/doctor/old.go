package doctor

import (
	"context"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/oldside"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/internal/operate"
)

// oldTables holds the first reads of the tables of the KCL from which an application came.
type oldTables struct {
	moves []operate.Move
	first map[string]*oldside.Look
	read  func(ctx context.Context, m operate.Move) (*oldside.Look, error)
}

// readOld reads the tables for the first time. An application that did not come from the KCL has
// none, and DynamoDB is not called.
func (o *options) readOld(ctx context.Context, t cli.Terminal, store stores.Store) (old oldTables, err error) {
	if old.moves, err = oldside.Of(ctx, store, o.App); err != nil || len(old.moves) == 0 {
		return old, store.Explain(err)
	}
	client, err := o.AWS.DynamoDB(ctx, t)
	if err != nil {
		return old, err
	}
	old.first = map[string]*oldside.Look{}
	old.read = func(ctx context.Context, m operate.Move) (*oldside.Look, error) {
		return oldside.Read(ctx, client, m)
	}
	for _, m := range old.moves {
		// The second read reports the error.
		old.first[m.Table], _ = old.read(ctx, m)
	}
	return old, nil
}

// again reads the tables for the second time, and returns the facts about them.
func (old oldTables) again(ctx context.Context) (all []OldTable) {
	for _, m := range old.moves {
		look, err := old.read(ctx, m)
		switch first := old.first[m.Table]; {
		case err != nil:
			all = append(all, OldTable{Name: m.Table, Moved: m.At, Err: explain.Error(err)})
		case look != nil:
			all = append(all, OldTable{
				Name: m.Table, Moved: m.At, Used: look.Used, Owners: look.Owners,
				Runs: first != nil && first.Sum != look.Sum,
			})
		}
	}
	return all
}

// old finds workers of the KCL that started after the move.
func (p *patient) old() {
	for _, t := range p.Old {
		since := "since the move at " + t.Moved.UTC().Format(time.RFC3339)
		switch {
		case t.Err != "":
			p.found(Info, "old-table", t.Name, "allow dynamodb:Scan on it, or delete it when you do not want to go back",
				"the table %s of the KCL cannot be read, so it is not known whether a worker of the KCL runs: %s", t.Name, t.Err)
		case t.Runs:
			p.found(Error, "old-worker", t.Name, "stop the workers of the KCL at once: both sides handle the same records",
				"a worker of the KCL runs with the table %s, from which %s came; its leases belong to %s", t.Name, p.App, t.Owners)
		case t.Used:
			p.found(Warning, "old-worker", t.Name, "make sure that no worker of the KCL is left, and delete the table when you do not want to go back",
				"a worker of the KCL has used the table %s %s, so records may have been handled twice; its leases belong to %s", t.Name, since, t.Owners)
		}
	}
}
