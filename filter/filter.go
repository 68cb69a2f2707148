// Package filter decides which records are handled, by patterns of Amazon EventBridge, as Lambda's
// event source mappings have them:
//
//	f, err := filter.Compile(`{"data": {"kind": ["order"], "amount": [{"numeric": [">", 100]}]}}`)
//	…
//	c, err := weir.New(client, store, weir.Options{…, Filter: weir.Filter{By: f}})
//
// A pattern names fields of a record: "data" is its payload, which has to be JSON, "partitionKey"
// its key, and "approximateArrivalTimestamp" when the service took it, in seconds since 1970. A
// record has to match one of the patterns; of a pattern all fields have to match, and of a field
// one of the values in its array:
//
//	"x" 5 true null                       equal; numbers by value, so 5 is 5.0
//	{"equals-ignore-case": "x"}
//	{"prefix": "x"} {"suffix": "x"}       also with {"equals-ignore-case": "x"} in place of "x"
//	{"wildcard": "a*b"}                   * is anything; \* and \\ are * and \ themselves
//	{"anything-but": …}                   a string or a number, or an array of them; also an object
//	                                      of prefix, suffix, wildcard or equals-ignore-case with a
//	                                      string or an array of them
//	{"numeric": [">", 0, "<=", 5]}        also =, <, >=; as numbers of double precision
//	{"cidr": "10.0.0.0/8"}                an IP address in a string
//	{"exists": true} {"exists": false}    of a field that is no object
//	"$or": [{…}, {…}]                     in place of a field: one of several objects
//
// Where a record has an array, one of its elements has to match. Fields below one array have to
// match in one element; a pattern that asks below it for nothing but absence, in all of them.
//
// A payload is read once, without decoding it: values that no pattern names are only passed over.
// It is read to its end, because of fields that come twice the last counts, and so that what is no
// JSON is always told from what is.
package filter

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Filter is a compiled set of patterns. It is safe for concurrent use, and never changes.
type Filter struct {
	patterns []string
	any      []conjunction // of which one has to match
	root     *node         // of the payload; nil if no pattern is about that
	nodes    []*node       // of the payload, by ID
	init     []byte        // of all states
}

// conjunction is fields of a record that all have to match.
type conjunction struct {
	key, arrival []*values
	data         int // the state of its part of the payload; -1 if it has none
}

// Compile compiles patterns, of which a record has to match one. At least one is required, each of
// 64 KiB at most. Lambda's {"Filters": [{"Pattern": "…"}]} stands for all patterns that are in it.
// The error names each pattern that is wrong, the place in it, and what to do.
func Compile(patterns ...string) (*Filter, error) {
	if len(patterns) == 0 {
		return nil, errors.New("filter: no pattern is given")
	}
	f := &Filter{}
	var problems []error
	var all []clause
	for i, text := range patterns {
		some, inner, err := compile(text)
		if err != nil {
			of := ""
			if len(patterns) > 1 {
				of = fmt.Sprintf("pattern %d: ", i+1)
			}
			problems = append(problems, fmt.Errorf("filter: %s%w", of, err))
			continue
		}
		all = append(all, some...)
		f.patterns = append(f.patterns, inner...)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if len(all) > mostClauses {
		return nil, fmt.Errorf("filter: the patterns come to %d alternatives together, at most %d are allowed", len(all), mostClauses)
	}
	f.build(all)
	return f, nil
}

// MustCompile is [Compile] for patterns that are known to be right. It panics if they are not.
func MustCompile(patterns ...string) *Filter {
	f, err := Compile(patterns...)
	if err != nil {
		panic(err) //nolint:forbidigo // it says so, and no data from outside comes here
	}
	return f
}

// String returns the patterns, one a line.
func (f *Filter) String() string { return strings.Join(f.patterns, "\n") }

// Match reports whether a record matches one of the patterns. isJSON is false if that cannot be
// told because the payload, which has to be looked at for it, is not JSON as [json.Valid] has it.
// It keeps nothing, and is safe for concurrent use.
func (f *Filter) Match(data []byte, partitionKey string, arrival time.Time) (matches, isJSON bool) {
	open := false // whether a conjunction is left that the payload decides
	for i := range f.any {
		if c := &f.any[i]; c.metadata(partitionKey, arrival) {
			if c.data < 0 {
				return true, true
			}
			open = true
		}
	}
	if !open {
		return false, true
	}
	m := machines.Get().(*machine)
	defer m.release()
	if !m.walk(f, data) {
		return false, false
	}
	for i := range f.any {
		if c := &f.any[i]; c.data >= 0 && m.state[c.data] != 0 && c.metadata(partitionKey, arrival) {
			return true, true
		}
	}
	return false, true
}

// metadata reports whether what does not concern the payload matches.
func (c *conjunction) metadata(key string, arrival time.Time) bool {
	for _, v := range c.key {
		if !v.match(value{kind: text, bytes: unsafeBytes(key)}) {
			return false
		}
	}
	if len(c.arrival) > 0 {
		at := float64(arrival.UnixMilli()) / 1000
		for _, v := range c.arrival {
			if !v.match(value{kind: instant, number: at}) {
				return false
			}
		}
	}
	return true
}

var machines = sync.Pool{New: func() any { return new(machine) }}
