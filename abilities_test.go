package weir

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// able is a store of which a test says what it can do.
type able struct {
	lease.Store
	abilities lease.Abilities
}

func (s able) Abilities() lease.Abilities { return s.abilities }

// planted are features for tests: one that the options can do without, one that they can with
// MaxLeases only.
var planted = []feature{
	{name: "watching", needs: lease.WatchBeats},
	{name: "Options.MaxLeases", needs: lease.WatchBeats | lease.ResignByBeat, required: func(o Options) bool { return o.MaxLeases > 0 }},
}

func TestWhatAStoreCannotDo(t *testing.T) {
	for name, c := range map[string]struct {
		has           lease.Abilities
		all           []feature
		leases        int
		missing, idle []string
	}{
		"nothing is asked for":                               {0, nil, 1, nil, nil},
		"it can do everything":                               {lease.AllAbilities, planted, 1, nil, nil},
		"what is required fails, what is not is off":         {0, planted, 1, []string{"watch beats, resign by beat, which is needed for Options.MaxLeases"}, []string{"watching"}},
		"one ability of two is missing":                      {lease.WatchBeats, planted, 1, []string{": resign by beat, which is needed for Options.MaxLeases"}, nil},
		"what other options would require is off":            {0, planted, 0, nil, []string{"watching", "Options.MaxLeases"}},
		"an ability that nobody asked for helps nobody":      {1 << 40, planted, 0, nil, []string{"watching", "Options.MaxLeases"}},
		"every feature there is does with what memstore has": {memstore.New().Abilities(), features, 1, nil, nil},
	} {
		missing, off := judgeAbilities(c.has, Options{MaxLeases: c.leases}, c.all)
		var names []string
		for _, f := range off {
			names = append(names, f.name)
		}
		if !slices.Equal(names, c.idle) {
			t.Errorf("%s: off are %q, want %q", name, names, c.idle)
		}
		if !slices.EqualFunc(missing, c.missing, func(err error, want string) bool { return strings.Contains(err.Error(), want) }) {
			t.Errorf("%s: missing are %q, want %q", name, missing, c.missing)
		}
	}
}

func TestNewFailsWithoutARequiredAbility(t *testing.T) {
	client := kinesis.New(kinesis.Options{Region: "us-east-1"})
	store := able{memstore.New(), lease.WatchBeats}
	_, err := newConsumer(client, store, Options{App: "not a name", Stream: "s", MaxLeases: 1}, planted)
	if err == nil || !strings.Contains(err.Error(), "Options.App") || !strings.Contains(err.Error(), "resign by beat") {
		t.Errorf("New says %v, which is not all that is wrong", err)
	}
	if _, err := newConsumer(client, store, Options{App: "app", Stream: "s"}, planted); err != nil {
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
		}{{lease.AllAbilities, 0}, {lease.WatchBeats, 1}, {0, 2}} {
			var log bytes.Buffer
			opts := Options{App: "app", Stream: "s", Logger: slog.New(slog.NewTextHandler(&log, nil))}
			consumer, err := newConsumer(srv.Client(), able{memstore.New(), c.has}, opts, planted)
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
