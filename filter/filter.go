// Package filter selects the records to handle, with the patterns of Amazon EventBridge that
// Lambda's event source mappings use:
//
//	f, err := filter.Compile(`{"data": {"kind": ["order"], "amount": [{"numeric": [">", 100]}]}}`)
//	…
//	c, err := weir.New(client, store, weir.Options{…, Filter: weir.Filter{By: f}})
//
// A pattern names fields of a record: "data" is its payload, which must be JSON, "partitionKey" its
// key, and "approximateArrivalTimestamp" its arrival time at the service, in seconds since 1970. A
// record must match one of the patterns. It matches a pattern if each field matches one of the
// values in the field's array:
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
//	{"exists": true} {"exists": false}    for a field that is not an object
//	"$or": [{…}, {…}]                     in place of a field: one of several objects
//
// A dotted name, such as "a.b", names the field b of an object a, in patterns and in payloads.
//
// If a record has an array, one of its elements must match. Fields below one array must match in
// one element; a pattern that asks only for absence below it must hold in all elements.
//
// A payload is read once, without decoding it: values that no pattern names are skipped. It is read
// to its end, because the last of several fields with one name counts, and so that invalid JSON is
// always detected.
//
// The rules are those of EventBridge, with these differences from event-ruler, the library that
// Amazon published for its patterns:
//
//   - Compile accepts the two comparisons of numeric in either order; event-ruler refuses < or <=
//     before > or >=.
//   - A pattern that names a field twice, nested and with a dotted name or inside and outside $or,
//     requires both; event-ruler uses the last.
//   - The objects of an array that is the value of a dotted name combine with other dotted names of
//     the same payload object, but not with nested fields; in event-ruler they do.
//   - Names of a record's own fields are not dotted: {"data.a": …} is refused.
//   - The limit for wildcards that are too complex is an example of event-ruler's documentation. It
//     was not verified against the service.
package filter

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Filter is a compiled set of patterns. It is immutable and safe for concurrent use.
type Filter struct {
	patterns []string
	any      []conjunction // one of them must match
	root     *node         // of the payload; nil if no pattern is about it
	nodes    []*node       // of the payload, by ID
	init     []byte        // of all states
}

// conjunction is a set of fields that must all match.
type conjunction struct {
	key, arrival []*values
	data         int // the state of its part of the payload; -1 if it has none
}

// Compile compiles patterns, one of which a record must match. It needs at least one, of at most 64
// KiB each. Lambda's {"Filters": [{"Pattern": "…"}]} stands for all patterns in it. The error names
// each invalid pattern, the location in it, and the remedy.
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
		return nil, fmt.Errorf("filter: the patterns have %d alternatives together, at most %d are allowed", len(all), mostClauses)
	}
	f.build(all)
	return f, nil
}

// MustCompile is [Compile] for patterns that are known to be valid. It panics if they are not.
func MustCompile(patterns ...string) *Filter {
	f, err := Compile(patterns...)
	if err != nil {
		panic(err) //nolint:forbidigo // documented, and the pattern does not come from outside
	}
	return f
}

// String returns the patterns, one per line.
func (f *Filter) String() string { return strings.Join(f.patterns, "\n") }

// Match reports whether a record matches one of the patterns. isJSON is false if the payload is
// needed for the answer and is not JSON as [json.Valid] defines it. Match keeps no reference to its
// arguments, and is safe for concurrent use.
func (f *Filter) Match(data []byte, partitionKey string, arrival time.Time) (matches, isJSON bool) {
	open := false // whether the payload decides a remaining conjunction
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

// metadata reports whether the conditions outside the payload match.
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
