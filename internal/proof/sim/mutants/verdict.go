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

// seeds is a range of seeds, for some profiles.
type seeds struct {
	profiles     []string
	first, count int
}

// profilesOf returns the profiles of all mutations, without repetition.
func profilesOf(all []mutation) []string {
	var profiles []string
	for _, m := range all {
		profiles = append(profiles, m.profiles...)
	}
	slices.Sort(profiles)
	return slices.Compact(profiles)
}

// outcome is the result of running the simulation.
type outcome struct {
	out  []byte
	err  error
	late bool // the run was ended because it took too long
}

// verdict reports whether a mutation was detected. how describes how it was detected, or why not.
type verdict struct {
	noticed bool
	how     string
	in      seeds // the seeds that detected it
}

// unless returns the verdict after a run of the unchanged weir with the same seeds. fails is the
// error of that run, or nil.
func (v verdict) unless(fails error) verdict {
	if fails != nil {
		return verdict{how: fmt.Sprintf("FAILED: %s, but the unchanged weir fails too: %v", v.how, fails)}
	}
	return v
}

// verdict returns the verdict of a run. Only three results count as detection: a promise that the
// simulation reports as broken with one of the given seeds, a panic inside weir, and a panic of the
// store that weir does not catch. Any other failure says nothing about weir.
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
	case strings.Contains(crash, "sim: the store panics"): // the simulation causes this panic on purpose
		return verdict{true, "a panic of the store ends the process", some}
	case crash != "":
		return verdict{how: "FAILED: not weir but the simulation panics: " + crash}
	}
	return verdict{how: fmt.Sprintf("FAILED: the simulation names no broken promise of a seed that it was to run: %v\n%s", o.err, o.out)}
}

// clean returns an error unless the simulation ran to its end and broke no promise.
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

// broken returns the first promise that was broken with one of the given seeds, and that seed. It
// returns "" if there is none.
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

// crash returns the text of a panic. ours reports whether the panic was in weir: the innermost
// function of this module in the stack decides.
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
			return what, !strings.HasPrefix(line, module+"/internal/proof/sim") && !strings.HasPrefix(line, module+"/internal/proof/queuesim")
		}
	}
	return what, false
}
