package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// seeds are so many of each of some profiles, from the first on.
type seeds struct {
	profiles     []string
	first, count int
}

// profilesOf are those of all mutations, each once.
func profilesOf(all []mutation) []string {
	var profiles []string
	for _, m := range all {
		profiles = append(profiles, m.profiles...)
	}
	slices.Sort(profiles)
	return slices.Compact(profiles)
}

// outcome is what running the simulation came to.
type outcome struct {
	out  []byte
	err  error
	late bool // it was ended for taking too long
}

// verdict says whether a mutation was noticed, and how, or why not.
type verdict struct {
	noticed bool
	how     string
	in      seeds // where it was noticed
}

// unless takes in whether weir as it is fails in the same seeds.
func (v verdict) unless(fails error) verdict {
	if fails != nil {
		return verdict{how: fmt.Sprintf("FAILED: %s, but so does weir as it is: %v", v.how, fails)}
	}
	return v
}

// verdict is noticed only by what the simulation is for, a promise that it names as broken in one
// of the seeds that it was to run, and by a panic inside weir. Whatever else makes it fail says
// nothing about weir.
func (o outcome) verdict(some seeds, breaks string) verdict {
	promise, in := o.broken(some)
	crash, ours := o.crash()
	switch {
	case promise != "":
		return verdict{true, promise, in}
	case o.late:
		return verdict{how: "NOT NOTICED, it takes too long: " + breaks}
	case o.err == nil:
		return verdict{how: "NOT NOTICED: " + breaks}
	case crash != "" && ours:
		return verdict{true, "weir panics: " + crash, some}
	case strings.Contains(crash, "sim: the store panics"): // which the simulation does on purpose
		return verdict{true, "a panic of the store ends the process", some}
	case crash != "":
		return verdict{how: "FAILED: not weir but the simulation panics: " + crash}
	}
	return verdict{how: fmt.Sprintf("FAILED: the simulation names no broken promise of a seed that it was to run: %v\n%s", o.err, o.out)}
}

// clean fails unless the simulation ran to its end and no promise was broken.
func (o outcome) clean(some seeds) error {
	promise, _ := o.broken(some)
	switch {
	case promise != "":
		return fmt.Errorf("a promise is broken: %s", promise)
	case o.late:
		return errors.New("it takes too long")
	case o.err != nil:
		return fmt.Errorf("%w\n%s", o.err, o.out)
	}
	for _, p := range some.profiles {
		if !bytes.Contains(o.out, fmt.Appendf(nil, "\n%-14s %4d seeds ", p, some.count)) {
			return fmt.Errorf("the simulation does not say that it ran %d seeds of %s\n%s", some.count, p, o.out)
		}
	}
	return nil
}

var wrong = regexp.MustCompile(`(?m)profile ([\w-]+), seed (\d+): (.+)$`)

// broken returns the first broken promise of the seeds that were to run, and the seed; an empty
// text without one.
func (o outcome) broken(some seeds) (promise string, in seeds) {
	for _, found := range wrong.FindAllSubmatch(o.out, -1) {
		profile := string(found[1])
		seed, err := strconv.Atoi(string(found[2]))
		if err == nil && seed >= some.first && seed < some.first+some.count && slices.Contains(some.profiles, profile) {
			return fmt.Sprintf("%s, seed %d: %.200s", profile, seed, found[3]), seeds{[]string{profile}, seed, 1}
		}
	}
	return "", seeds{}
}

const module = "github.com/weir-go/weir"

// crash returns what the process panicked with, and whether that was in weir: of the functions that
// the panic went through, the innermost that is of this module tells.
func (o outcome) crash() (what string, ours bool) {
	for line := range strings.Lines(string(o.out)) {
		line = strings.TrimSpace(line)
		switch {
		case what == "" && (strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")):
			what = line
			if strings.HasPrefix(line, "panic: test timed out") || strings.HasPrefix(line, "panic: deadlock: ") {
				return what, false
			}
		case what != "" && strings.HasPrefix(line, module):
			return what, !strings.HasPrefix(line, module+"/internal/proof/sim")
		}
	}
	return what, false
}
