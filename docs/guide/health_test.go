package guide

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir/health"
)

// The page lists the reasons exactly as package health has them.
func TestThePageHasTheTableOfReasons(t *testing.T) {
	var want strings.Builder
	want.WriteString("| Activity | Reason | Label | Trouble | What to do if it lasts |\n" +
		"| --- | --- | --- | --- | --- |\n")
	for _, r := range health.Reasons() {
		trouble := "no"
		if r.Trouble() {
			trouble = "yes"
		}
		fmt.Fprintf(&want, "| %s | %s | `%s` | %s | %s |\n",
			r.Activity(), r, r.Label(), trouble, r.Remedy())
	}
	page := strings.ReplaceAll(read(t, "health.md"), "|  |", "| |")
	page = strings.ReplaceAll(page, "|  |", "| |")
	if table := strings.ReplaceAll(want.String(), "|  |", "| |"); !strings.Contains(page, "\n"+table+"\n") {
		t.Errorf("health.md must have this table:\n%s", table)
	}
}

// The page lists the causes exactly as package health has them.
func TestThePageHasTheTableOfCauses(t *testing.T) {
	var want strings.Builder
	want.WriteString("| Cause | Label | Named if |\n| --- | --- | --- |\n")
	for _, c := range health.Causes() {
		fmt.Fprintf(&want, "| %s | `%s` | %s |\n", c, c.Label(), c.When())
	}
	if !strings.Contains(read(t, "health.md"), "\n"+want.String()+"\n") {
		t.Errorf("health.md must have this table:\n%s", want.String())
	}
}
