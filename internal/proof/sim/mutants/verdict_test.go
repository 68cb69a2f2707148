package main

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

var errExit = errors.New("exit status 1")

func TestWhatCountsAsNoticed(t *testing.T) {
	const (
		began   = "simulations from seed 1\n--- FAIL: TestSimulations (1.00s)\n"
		frames  = "\ngoroutine 7 [running]:\npanic({0x1, 0x2})\n\t/go/src/runtime/panic.go:1 +0x1\n"
		inWeir  = module + "/internal/group.(*Term).Check(0x1)\n\t/x/term.go:1 +0x1\n"
		inCheck = module + "/internal/proof/sim/judge.(*Judge).Step(0x1)\n\t/x/judge.go:1 +0x1\n"
	)
	some := seeds{[]string{"latest-brief", "store"}, 1, 60}
	for _, c := range []struct {
		name    string
		out     string
		err     error
		late    bool
		noticed bool
		how     string
	}{
		{"a broken promise", began + "    sim_test.go:1: profile store, seed 7: a record is lost\n", errExit, false, true, "store, seed 7: a record is lost"},
		{"… of a profile of two words", began + "    profile latest-brief, seed 60: two trust 1\n", errExit, false, true, "latest-brief, seed 60: two trust 1"},
		{"… of a profile that was not to run", began + "    profile calm, seed 7: a record is lost\n", errExit, false, false, "names no broken promise"},
		{"… of one whose name only begins so", began + "    profile store-brief, seed 7: a record is lost\n", errExit, false, false, "names no broken promise"},
		{"… of a seed that was not to run", began + "    profile store, seed 61: a record is lost\n", errExit, false, false, "names no broken promise"},
		{"… of no seed", began + "    profile store, seed 0: a record is lost\n", errExit, false, false, "names no broken promise"},
		{"… and then it hangs", "    profile store, seed 7: a record is lost\n", errExit, true, true, "store, seed 7"},
		{"none", "simulations from seed 1\nok\n", nil, false, false, "NOT NOTICED"},
		{"it hangs", "simulations from seed 1\n", errors.New("signal: killed"), true, false, "takes too long"},
		{"it fails without a word", began, errExit, false, false, "names no broken promise"},
		{"a fault never happened", began + "    profile store: \"apply breaks\" never happened\n", errExit, false, false, "names no broken promise"},
		{"it cannot be started", "", errors.New("no such file"), false, false, "no such file"},
		{"it leaves a goroutine behind", "PASS\nleaked: 1 goroutine\n", errExit, false, false, "names no broken promise"},
		{"weir panics", "panic: nil map\n" + frames + inWeir + inCheck, errExit, false, true, "weir panics: panic: nil map"},
		{"weir cannot go on", "fatal error: concurrent map writes\n" + frames + inWeir, errExit, false, true, "weir panics: fatal error"},
		{"the simulation panics", "panic: nil map\n" + frames + inCheck + inWeir, errExit, false, false, "not weir but the simulation panics"},
		{"weir lets a panic of the store through", "panic: sim: the store panics\n" + frames + inCheck + inWeir, errExit, false, true, "a panic of the store ends the process"},
		{"its own test panics", "panic: no profile\n" + frames + module + "/internal/proof/sim.Run(0x1)\n", errExit, false, false, "not weir but the simulation panics"},
		{"nobody knows who panics", "panic: nil map\n" + frames, errExit, false, false, "not weir but the simulation panics"},
		{"the tests took too long", "panic: test timed out after 10m0s\n" + frames + inWeir, errExit, false, false, "not weir but the simulation panics"},
		{"all wait for each other", "panic: deadlock: all goroutines in bubble are blocked\n" + frames + inWeir, errExit, false, false, "not weir but the simulation panics"},
		{"a handler's panic that was told of, in a log", "handler failed: panic: of the handler\n" + frames + inWeir, errExit, false, false, "names no broken promise"},
	} {
		got := outcome{[]byte(c.out), c.err, c.late}.verdict(some, "It breaks.")
		if got.noticed != c.noticed || !strings.Contains(got.how, c.how) {
			t.Errorf("%s: %+v, want %t, %q", c.name, got, c.noticed, c.how)
		}
		if again := got.unless(errors.New("store, seed 7 too")); again.noticed || c.noticed && !strings.Contains(again.how, "the unchanged weir fails too: store, seed 7 too") {
			t.Errorf("%s, and weir as it is fails too: %+v", c.name, again)
		}
		if same := got.unless(nil); !reflect.DeepEqual(same, got) {
			t.Errorf("%s, and weir as it is does not fail: %+v", c.name, same)
		}
	}
}

// The unchanged weir must keep its promises with the seed that detects a mutation. The output of a
// panic contains no seed. In that case weir must keep its promises with all seeds.
func TestWhereAMutationIsNoticed(t *testing.T) {
	some := seeds{[]string{"latest-brief", "store"}, 1, 60}
	for out, want := range map[string]seeds{
		"profile store, seed 61: no\nprofile latest-brief, seed 9: a\nprofile store, seed 7: b\n": {[]string{"latest-brief"}, 9, 1},
		"panic: nil map\n" + module + ".x(0x1)\n":                                                 some,
	} {
		if got := (outcome{[]byte(out), errExit, false}).verdict(some, ""); !got.noticed || !reflect.DeepEqual(got.in, want) {
			t.Errorf("%q: %+v, want %+v", out, got, want)
		}
	}
}

func TestWeirAsItIsHasToBeClean(t *testing.T) {
	ran := "simulations from seed 1\nlatest-brief     60 seeds       1.0 worker hours\nstore            60 seeds       1.0 worker hours\nPASS\n"
	some := seeds{[]string{"latest-brief", "store"}, 1, 60}
	for _, c := range []struct {
		name string
		o    outcome
		want string
	}{
		{"clean", outcome{[]byte(ran), nil, false}, ""},
		{"a promise is broken", outcome{[]byte(ran + "profile store, seed 7: a record is lost\n"), errExit, false}, "store, seed 7: a record is lost"},
		{"it fails otherwise", outcome{[]byte(ran), errExit, false}, "exit status 1"},
		{"it takes too long", outcome{[]byte(ran), errExit, true}, "too long"},
		{"a profile did not run", outcome{[]byte(strings.Replace(ran, "latest-brief", "late", 1)), nil, false}, "60 seeds of latest-brief"},
		{"a profile ran fewer seeds", outcome{[]byte(strings.Replace(ran, "  60", "   6", 1)), nil, false}, "60 seeds of latest-brief"},
		{"nothing ran", outcome{[]byte("PASS\n"), nil, false}, "does not say that it ran"},
	} {
		err := c.o.clean(some)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestProfilesOfAllMutations(t *testing.T) {
	got := profilesOf([]mutation{{profiles: []string{"store", "calm"}}, {profiles: []string{"latest-brief", "store"}}})
	if want := []string{"calm", "latest-brief", "store"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
