package servers

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Promtool returns a command line of promtool, Prometheus' tool that checks and tests files.
func Promtool(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), filepath.Join(fetched(t, "prometheus"), "usr", "bin", "promtool"), args...)
}

// Prometheus starts Prometheus with a configuration. Paths in the configuration must be absolute.
func Prometheus(t testing.TB, config string) *Server {
	t.Helper()
	program := filepath.Join(fetched(t, "prometheus"), "usr", "bin", "prometheus")
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	// Prometheus does not report its port, so choose one.
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	_ = free.Close()
	cmd := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--log.level=warn")
	cmd.SysProcAttr = attributes(nil)
	var said tail
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("Prometheus cannot be started: %v", err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cmd.Wait()
	}()
	s := &Server{Name: "Prometheus", URL: "http://" + addr, kill: func() {
		_ = cmd.Process.Kill()
		<-gone
	}}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("Prometheus said last:\n%s", said.String())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	every := time.NewTicker(healthEvery)
	defer every.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/-/ready", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return s
			}
		}
		select {
		case <-every.C:
		case <-gone:
			t.Fatalf("Prometheus ended at once: %s", said.String())
		case <-ctx.Done():
			t.Fatalf("Prometheus is not ready after %s: %s", startWithin, said.String())
		}
	}
}
