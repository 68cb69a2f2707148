package main

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/health"
)

// allSteps returns the next steps of verdicts on shards with each state and reason.
func allSteps(t *testing.T) map[health.Step]bool {
	t.Helper()
	steps, causes := map[health.Step]bool{}, map[health.Cause]bool{}
	conclude := func(f health.Facts) {
		v := health.Conclude(f)
		causes[v.Cause] = true
		for _, also := range v.Also {
			causes[also] = true
		}
		for _, s := range v.Steps {
			steps[s] = true
		}
	}
	for _, state := range health.States() {
		for _, reason := range append(health.Reasons(), health.NoReason) {
			for _, recent := range []health.Recent{
				{}, {Minutes: 5}, {Minutes: 5, Busy: 95}, {Minutes: 5, Throttled: 50},
			} {
				for _, err := range []string{"", "AccessDeniedException", "ExpiredTokenException", "ResourceNotFoundException", "the service refuses the position 1"} {
					s := health.ShardFacts{Load: -1, Doing: reason, DoingSince: time.Now(), Recent: recent}
					s.Stream, s.Name, s.State, s.Reason, s.Err = "orders", "shardId-000000000003", state, reason, err
					s.ReadLag, s.HandledLag, s.SavedLag, s.Left = health.Unknown, time.Hour, health.Unknown, time.Hour
					f := health.Facts{App: "billing", Now: time.Now(), Workers: 1, Shards: []health.ShardFacts{s}}
					conclude(f)
					f.PausedApp = true
					f.Shards = append(f.Shards, health.ShardFacts{})
					conclude(f)
					f.StoreSilent = f.Now
					conclude(f)
				}
			}
		}
	}
	for _, c := range health.Causes() {
		if !causes[c] {
			t.Errorf("no verdict has the cause %q", c)
		}
	}
	return steps
}

// Each command that a verdict names parses, and each option that it names exists.
func TestNextStepsCanBeTaken(t *testing.T) {
	t.Parallel()
	parses := func(line string) {
		args := strings.Fields(line)[1:]
		cmd, rest, err := newRoot(cli.Terminal{}).Find(args)
		if err != nil || !cmd.Runnable() {
			t.Errorf("%s: %v", line, err)
			return
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("%s: %v", line, err)
		} else if n := cmd.Flags().NArg(); n > 0 {
			t.Errorf("%s has %d arguments", line, n)
		}
	}
	flags := regexp.MustCompile(`weir consume --[a-z-]+(=[\w.-]*\w)?`)
	options := regexp.MustCompile(`\bOptions(\.\w+)+`)
	commands, named := 0, 0
	for s := range allSteps(t) {
		switch program, _, _ := strings.Cut(s.Command, " "); program {
		case "":
		case "weir":
			commands++
			parses(s.Command)
		case "aws":
		default:
			t.Errorf("the command %q", s.Command)
		}
		for _, line := range flags.FindAllString(s.Do, -1) {
			named++
			parses(line)
		}
		for _, path := range options.FindAllString(s.Do, -1) {
			of := reflect.TypeFor[weir.Options]()
			for _, name := range strings.Split(path, ".")[1:] {
				field, there := of.FieldByName(name)
				if !there {
					t.Errorf("%q names %s, which does not exist", s.Do, path)
					break
				}
				of = field.Type
			}
		}
	}
	if commands < 8 || named < 6 {
		t.Errorf("found %d commands and %d flags", commands, named)
	}
}
