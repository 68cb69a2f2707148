package servers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Nginx starts nginx with the given content of a server block. In the block, $dir is replaced by
// nginx's own folder, which contains the given files.
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
	s := startAt(t, "nginx", exec.Command(program, "-e", "stderr", "-p", dir, "-c", file), addr)
	s.URL = "http://" + addr
	return s
}
