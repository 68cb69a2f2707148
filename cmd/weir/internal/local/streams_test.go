package local

import (
	"fmt"
	"testing"
)

func TestParseStreams(t *testing.T) {
	got, err := parseStreams([]string{"a:4", "b", "c:on-demand"})
	if err != nil || fmt.Sprint(got) != "[{a 4} {b 1} {c 0}]" {
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

func TestParseQueues(t *testing.T) {
	streams := []wantedStream{{"p", 1}, {"o", 0}, {"o2", 0}}
	got, err := parseQueues([]string{"a:o", "b:o2"}, streams)
	if err != nil || len(got) != 2 || got[0].Name != "a" || got[1].Stream != "o2" {
		t.Errorf("%v, %v", got, err)
	}
	var many []string
	for i := range 21 {
		many = append(many, fmt.Sprintf("q%d:o", i))
	}
	for _, list := range [][]string{{""}, {"a"}, {"a:"}, {":o"}, {"a:p"}, {"a:none"}, {"a b:o"}, {"a:o", "a:o2"}, many} {
		if got, err := parseQueues(list, streams); err == nil {
			t.Errorf("%q is %v", list, got)
		}
	}
}
