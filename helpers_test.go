package weir_test

import (
	"io"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"

	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/kinesistest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// quiet is a logger for tests that provoke warnings.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// bubble runs f in virtual time with an embedded Kinesis that has stream "s" with some shards.
func bubble(t *testing.T, shards int, f func(t *testing.T, srv *kinesistest.Server)) {
	t.Helper()
	bubbleWith(t, kinesistest.Config{}, shards, f)
}

func bubbleWith(t *testing.T, cfg kinesistest.Config, shards int, f func(t *testing.T, srv *kinesistest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.InMemory = true
		srv, err := kinesistest.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("s", shards)
		f(t, srv)
	})
}
