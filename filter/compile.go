package filter

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// clause is one alternative of a pattern. All of its conditions must be true.
type clause struct {
	data         []condition
	key, arrival []*values
}

// condition is a condition on a field of the payload. Without values the field must be absent.
type condition struct {
	path   []string
	values *values
}

// place is a location in a pattern, for errors.
type place struct {
	up   *place
	name string
	item int // index in an array, if the name is empty
}

func (p *place) field(name string) *place { return &place{up: p, name: name, item: -1} }
func (p *place) index(i int) *place       { return &place{up: p, item: i} }

// String returns the location as text, such as data.kind[0].prefix.
func (p *place) String() string {
	if p == nil {
		return "the pattern"
	}
	up := ""
	if p.up != nil {
		up = p.up.String()
	}
	if p.item >= 0 {
		return up + "[" + strconv.Itoa(p.item) + "]"
	}
	name := p.name
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`."[]`, r) }) {
		name = strconv.Quote(name)
	}
	if up != "" {
		up += "."
	}
	return up + name
}

// bad returns an error with the place.
func (p *place) bad(format string, args ...any) error {
	return fmt.Errorf("%v: %w", p, fmt.Errorf(format, args...))
}

// compile returns the alternatives and the text of a pattern. If the pattern is in Lambda's form,
// it returns those of all patterns in it.
func compile(pattern string) (all []clause, texts []string, err error) {
	e, err := parse(pattern)
	if err != nil {
		return nil, nil, err
	}
	if len(e.fields) == 1 && e.fields[0].name == "Filters" {
		return compileCriteria(e.fields[0].value)
	}
	all, err = record(e)
	return all, []string{pattern}, err
}

// compileCriteria compiles the patterns of Lambda's FilterCriteria.
func compileCriteria(e element) (all []clause, texts []string, err error) {
	at := (*place)(nil).field("Filters")
	if e.is != anArray || len(e.items) == 0 {
		return nil, nil, at.bad(`it must be an array of objects such as {"Pattern": "…"}`)
	}
	for i, item := range e.items {
		at := at.index(i)
		if item.is != anObject || len(item.fields) != 1 || item.fields[0].name != "Pattern" || item.fields[0].value.is != aString {
			return nil, nil, at.bad(`it must be an object such as {"Pattern": "…"}, the pattern in a string`)
		}
		text := item.fields[0].value.text
		inner, err := parse(text)
		if err != nil {
			return nil, nil, at.field("Pattern").bad("%w", err)
		}
		some, err := record(inner)
		if err != nil {
			return nil, nil, at.field("Pattern").bad("%w", err)
		}
		all, texts = append(all, some...), append(texts, text)
	}
	return all, texts, nil
}

// and returns the alternatives in which both a and b are true.
func and(a, b []clause, at *place) ([]clause, error) {
	if len(a)*len(b) > mostClauses {
		return nil, at.bad("the pattern has more than %d alternatives at this point: $or multiplies the alternatives of the other fields", mostClauses)
	}
	all := make([]clause, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			all = append(all, clause{slices.Concat(x.data, y.data), slices.Concat(x.key, y.key), slices.Concat(x.arrival, y.arrival)})
		}
	}
	return all, nil
}

// fields returns the alternatives of an object whose fields must all match. one compiles a single
// field.
func fields(e element, at *place, one func(name string, e element, at *place) ([]clause, error)) ([]clause, error) {
	if e.is != anObject {
		return nil, at.bad("it is %v and must be an object of fields", e.is)
	}
	if len(e.fields) == 0 {
		return nil, at.bad("it is an object without a field, so it has no effect: remove it, or add a field")
	}
	all := []clause{{}}
	for _, f := range e.fields {
		some, err := either(f, at.field(f.name), one)
		if err != nil {
			return nil, err
		}
		if all, err = and(all, some, at.field(f.name)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// either returns the alternatives of a field. For the operator $or, these are the alternatives of
// all of its objects.
func either(f member, at *place, one func(name string, e element, at *place) ([]clause, error)) (all []clause, err error) {
	if f.name != "$or" || !isOr(f.value) {
		return one(f.name, f.value, at)
	}
	for i, item := range f.value.items {
		some, err := fields(item, at.index(i), one)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	if len(all) > mostClauses {
		return nil, at.bad("it has %d alternatives, at most %d are allowed", len(all), mostClauses)
	}
	return all, nil
}

// isOr reports whether the value of a field $or makes the field an operator. Otherwise it is an
// ordinary field, as in EventBridge.
func isOr(e element) bool {
	if e.is != anArray || len(e.items) < 2 {
		return false
	}
	for _, item := range e.items {
		if item.is != anObject || slices.ContainsFunc(item.fields, func(m member) bool { return slices.Contains(operators, m.name) }) {
			return false
		}
	}
	return true
}

// record compiles a pattern of a record.
func record(e element) ([]clause, error) {
	all, err := fields(e, nil, func(name string, e element, at *place) ([]clause, error) {
		switch name {
		case "data":
			if e.is != anObject {
				return nil, at.bad("it is %v and must be an object with fields of the payload, which must be JSON", e.is)
			}
			return payload(e, at, nil)
		case "partitionKey":
			return attribute(e, at, func(v *values) clause { return clause{key: []*values{v}} })
		case "approximateArrivalTimestamp":
			return attribute(e, at, func(v *values) clause { return clause{arrival: []*values{v}} })
		}
		return nil, at.bad(`there is no such field; a record has "data", "partitionKey" and "approximateArrivalTimestamp"`)
	})
	if err != nil {
		return nil, err
	}
	return all, checkWildcards(all)
}

// payload compiles a pattern of an object in the payload. Each part of a dotted name is one level.
func payload(e element, at *place, path []string) ([]clause, error) {
	return fields(e, at, func(name string, e element, at *place) ([]clause, error) {
		path := slices.Concat(path, strings.Split(name, "."))
		if len(path) > mostLevels {
			return nil, at.bad("it is more than %d levels deep", mostLevels)
		}
		if e.is == anObject {
			return payload(e, at, path)
		}
		v, absent, err := leaf(e, at)
		if err != nil {
			return nil, err
		}
		var all []clause
		if v != nil {
			all = append(all, clause{data: []condition{{path, v}}})
		}
		if absent {
			all = append(all, clause{data: []condition{{path, nil}}})
		}
		return all, nil
	})
}

// attribute compiles the values of a field that every record has.
func attribute(e element, at *place, of func(*values) clause) ([]clause, error) {
	v, absent, err := leaf(e, at)
	switch {
	case err != nil:
		return nil, err
	case absent:
		return nil, at.bad(`{"exists": false} never matches, because each record has it`)
	}
	return []clause{of(v)}, nil
}

// leaf compiles the array of a field's values. absent is true if the field may also be absent. v is
// nil if the field must be absent.
func leaf(e element, at *place) (v *values, absent bool, err error) {
	if e.is != anArray {
		return nil, false, at.bad("it is %v; the values of a field must be in an array, such as [\"x\"]", e.is)
	}
	if len(e.items) == 0 {
		return nil, false, at.bad("its array is empty, so it would never match")
	}
	v = &values{}
	some := false
	for i, item := range e.items {
		gone := false
		switch at := at.index(i); item.is {
		case anArray:
			err = at.bad("it is an array in an array; put the values into one array")
		case anObject:
			gone, err = v.operator(item, at)
		default:
			v.equal(item)
		}
		if err != nil {
			return nil, false, err
		}
		absent = absent || gone
		some = some || !gone
	}
	if !some {
		return nil, true, nil
	}
	v.many = nil
	if len(v.texts) > fewTexts {
		v.many = map[string]struct{}{}
		for _, s := range v.texts {
			v.many[s] = struct{}{}
		}
		v.texts = nil
	}
	return v, absent, nil
}

// equal adds a value that the field may have.
func (v *values) equal(e element) {
	switch e.is {
	case aString:
		v.texts = append(v.texts, e.text)
	case aNumber:
		if n, ok := comparable(unsafeBytes(e.text)); ok {
			v.numbers = append(v.numbers, n)
		}
		if n, err := strconv.ParseFloat(e.text, 64); err == nil {
			v.instants = append(v.instants, n)
		}
		v.literals = append(v.literals, e.text)
	default:
		v.literals = append(v.literals, e.text)
	}
}

func numberOf(e element, at *place) (float64, error) {
	n, ok := comparable(unsafeBytes(e.text))
	if !ok {
		return 0, at.bad("%.40s is not a number in double precision", e.text)
	}
	return n, nil
}
