package main

import (
	"slices"
	"testing"
)

func TestWhatAModuleHas(t *testing.T) {
	files := []string{"LICENSE", "a.go", "cmd/weir/go.mod", "cmd/weir/main.go", "cmd/weird.go", "go.mod", "lease/l.go", "sink/s3sink/go.mod", "sink/s3sink/s.go", "store/redisstore/LICENSE", "store/redisstore/go.mod"}
	for dir, want := range map[string][]string{
		".":                {"LICENSE", "a.go", "cmd/weird.go", "go.mod", "lease/l.go"},
		"cmd/weir":         {"go.mod", "main.go", "LICENSE"},
		"store/redisstore": {"LICENSE", "go.mod"},
		"sink/s3sink":      {"go.mod", "s.go", "LICENSE"},
	} {
		var got []string
		for _, f := range of(dir, files) {
			got = append(got, f.to)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}
