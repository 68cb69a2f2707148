package main

import (
	"runtime/debug"
	"testing"
)

func TestAListHasWhatWasBuiltIn(t *testing.T) {
	b := listOf("weir", &debug.BuildInfo{
		GoVersion: "go1.26.0", Main: debug.Module{Path: "example.com/weir", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.2.3"},
			{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/c", Version: "v2.0.0"}},
		},
	})
	if m := b.Metadata.Component; m.Name != "weir" || m.Version != "" || m.PURL != "pkg:golang/example.com/weir" {
		t.Errorf("%+v", m)
	}
	for i, want := range []string{"pkg:golang/stdlib@1.26.0", "pkg:golang/example.com/a@v1.2.3", "pkg:golang/example.com/c@v2.0.0"} {
		if len(b.Components) != 3 || b.Components[i].PURL != want {
			t.Errorf("%+v, want %s", b.Components, want)
		}
	}
}
