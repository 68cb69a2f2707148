package local

import (
	"fmt"
	"testing"
)

func TestParseStreams(t *testing.T) {
	got, err := parseStreams([]string{"a:4", "b"})
	if err != nil || fmt.Sprint(got) != "[{a 4} {b 1}]" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parseStreams([]string{"a:1", "b", "a:2"}); err == nil || err.Error() != "--stream names a twice" {
		t.Errorf("a stream that is named twice: %v", err)
	}
	for _, s := range []string{"", ":4", "a:", "a:0", "a:-1", "a:x", "a:10001", "a b:1", "a:1:1"} {
		if got, err := parseStreams([]string{s}); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}
