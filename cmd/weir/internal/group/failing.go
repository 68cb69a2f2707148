package group

import (
	"fmt"
	"strings"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

// failingInfo describes a handler that keeps failing, or records that were dead-lettered.
type failingInfo struct {
	At       string `json:"at,omitempty"`       // position after the failing record
	KeyHash  string `json:"key_hash,omitempty"` // first 8 hex digits of the SHA-256 of its partition key
	Records  int    `json:"records,omitempty"`  // number of records that may be the cause; At is the first of them
	Attempts int    `json:"attempts,omitempty"`
	Held     string `json:"held,omitempty"` // why the record is not dead-lettered: patience or rate
	Letters  bool   `json:"letters_fail,omitempty"`
	GivenUp  int    `json:"given_up,omitempty"` // records of the shard that were recently dead-lettered
}

func failingOf(f lease.Failing) *failingInfo {
	if f == (lease.Failing{}) {
		return nil
	}
	info := failingInfo(f)
	return &info
}

// String returns a text in parentheses with a leading space. It returns "" if there is nothing to
// describe.
func (f *failingInfo) String() string {
	if f == nil {
		return ""
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case f.At == "":
	case f.Records > 1:
		add("%s from %s on", cli.Count(f.Records, "record"), f.At)
	default:
		add("record %s", f.At)
	}
	if f.KeyHash != "" {
		add("hash of its key %s", f.KeyHash)
	}
	if f.Attempts > 0 {
		add("%s failed", cli.Count(f.Attempts, "call"))
	}
	switch why := health.ReportedReason(f.Held); why { // the others have words
	case health.NoReason:
	case health.OtherReason:
		add("not dead-lettered yet: %s", f.Held)
	default:
		add("not dead-lettered yet, because %s", why)
	}
	if f.GivenUp > 0 {
		add("%s dead-lettered lately", cli.Count(f.GivenUp, "record"))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
