package main

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

func TestAMisspeltFlagIsRecognised(t *testing.T) {
	for args, want := range map[string]string{
		"consume --steam=s":         "weir: unknown flag: --steam: is it --stream?\n",
		"consume --straem s":        "weir: unknown flag: --straem: is it --stream?\n",
		"consume -stream s":         ": is it --stream?\n",
		"consume --ap=a":            "weir: unknown flag: --ap: is it --app?\n",
		"consume --exec-result":     "weir: unknown flag: --exec-result: is it --exec-results?\n",
		"group describe --sotre=x":  "weir: unknown flag: --sotre: is it --store?\n",
		"consume --bogus":           "weir: unknown flag: --bogus\n",
		"tail --exec cat":           "weir: unknown flag: --exec\n",
		"consume -z":                "weir: unknown shorthand flag: 'z' in -z\n",
		"consume --retry-mix=5s":    "weir: unknown flag: --retry-mix: is it --retry-max or --retry-min?\n",
		"consume --attempts-x-5 -v": "weir: unknown flag: --attempts-x-5\n",
	} {
		_, said := clitest.MustExit(t, cli.ExitUsage, strings.Fields(args)...)
		if !strings.Contains(said, want) {
			t.Errorf("%s: %q, want %q", args, said, want)
		}
	}
}
