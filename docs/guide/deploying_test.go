package guide

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

// serve runs a worker until ctx ends, and answers health checks on l.
func serve(ctx context.Context, c *weir.Consumer, h weir.Handler, l net.Listener) error {
	health := &http.Server{Handler: c.HealthHandler(), ReadHeaderTimeout: 5 * time.Second}
	defer health.Close()
	go health.Serve(l)
	return c.Run(ctx, h)
}

func TestHealthWhileItRuns(t *testing.T) {
	srv := kinesistest.NewServer(t)
	srv.CreateStream("orders", 2)
	options := billing
	options.Logger = slog.New(slog.DiscardHandler)
	c, err := weir.New(srv.Client(), memstore.New(), options)
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	app := weirtest.Go(t, func(ctx context.Context) error { return serve(ctx, c, new(bank).till(), l) })
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	app.Until(weirtest.When("it is ready", func() bool { code, _ := ask("/readyz"); return code == http.StatusOK }))
	app.Until(weirtest.When("it has its shards", func() bool { return len(c.Shards()) == 2 }))
	if code, body := ask("/livez"); code != http.StatusOK || !json.Valid([]byte(body)) || !strings.Contains(body, "true") {
		t.Errorf("/livez: %d %s", code, body)
	}
	app.Stop()
	if _, err := client.Get("http://" + l.Addr().String() + "/livez"); err == nil {
		t.Error("it is still there")
	}
}
