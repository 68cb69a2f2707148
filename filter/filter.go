// Package filter selects the records to handle. It uses the patterns of Amazon EventBridge, as
// Lambda's event source mappings do:
//
//	f, err := filter.Compile(`{"data": {"kind": ["order"], "amount": [{"numeric": [">", 100]}]}}`)
//	…
//	c, err := weir.New(client, store, weir.Options{…, Filter: weir.Filter{By: f}})
//
// A pattern contains fields of a record. "data" is the payload, which must be JSON. "partitionKey"
// is the partition key. "approximateArrivalTimestamp" is the arrival time in Kinesis, in seconds
// since 1970. A record must match one of the patterns. It matches a pattern if each field of the
// pattern matches one of the values in the field's array:
//
//	"x" 5 true null                       equal; numbers by value, so 5 is 5.0
//	{"equals-ignore-case": "x"}
//	{"prefix": "x"} {"suffix": "x"}       also with {"equals-ignore-case": "x"} in place of "x"
//	{"wildcard": "a*b"}                   * matches any text; \* and \\ match * and \
//	{"anything-but": …}                   a string or a number, or an array of them; also an object
//	                                      of prefix, suffix, wildcard or equals-ignore-case with a
//	                                      string or an array of them
//	{"numeric": [">", 0, "<=", 5]}        also =, <, >=; as numbers of double precision
//	{"cidr": "10.0.0.0/8"}                an IP address in a string
//	{"exists": true} {"exists": false}    for a field that is not an object
//	"$or": [{…}, {…}]                     in place of a field: one of several objects
//
// A dotted name, such as "a.b", is the field b of an object a, in patterns and in payloads.
//
// If a field of a record is an array, one of its elements must match. Fields below the same array
// must match in the same element. A pattern that only requires absent fields below an array must be
// true for all elements.
//
// A payload is not decoded. It is read once, or twice if it contains dotted names of fields of the
// patterns. Values that no pattern contains are skipped. The payload is read to its end. One reason
// is that the last of several fields with the same name counts. The other is that invalid JSON is
// then always detected.
//
// The rules are those of EventBridge. They differ as follows from event-ruler, the library that
// Amazon published for its patterns:
//
//   - Compile accepts the two comparisons of numeric in either order. event-ruler rejects < or <=
//     before > or >=.
//   - A pattern may contain a field twice: nested and with a dotted name, or inside and outside
//     $or. Both conditions must then be true. event-ruler uses the last one.
//   - If the value of a dotted name is an array, its objects are combined with other dotted names
//     of the same payload object, but not with nested fields. event-ruler combines them with nested
//     fields, too.
//   - Names of a record's own fields are not dotted: {"data.a": …} is rejected.
//   - The limit for complex wildcards is an example in event-ruler's documentation. It was not
//     verified against the service.
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
	root     *node         // of the payload; nil if no pattern has conditions on it
	nodes    []*node       // of the payload, by ID
	init     []byte        // the initial states of all entries
}

// conjunction is a set of fields that must all match.
type conjunction struct {
	key, arrival []*values
	data         int // the state of its part of the payload; -1 if it has none
}

// Compile compiles patterns. A record must match one of them. At least one pattern is required, and
// each may have at most 64 KiB. Lambda's {"Filters": [{"Pattern": "…"}]} stands for all patterns in
// it. The error contains each invalid pattern, the location of the problem, and the solution.
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

// MustCompile is like [Compile], but panics if a pattern is invalid.
func MustCompile(patterns ...string) *Filter {
	f, err := Compile(patterns...)
	if err != nil {
		panic(err) //nolint:forbidigo // documented, and the pattern does not come from outside
	}
	return f
}

// String returns the patterns, one per line.
func (f *Filter) String() string { return strings.Join(f.patterns, "\n") }

// Match reports whether a record matches one of the patterns. isJSON is false if the answer depends
// on the payload and the payload is not JSON according to [json.Valid]. Match keeps no reference to
// its arguments, and is safe for concurrent use.
func (f *Filter) Match(data []byte, partitionKey string, arrival time.Time) (matches, isJSON bool) {
	open := false // the payload decides at least one conjunction
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
