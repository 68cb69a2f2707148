package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/internal/kcl"
	"github.com/weir-go/weir/internal/kcl/leasetable"
)

// lookEvery is the pause between two reads of the table. Tests make it shorter.
var lookEvery = 2 * time.Second

// scanBound is the timeout for one read of the table.
const scanBound = 2 * time.Minute

// old watches the lease table of the KCL.
type old struct {
	client *dynamodb.Client
	name   string
	watch  *kcl.Watch
	last   kcl.Table
}

// look reads the table and adds its content to the watch.
func (o *old) look(ctx context.Context) error {
	began := time.Now()
	table, err := o.read(ctx)
	if err != nil {
		return err
	}
	o.watch.See(began, table)
	o.last = table
	return nil
}

func (o *old) read(ctx context.Context) (kcl.Table, error) {
	ctx, cancel := context.WithTimeout(ctx, scanBound)
	defer cancel()
	table, err := leasetable.Scan(ctx, o.client, o.name)
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return table, explain.PlainError{
			Text: fmt.Sprintf(
				"there is no DynamoDB table %s in %s: check --table and the region",
				o.name,
				o.client.Options().Region,
			),
			Cause: err,
		}
	}
	return table, err
}

// stopped waits until the workers of the KCL have stopped. If wait is false, it returns an error as
// soon as it sees that a worker runs. The error names the workers.
func (o *old) stopped(ctx context.Context, t cli.Terminal, wait bool) error {
	said := ""
	if left := o.watch.Left(); left > 0 {
		t.Note(
			"watching table %s for %s: no lease may change",
			o.name,
			figures.Duration(left),
		)
	}
	for {
		running := o.watch.Running()
		switch {
		case len(running) > 0 && !wait:
			return fmt.Errorf(
				"workers of the KCL run: %s; stop them first, or give --watch to wait for their "+
					"end",
				kcl.RunningText(running),
			)
		case len(running) == 0 && o.watch.Left() == 0:
			return nil
		}
		if names := namesOf(running); len(running) > 0 && names != said {
			said = names
			t.Note("waiting for the end of %s", kcl.RunningText(running))
		}
		pause := time.NewTimer(min(lookEvery, max(o.watch.Left(), 100*time.Millisecond)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		}
		if err := o.look(ctx); err != nil {
			return fmt.Errorf("weir could not find out whether workers of the KCL run: %w", err)
		}
	}
}

func namesOf(running []kcl.Running) (names string) {
	for _, r := range running {
		names += r.Worker + "\x00"
	}
	return names
}

// unchanged reads the table again, right before or after a write. It returns an error if a lease
// has changed since the last look.
func (o *old) unchanged(ctx context.Context) error {
	now, err := o.read(ctx)
	if err != nil {
		return err
	}
	if what, changed := o.watch.Changed(now); changed {
		return fmt.Errorf(
			"a worker of the KCL has started: %s has changed since the plan was made; stop it "+
				"and run the command again",
			what,
		)
	}
	return nil
}
