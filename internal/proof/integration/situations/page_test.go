package situations_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/health"
)

const heading = `# Situations

What goes wrong with applications, and what the tools say about it. A test creates each situation with
real processes: ` + "`weir local`" + ` or a proxy in front of it that fails, a store, workers, the page, the
exporter and Prometheus. ` + "`make situations`" + ` runs it. For each situation, the test compares the page,
` + "`weir group describe`, `weir doctor`, `/lag.json` and `/metrics`" + ` of the exporter, ` + "`/livez`" + ` and the log of the
workers with this table, and runs the commands of the next steps.

State, cause and next steps are those of the [verdict](health.md#verdict). The alerts are those of
` + "`deploy/prometheus`" + ` that fire if the situation lasts for an hour; the [runbook](../runbook.md)
describes them. The test divides their times by 20.

| Situation | How the test creates it | State | Cause | First next step | Alerts |
| --- | --- | --- | --- | --- | --- |
`

// written returns the page about the situations.
func written(all []situation) string {
	var b strings.Builder
	b.WriteString(heading)
	for i := range all {
		of := &all[i]
		cause, step, alerts := "none", "none", "none"
		if of.cause != health.NoCause {
			cause = of.cause.String()
		}
		if len(of.steps) > 0 {
			step = cmp.Or(of.shown, of.steps[0])
			if do, command, found := strings.Cut(step, ": "); found && strings.HasPrefix(command, "weir ") || strings.HasPrefix(command, "aws ") {
				step = do + ": `" + command + "`"
			}
		}
		if len(of.alerts) > 0 {
			alerts = "`" + strings.Join(of.alerts, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s | %s | %s |\n", of.name, strings.ReplaceAll(strings.ToLower(of.name), " ", "-"), of.made, of.state, cause, step, alerts)
	}
	b.WriteString("\nThe pictures show the page of each application.\n")
	for i := range all {
		fmt.Fprintf(&b, "\n## %s\n\n![The page of the application %s](situations/%s.png)\n", strings.ToUpper(all[i].name[:1])+all[i].name[1:], all[i].app, all[i].app)
	}
	return b.String()
}

// most is the maximum size of all pictures.
const most = 700 << 10

// The page has the table of situations, and a picture of each.
func TestThePageHasEachSituation(t *testing.T) {
	all := situations()
	if *update {
		t.Skip("TestSituations writes it")
	}
	checkPage(t, all)
}

// checkPage compares the page with the table. With -update it writes the page.
func checkPage(t *testing.T, all []situation) {
	t.Helper()
	file := filepath.Join(filepath.Dir(pictures), "situations.md")
	if *update {
		if err := os.WriteFile(file, []byte(written(all)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != written(all) {
		t.Errorf("%s differs from the table: run make situations SITUATIONS=-update", file)
	}
	there, err := os.ReadDir(pictures)
	if err != nil {
		t.Fatal(err)
	}
	names, size := map[string]bool{}, int64(0)
	for _, f := range there {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		names[f.Name()] = true
		if size += info.Size(); info.Size() > heavy {
			t.Errorf("%s has %d bytes", f.Name(), info.Size())
		}
	}
	for i := range all {
		of := &all[i]
		if !names[of.app+".png"] {
			t.Errorf("there is no picture of %s", of.app)
		}
		if of.shown != "" && !strings.HasPrefix(plain(of.shown, ""), of.steps[0]) {
			t.Errorf("%s: %q does not begin with %q", of.app, of.shown, of.steps[0])
		}
	}
	if len(names) != len(all) || size > most {
		t.Errorf("%d pictures of %d situations, with %d bytes", len(names), len(all), size)
	}
}
