package filter

import (
	"net/netip"
	"slices"
	"strings"
)

// operators contains the names of all operators.
var operators = []string{"anything-but", "cidr", "equals-ignore-case", "exists", "numeric", "prefix", "suffix", "wildcard"}

// operator adds an operator to the values of a field. absent is true if the operator requires an
// absent field, which is not a value.
func (v *values) operator(e element, at *place) (absent bool, err error) {
	if len(e.fields) != 1 {
		return false, at.bad("an operator is an object with one field, not %d; put several operators into the array one after the other", len(e.fields))
	}
	name, of := e.fields[0].name, e.fields[0].value
	at = at.field(name)
	t := test{}
	switch name {
	case "exists":
		switch {
		case of.is != aWord || of.text == "null":
			return false, at.bad("it must be true or false")
		case of.text == "false":
			return true, nil
		}
		t.op = exists
	case "anything-but":
		t.op = anythingBut
		t.not, err = anythingButOf(of, at)
	case "numeric":
		t, err = numericOf(of, at)
	case "equals-ignore-case", "prefix", "suffix", "wildcard":
		t, err = textOf(name, of, at)
	case "cidr":
		t, err = cidrOf(of, at)
	default:
		return false, at.bad("there is no such operator; there are %s", strings.Join(operators, ", "))
	}
	if err == nil {
		v.tests = append(v.tests, t)
	}
	return false, err
}

// textOf compiles an operator on strings.
func textOf(name string, e element, at *place) (t test, err error) {
	if e.is == anObject && (name == "prefix" || name == "suffix") {
		if len(e.fields) != 1 || e.fields[0].name != "equals-ignore-case" {
			return t, at.bad(`it must be a string, or an object such as {"equals-ignore-case": "x"}`)
		}
		t.fold = true
		at = at.field("equals-ignore-case")
		e = e.fields[0].value
	}
	if e.is != aString {
		return t, at.bad("it is %v and must be a string", e.is)
	}
	t.text = e.text
	switch name {
	case "prefix", "suffix":
		if t.op = prefix; name == "suffix" {
			t.op = suffix
		}
	case "equals-ignore-case":
		t.op = equalFold
	case "wildcard":
		t.op = wildcard
		t.parts, err = wildcardOf(e.text, at)
	}
	return t, err
}

// wildcardOf returns the parts of a wildcard between its stars.
func wildcardOf(s string, at *place) (parts []string, err error) {
	part := strings.Builder{}
	star := false // the previous character was a star
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '*' && star:
			return nil, at.bad("two stars in a row mean the same as one: remove one")
		case c == '*':
			parts = append(parts, part.String())
			part.Reset()
			star = true
			continue
		case c == '\\':
			if i++; i == len(s) || s[i] != '*' && s[i] != '\\' {
				return nil, at.bad(`a backslash stands only before * and \; in JSON it is written as two`)
			}
			part.WriteByte(s[i])
		default:
			part.WriteByte(c)
		}
		star = false
	}
	return append(parts, part.String()), nil
}

// cidrOf compiles a range of IP addresses.
func cidrOf(e element, at *place) (t test, err error) {
	if e.is != aString {
		return t, at.bad("it is %v and must be a string", e.is)
	}
	t.op = cidr
	if t.net, err = netip.ParsePrefix(e.text); err != nil {
		return t, at.bad("%.80q is not a range of IP addresses such as 10.0.0.0/8 or fd00::/8", e.text)
	}
	return t, nil
}

// anythingButOf compiles an anything-but operator.
func anythingButOf(e element, at *place) (*values, error) {
	not := &values{}
	switch e.is {
	case anObject:
		if len(e.fields) != 1 || !slices.Contains([]string{"prefix", "suffix", "wildcard", "equals-ignore-case"}, e.fields[0].name) {
			return nil, at.bad("it must be a string, a number, an array of them, or an object of prefix, suffix, wildcard or equals-ignore-case")
		}
		name, of := e.fields[0].name, e.fields[0].value
		at = at.field(name)
		all := []element{of}
		if of.is == anArray {
			if all = of.items; len(all) == 0 {
				return nil, at.bad("its array is empty, so it has no effect: remove it, or add a value")
			}
		}
		for i, item := range all {
			at := at
			if of.is == anArray {
				at = at.index(i)
			}
			if item.is == anObject {
				return nil, at.bad("it is an object and must be a string: anything-but does not combine prefix or suffix with equals-ignore-case")
			}
			t, err := textOf(name, item, at)
			if err != nil {
				return nil, err
			}
			if t.text == "" && (t.op == prefix || t.op == suffix) {
				return nil, at.bad("it is empty, so no string would match")
			}
			not.tests = append(not.tests, t)
		}
		return not, nil
	case anArray:
		if len(e.items) == 0 {
			return nil, at.bad("its array is empty, so it has no effect: remove it, or add a value")
		}
	default:
		e = element{is: anArray, items: []element{e}}
	}
	for _, item := range e.items {
		if item.is != aString && item.is != aNumber || item.is != e.items[0].is {
			return nil, at.bad("it must be only strings or only numbers, and has %v", item.is)
		}
		if item.is == aNumber {
			if _, err := numberOf(item, at); err != nil {
				return nil, err
			}
		}
		not.equal(item)
	}
	return not, nil
}

// numericOf compiles comparisons of numbers.
func numericOf(e element, at *place) (t test, err error) {
	t.op = numeric
	if e.is != anArray || len(e.items) != 2 && len(e.items) != 4 {
		return t, at.bad(`it must be an array of a comparison and a number, such as [">", 0], or of two of them, such as [">", 0, "<=", 5]`)
	}
	for i := 0; i < len(e.items); i += 2 {
		op, of := e.items[i], e.items[i+1]
		if op.is != aString || !slices.Contains([]string{"=", "<", "<=", ">", ">="}, op.text) {
			return t, at.index(i).bad(`it must be one of "=", "<", "<=", ">" and ">="`)
		}
		if of.is != aNumber {
			return t, at.index(i+1).bad("it is %v and must be a number", of.is)
		}
		n, err := numberOf(of, at.index(i+1))
		if err != nil {
			return t, err
		}
		above, below := op.text[0] != '<', op.text[0] != '>'
		if above && t.hasLeast || below && t.hasMost {
			return t, at.index(i).bad("two comparisons must be a lower bound and an upper bound")
		}
		if above {
			t.low = low{n, op.text == ">", true}
		}
		if below {
			t.high = high{n, op.text == "<", true}
		}
	}
	if t.hasLeast && t.hasMost && (t.least > t.most || t.least == t.most && (t.openLow || t.openHigh)) {
		return t, at.bad("no number is in between, so it would never match")
	}
	return t, nil
}
