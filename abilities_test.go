package weir

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/guard/guarded"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// able is a store whose abilities a test sets.
type able struct {
	lease.Store
	abilities lease.Abilities
}

func (s able) Abilities() lease.Abilities { return s.abilities }

// planted returns two features for tests. If required is true, New fails when the store lacks an
// ability for the second feature.
func planted(required bool) []guarded.Feature {
	return []guarded.Feature{
		{Name: "watching", Needs: lease.WatchHeartbeats},
		{Name: "resigning", Needs: lease.WatchHeartbeats | lease.ResignByHeartbeat, Required: required},
	}
}

func TestNewFailsWithoutARequiredAbility(t *testing.T) {
	client := kinesis.New(kinesis.Options{Region: "us-east-1"})
	store := able{memstore.New(), lease.WatchHeartbeats}
	_, err := newConsumer(client, store, Options{App: "not a name", Streams: []string{"s"}}, planted(true))
	if err == nil || !strings.Contains(err.Error(), "Options.App") || !strings.Contains(err.Error(), "resign by heartbeat") {
		t.Errorf("New says %v, which is not all that is wrong", err)
	}
	if _, err := newConsumer(client, store, Options{App: "app", Streams: []string{"s"}}, planted(false)); err != nil {
		t.Errorf("New fails without what it can do without: %v", err)
	}
}

func TestRunSaysWhichFeaturesAreOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("s", 1)
		for _, c := range []struct {
			has   lease.Abilities
			lines int
		}{{lease.AllAbilities, 0}, {lease.WatchHeartbeats, 1}, {0, 2}} {
			var log bytes.Buffer
			opts := Options{App: "app", Streams: []string{"s"}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			consumer, err := newConsumer(srv.Client(), able{memstore.New(), c.has}, opts, planted(false))
			if err != nil {
				t.Fatal(err)
			}
			if log.Len() > 0 {
				t.Errorf("New logs %s", &log)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				ended <- consumer.Run(ctx, HandlerFunc(func(context.Context, *Batch) error { return nil }))
			}()
			synctest.Wait()
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			told := 0
			for line := range strings.Lines(log.String()) {
				if !strings.Contains(line, "a feature is off") {
					continue
				}
				told++
				if !strings.Contains(line, "level=INFO") || !strings.Contains(line, "feature=") || !strings.Contains(line, `missing="`) {
					t.Errorf("the line does not say it all: %s", line)
				}
			}
			if told != c.lines {
				t.Errorf("with %v there are %d lines, want %d:\n%s", c.has, told, c.lines, &log)
			}
		}
	})
}
