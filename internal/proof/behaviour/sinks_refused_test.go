package behaviour

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/filter"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lambda"
	"github.com/weir-go/weir/sink/sqlsink"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/window"
)

// A sink that cannot be combined with an option is refused before anything is read. The error names
// the option.
func TestWrongOptionsForASinkAreRefused(t *testing.T) {
	type run = func(context.Context, *weir.Consumer) error
	windows, err := window.PullHandler(window.Config[int]{
		Size: time.Minute,
		Add:  func(n int, _ weir.Record) (int, error) { return n + 1, nil },
		Emit: func(context.Context, window.Results[int]) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	lambdas, err := lambda.Handler{}.Windows(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	pull := func(h weir.PullHandler) run {
		return func(ctx context.Context, c *weir.Consumer) error { return c.RunPull(ctx, h) }
	}
	ledger := func(ctx context.Context, c *weir.Consumer) error {
		s, err := sqlsink.New(new(sql.DB), sqlsink.Options{Dialect: sqlsink.SQLite, App: "app"})
		if err != nil {
			return err
		}
		return c.RunShards(ctx, s.Handlers(nil))
	}
	wanted, err := filter.Compile(`{"data":{"n":[1]}}`)
	if err != nil {
		t.Fatal(err)
	}
	keys := weir.Options{Concurrency: weir.Concurrency{Keys: 4}}
	letters := weir.Options{OnFailure: weir.FailurePolicy{Destination: deadletter.File(t.TempDir() + "/letters")}}
	notJSON := weir.Options{Filter: weir.Filter{By: wanted, NotJSON: weir.FailNotJSON}}
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		for _, tt := range []struct {
			name   string
			opts   weir.Options
			run    run
			option string
		}{
			{"keys in parallel and a SQL sink", keys, ledger, "Options.Concurrency"},
			{"keys in parallel and windows", keys, pull(windows), "Options.Concurrency"},
			{"keys in parallel and Lambda windows", keys, pull(lambdas), "Options.Concurrency"},
			{"dead letters and windows", letters, pull(windows), "Options.OnFailure"},
			{"dead letters and Lambda windows", letters, pull(lambdas), "Options.OnFailure"},
			{"records that are not JSON and windows", notJSON, pull(windows), "Options.Filter.NotJSON"},
			{"records that are not JSON and Lambda windows", notJSON, pull(lambdas), "Options.Filter.NotJSON"},
		} {
			tt.opts.App, tt.opts.Streams, tt.opts.Logger = "app", []string{"s"}, quiet
			c, err := weir.New(srv.Client(), memstore.New(), tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err = tt.run(ctx, c)
			cancel()
			if of := (*weir.OptionError)(nil); !errors.As(err, &of) || of.Option != tt.option || !strings.Contains(err.Error(), "with") {
				t.Errorf("%s: %v, want an error about %s", tt.name, err, tt.option)
			}
		}
		if n := srv.Requests("ListShards") + srv.Requests("GetShardIterator") + srv.Requests("GetRecords"); n > 0 {
			t.Errorf("%d requests were made", n)
		}
	})
}
