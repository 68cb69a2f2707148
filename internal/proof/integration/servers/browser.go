package servers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Browser returns the path and the environment of a headless Chromium.
func Browser(t testing.TB) (path string, env []string) {
	t.Helper()
	dir := fetched(t, "debian")
	env = environment(t, dir)
	// One library is in a separate folder.
	own, err := filepath.Glob(filepath.Join(dir, "usr/lib/*-linux-gnu*/pulseaudio"))
	if err != nil {
		t.Fatal(err)
	}
	for i, setting := range env {
		if strings.HasPrefix(setting, "LD_LIBRARY_PATH=") {
			env[i] = strings.Join(append([]string{setting}, own...), ":")
		}
	}
	return program(t, dir, "usr/lib/chromium/chromium-headless-shell"), env
}

// Axe returns a script that checks the accessibility of a page in a browser.
func Axe(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(fetched(t, "axe"), "node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
