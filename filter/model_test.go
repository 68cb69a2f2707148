package filter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The model decodes the pattern and the document and compares them. It is slow and close to the
// documentation.

// decoded returns s decoded by encoding/json, with numbers as text.
func decoded(s []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more follows: %w", err)
	}
	return v, nil
}

// want is the tree of conditions of one alternative.
type want struct {
	leaves []any // values, one of which must match, or absent{}
	fields map[string]*want
}

type absent struct{}

// demand is one condition: a path, and an array of values or absent{}.
type demand struct {
	path string // with a zero byte before each name
	leaf any
}

// modelOf returns the alternatives of an object of a pattern. Each is a list of demands that must
// all be met.
func modelOf(pattern map[string]any, path string) [][]demand {
	all := [][]demand{nil}
	for name, v := range pattern {
		nested := strings.ReplaceAll(name, ".", "\x00")
		var some [][]demand
		if or, is := v.([]any); name == "$or" && is && modelIsOr(or) {
			for _, item := range or {
				some = append(some, modelOf(item.(map[string]any), path)...)
			}
		} else if object, is := v.(map[string]any); is {
			some = modelOf(object, path+"\x00"+nested)
		} else {
			var values []any
			for _, x := range v.([]any) {
				if op, is := x.(map[string]any); is && op["exists"] == false {
					some = append(some, []demand{{path + "\x00" + nested, absent{}}})
				} else {
					values = append(values, x)
				}
			}
			if len(values) > 0 {
				some = append(some, []demand{{path + "\x00" + nested, values}})
			}
		}
		var next [][]demand
		for _, a := range all {
			for _, b := range some {
				next = append(next, slices.Concat(a, b))
			}
		}
		all = next
	}
	return all
}

func modelIsOr(or []any) bool {
	reserved := regexp.MustCompile(`^(anything-but|cidr|equals-ignore-case|exists|numeric|prefix|suffix|wildcard)$`)
	for _, item := range or {
		object, is := item.(map[string]any)
		if !is {
			return false
		}
		for name := range object {
			if reserved.MatchString(name) {
				return false
			}
		}
	}
	return len(or) >= 2
}

// modelMatches reports whether a document matches a pattern of data.
func modelMatches(pattern map[string]any, document any) bool {
	for _, demands := range modelOf(pattern, "") {
		tree := &want{}
		for _, d := range demands {
			w := tree
			for _, name := range strings.Split(d.path, "\x00")[1:] {
				if w.fields == nil {
					w.fields = map[string]*want{}
				}
				if w.fields[name] == nil {
					w.fields[name] = &want{}
				}
				w = w.fields[name]
			}
			w.leaves = append(w.leaves, d.leaf)
		}
		if tree.in(document, true, &overlay{}) {
			return true
		}
	}
	return false
}

// absences reports whether the tree only requires absent fields.
func (w *want) absences() bool {
	for _, l := range w.leaves {
		if _, is := l.(absent); !is {
			return false
		}
	}
	for _, f := range w.fields {
		if !f.absences() {
			return false
		}
	}
	return true
}

// scalars returns the scalars in a value and its arrays.
func scalars(v any) (all []any) {
	switch v := v.(type) {
	case map[string]any:
		return nil
	case []any:
		for _, x := range v {
			all = append(all, scalars(x)...)
		}
		return all
	}
	return []any{v}
}

// objects returns the objects in a value and its arrays.
func objects(v any) (all []map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		return []map[string]any{v}
	case []any:
		for _, x := range v {
			all = append(all, objects(x)...)
		}
	}
	return all
}

// overlay contains the values that dotted names give to a field, and the fields that they add to
// its object. The object is pending until it is combined with a nested object, or with an object in
// an array.
type overlay struct {
	values  []added
	fields  map[string]*overlay
	pending bool
}

// added is a scalar or an array. The objects of an array also have the fields that dotted names
// add, in the same object or in an outer one.
type added struct {
	v      any
	bound  bool
	fields map[string]*overlay
}

// with adds the dotted names of an object to the overlays of its fields, and returns the result.
func with(o map[string]any, over map[string]*overlay) map[string]*overlay {
	all := (&overlay{fields: over}).clone().fields
	if all == nil {
		all = map[string]*overlay{}
	}
	for name, v := range o {
		if names := strings.Split(name, "."); len(names) > 1 {
			add(all, names, v)
		}
	}
	bind(all)
	return all
}

// bind gives each new array the fields that dotted names add to the objects in it.
func bind(over map[string]*overlay) {
	for _, ov := range over {
		bind(ov.fields)
		for i := range ov.values {
			if a := &ov.values[i]; !a.bound {
				a.bound, a.fields = true, ov.clone().fields
				ov.pending = ov.pending && len(objects(a.v)) == 0
			}
		}
	}
}

func add(over map[string]*overlay, names []string, v any) {
	if over[names[0]] == nil {
		over[names[0]] = &overlay{}
	}
	at := over[names[0]]
	object, is := v.(map[string]any)
	if is || len(names) > 1 {
		at.pending = true
		if at.fields == nil {
			at.fields = map[string]*overlay{}
		}
	}
	switch {
	case len(names) > 1:
		add(at.fields, names[1:], v)
	case is:
		for name, x := range object {
			add(at.fields, strings.Split(name, "."), x)
		}
	default:
		at.values = append(at.values, added{v: v})
	}
}

func (ov *overlay) clone() *overlay {
	c := &overlay{values: slices.Clone(ov.values), pending: ov.pending}
	if ov.fields != nil {
		c.fields = map[string]*overlay{}
		for name, f := range ov.fields {
			c.fields[name] = f.clone()
		}
	}
	return c
}

// in reports whether a field has the wanted values. The values of the field are those of the
// overlay, and also v if there is true.
func (w *want) in(v any, there bool, ov *overlay) bool {
	var all []any
	for _, a := range ov.values {
		all = append(all, a.v)
	}
	if there {
		all = append(all, v)
	}
	for _, l := range w.leaves {
		of := scalars(all)
		if _, is := l.(absent); is {
			if len(of) > 0 {
				return false
			}
		} else if !slices.ContainsFunc(of, func(x any) bool { return anyMatches(l.([]any), x) }) {
			return false
		}
	}
	if len(w.fields) == 0 {
		return true
	}
	below := &want{fields: w.fields}
	own := objects(v)
	if len(own) == 0 && ov.pending {
		own = []map[string]any{{}}
	}
	var matches []bool
	for _, o := range own {
		matches = append(matches, below.inObject(o, ov.fields))
	}
	for _, a := range ov.values {
		for _, o := range objects(a.v) {
			matches = append(matches, below.inObject(o, a.fields))
		}
	}
	if below.absences() {
		return !slices.Contains(matches, false)
	}
	return slices.Contains(matches, true)
}

func (w *want) inObject(o map[string]any, over map[string]*overlay) bool {
	over = with(o, over)
	for name, f := range w.fields {
		v, there := o[name]
		ov := over[name]
		if !there && ov == nil {
			if !f.absences() {
				return false
			}
			continue
		}
		if ov == nil {
			ov = &overlay{}
		}
		if !f.in(v, there, ov) {
			return false
		}
	}
	return true
}

func anyMatches(values []any, x any) bool {
	return slices.ContainsFunc(values, func(v any) bool { return modelEqual(v, x) })
}

// modelEqual reports whether a scalar equals a value of a pattern.
func modelEqual(v, x any) bool {
	op, is := v.(map[string]any)
	if !is {
		a, isNumber := v.(json.Number)
		b, alsoNumber := x.(json.Number)
		return v == x || isNumber && alsoNumber && modelDouble(a) && modelDouble(b) && modelWithin([]any{"=", a}, b)
	}
	s, isText := x.(string)
	for name, of := range op {
		switch name {
		case "exists":
			return true
		case "anything-but":
			if inner, is := of.(map[string]any); is {
				for name, of := range inner {
					some, are := of.([]any)
					if !are {
						some = []any{of}
					}
					for _, one := range some {
						if modelEqual(map[string]any{name: one}, x) {
							return false
						}
					}
				}
				return true
			}
			some, are := of.([]any)
			if !are {
				some = []any{of}
			}
			return !anyMatches(some, x)
		case "numeric":
			n, is := x.(json.Number)
			return is && modelDouble(n) && modelWithin(of.([]any), n)
		case "equals-ignore-case":
			return isText && strings.EqualFold(s, of.(string))
		case "prefix", "suffix":
			text, plain := of.(string)
			if !plain {
				text = of.(map[string]any)["equals-ignore-case"].(string)
			}
			runes, n := []rune(s), utf8.RuneCountInString(text)
			switch {
			case !isText:
				return false
			case plain && name == "prefix":
				return strings.HasPrefix(s, text)
			case plain:
				return strings.HasSuffix(s, text)
			case len(runes) < n:
				return false
			case name == "prefix":
				return strings.EqualFold(string(runes[:n]), text)
			}
			return strings.EqualFold(string(runes[len(runes)-n:]), text)
		case "wildcard":
			var form strings.Builder
			text := of.(string)
			for i := 0; i < len(text); i++ {
				switch text[i] {
				case '*':
					form.WriteString(`.*`)
				case '\\':
					i++
					fallthrough
				default:
					form.WriteString(regexp.QuoteMeta(text[i : i+1]))
				}
			}
			// Quoting single bytes is safe, because QuoteMeta keeps the bytes of characters outside
			// ASCII.
			return isText && wildcardOf(form.String()).MatchString(s)
		case "cidr":
			at, err := netip.ParseAddr(s)
			return isText && err == nil && at.Zone() == "" && netip.MustParsePrefix(of.(string)).Contains(at)
		}
	}
	panic("no operator")
}

func wildcardOf(form string) *regexp.Regexp { return regexp.MustCompile(`^(?s:` + form + `)$`) }

// modelDouble reports whether the shortest text of a number's double is equal to the number.
func modelDouble(x json.Number) bool {
	n, err := strconv.ParseFloat(x.String(), 64)
	if err != nil {
		return false
	}
	if n == 0 {
		mantissa, _, _ := strings.Cut(strings.ToLower(x.String()), "e")
		return !strings.ContainsAny(mantissa, "123456789")
	}
	if len(x) > 1000 { // big.Rat would take too long
		return !strings.ContainsAny(x.String(), "123456789") || len(strings.Trim(x.String(), "-0.")) <= 17
	}
	a, _ := new(big.Rat).SetString(x.String())
	b, _ := new(big.Rat).SetString(strconv.FormatFloat(n, 'e', -1, 64))
	return a != nil && b != nil && a.Cmp(b) == 0
}

func modelWithin(of []any, x json.Number) bool {
	n, _ := strconv.ParseFloat(x.String(), 64)
	for i := 0; i < len(of); i += 2 {
		bound, _ := strconv.ParseFloat(of[i+1].(json.Number).String(), 64)
		ok := map[string]bool{"=": n == bound, "<": n < bound, "<=": n <= bound, ">": n > bound, ">=": n >= bound}[of[i].(string)]
		if !ok {
			return false
		}
	}
	return true
}
