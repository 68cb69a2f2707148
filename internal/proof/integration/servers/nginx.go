package servers

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Nginx starts nginx with the inside of a server block, and returns where it listens. $dir in it is
// a folder of its own, which has the given files.
func Nginx(t testing.TB, block string, files map[string]string) *Server {
	t.Helper()
	program := filepath.Join(fetched(t, "nginx"), "usr", "sbin", "nginx")
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	addr := freeAddr(t)
	config := `daemon off;
master_process off;
pid $dir/nginx.pid;
error_log stderr warn;
events { worker_connections 64; }
http {
	access_log off;
	client_body_temp_path $dir/body;
	proxy_temp_path $dir/proxy;
	fastcgi_temp_path $dir/fastcgi;
	uwsgi_temp_path $dir/uwsgi;
	scgi_temp_path $dir/scgi;
	server {
		listen ` + addr + `;
` + block + `
	}
}
`
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(config, "$dir", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-e", "stderr", "-p", dir, "-c", file)
	cmd.SysProcAttr = attributes(nil)
	var said tail
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("nginx cannot be started: %v", err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cmd.Wait()
	}()
	s := &Server{Name: "nginx", URL: "http://" + addr, kill: func() {
		_ = cmd.Process.Kill()
		<-gone
	}}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("nginx said last:\n%s", said.String())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	every := time.NewTicker(healthEvery)
	defer every.Stop()
	for {
		if c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr); err == nil {
			_ = c.Close()
			return s
		}
		select {
		case <-every.C:
		case <-gone:
			t.Fatalf("nginx ended at once: %s", said.String())
		case <-ctx.Done():
			t.Fatalf("nginx does not listen after %s: %s", startWithin, said.String())
		}
	}
}
