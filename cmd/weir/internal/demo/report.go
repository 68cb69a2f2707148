package demo

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/weir-go/weir/cmd/weir/internal/figures"
)

// WriteJSON writes the result as one JSON object.
func (r Result) WriteJSON(out io.Writer) error {
	return json.NewEncoder(out).Encode(struct {
		Put             int   `json:"put"`
		Handled         int   `json:"handled"`
		Distinct        int   `json:"distinct"`
		Lost            int   `json:"lost"`
		Duplicates      int   `json:"duplicates"`
		OrderViolations int   `json:"order_violations"`
		Splits          int   `json:"splits"`
		Merges          int   `json:"merges"`
		KillGap         int64 `json:"kill_gap_ms"`
		StopGap         int64 `json:"stop_gap_ms"`
		JoinBalanced    int64 `json:"join_balanced_ms"`
	}{
		r.Put, r.Handled, r.Distinct, r.Lost, r.Duplicates, r.OrderViolations, r.Splits, r.Merges,
		r.Kill.Longest.Milliseconds(), r.Stop.Longest.Milliseconds(), r.JoinBalanced.Milliseconds(),
	})
}

// WriteText writes the result as text for users.
func (r Result) WriteText(out io.Writer) error {
	verdict := "Nothing was lost and no order was broken."
	if !r.Clean() {
		verdict = "weir broke its promise. This should not happen: please report it."
	}
	order := fmt.Sprintf("kept in all %s airports", figures.Count(r.Airports))
	if r.OrderViolations > 0 {
		order = fmt.Sprintf("BROKEN %s times", figures.Count(r.OrderViolations))
	}
	lines := []struct{ name, value, remark string }{
		{"flights put", figures.Count(r.Put), ""},
		{"handled", figures.Count(r.Handled), ""},
		{"distinct", figures.Count(r.Distinct), ""},
		{"lost", figures.Count(r.Lost), ""},
		{"duplicates", figures.Count(r.Duplicates), "again in order: the killed worker had not saved them"},
		{"order", order, ""},
		{"reshaped", fmt.Sprintf("%d split, %d merge", r.Splits, r.Merges), "children were read after parents"},
		{"after the kill", figures.Duration(r.Kill.Longest), "until the last of its shards was read again"},
		{"after the stop", figures.Duration(r.Stop.Longest), "the longest pause inside a shard"},
		{"balanced", figures.Duration(r.JoinBalanced), "after the fourth worker was started"},
	}
	text := "\nThe verdict, from what the handlers wrote:\n\n"
	for _, l := range lines {
		if l.remark == "" || (l.name == "duplicates" && r.Duplicates == 0) {
			text += fmt.Sprintf("  %-16s%s\n", l.name, l.value)
			continue
		}
		text += fmt.Sprintf("  %-16s%-18s%s\n", l.name, l.value, l.remark)
	}
	for _, c := range r.Complaints {
		text += "  ! " + c + "\n"
	}
	text += fmt.Sprintf("\n%s It took %s.\n", verdict, figures.Duration(r.Took))
	if r.Dir != "" {
		text += fmt.Sprintf("The journals, the workers' logs and the leases are kept in %s.\n", r.Dir)
	}
	_, err := io.WriteString(out, text)
	return err
}
