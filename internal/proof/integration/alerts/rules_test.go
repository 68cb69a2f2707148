// Package alerts_test tests the alerts that weir ships, with Prometheus' own programs.
package alerts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

var shipped = filepath.Join("..", "..", "..", "..", "deploy", "prometheus")

// rules returns the content of the file of alerts.
func rules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(shipped, "weir.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each alert must fire within its time, and end afterwards.
func TestAlertsInVirtualTime(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "weir.rules.yaml"}, {"test", "rules", "weir.rules.test.yaml", "weir.rules.paused.test.yaml"}} {
		cmd := servers.Promtool(t, args...)
		cmd.Dir = shipped
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// The test of the rules must fail if an alert never fires.
func TestAnAlertThatNeverFiresIsFound(t *testing.T) {
	text := rules(t)
	all := regexp.MustCompile(`(?s)- alert: (\w+)\n.*?\n        labels:`).FindAllStringSubmatchIndex(text, -1)
	if len(all) != 12 {
		t.Fatalf("found %d alerts", len(all))
	}
	tests, err := os.ReadFile(filepath.Join(shipped, "weir.rules.test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range all {
		name := text[at[2]:at[3]]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			broken := text[:at[0]] + "- alert: " + name + "\n        expr: vector(0) > 1\n        labels:" + text[at[1]:]
			for file, content := range map[string]string{"weir.rules.yaml": broken, "weir.rules.test.yaml": string(tests)} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := servers.Promtool(t, "test", "rules", "weir.rules.test.yaml")
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), name) {
				t.Errorf("promtool: %v\n%s", err, out)
			}
		})
	}
}

// Each alert must link to a section of the runbook.
func TestEachAlertLeadsToTheRunbook(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(string(page), -1) {
		headings[strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")] = true
	}
	text := rules(t)
	alerts := strings.Split(text, "- alert: ")[1:]
	for _, a := range alerts {
		name, _, _ := strings.Cut(a, "\n")
		m := regexp.MustCompile(`runbook_url: \S+/docs/runbook\.md#(\S+)\n`).FindStringSubmatch(a)
		if m == nil || !headings[m[1]] {
			t.Errorf("%s: %q is no heading of the runbook", name, m)
		}
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the runbook does not name %s", name)
		}
		for _, part := range []string{"severity: ", "summary: ", "description: "} {
			if !strings.Contains(a, part) {
				t.Errorf("%s has no %s", name, part)
			}
		}
	}
}
