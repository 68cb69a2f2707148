package servers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// OAuth2Proxy starts oauth2-proxy with a configuration. In the configuration, $addr is replaced by
// its address, and $dir by its own folder, which contains the given files.
func OAuth2Proxy(t testing.TB, config string, files map[string]string) *Server {
	t.Helper()
	program := filepath.Join(fetched(t, "oauth2-proxy"), "oauth2-proxy")
	dir, addr := t.TempDir(), freeAddr(t)
	const name = "oauth2-proxy.cfg"
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config = strings.NewReplacer("$addr", addr, "$dir", dir).Replace(config)
	if err := os.WriteFile(filepath.Join(dir, name), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config", name)
	cmd.Dir = dir
	// Its settings can also come from the environment, so limit the environment.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	s := startAt(t, "oauth2-proxy", cmd, addr)
	s.URL = "https://" + addr
	return s
}
