package filter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/filter"
)

var arrived = time.UnixMilli(1545084650987)

func TestPatternsMatch(t *testing.T) {
	t.Parallel()
	const yes, no = true, false
	for _, c := range []struct {
		name, pattern, data string
		want                bool
	}{
		{"null", `{"f":[null]}`, `{"f":null}`, yes},
		{"null is no absence", `{"f":[null]}`, `{}`, no},
		{"null is no text", `{"f":[null]}`, `{"f":"null"}`, no},
		{"the empty string", `{"f":[""]}`, `{"f":""}`, yes},
		{"a string is not the empty one", `{"f":[""]}`, `{"f":" "}`, no},
		{"a string", `{"f":["a"]}`, `{"f":"a"}`, yes},
		{"case counts", `{"f":["a"]}`, `{"f":"A"}`, no},
		{"a number", `{"f":[300]}`, `{"f":300}`, yes},
		{"numbers are equal by value", `{"f":[300]}`, `{"f":300.0}`, yes},
		{"… in any form", `{"f":[0.003]}`, `{"f":3E-3}`, yes},
		{"… zero without its sign", `{"f":[0]}`, `{"f":-0.0}`, yes},
		{"… and the sign counts", `{"f":[3]}`, `{"f":-3}`, no},
		{"a number of too many digits equals its text", `{"f":[12345678901234567891]}`, `{"f":12345678901234567891}`, yes},
		{"… and no neighbour", `{"f":[12345678901234567891]}`, `{"f":12345678901234567892}`, no},
		{"… nor what is rounded to the same double", `{"f":[9007199254740992]}`, `{"f":9007199254740993}`, no},
		{"anything-but numbers by value", `{"f":[{"anything-but":[300]}]}`, `{"f":300.0}`, no},
		{"an empty prefix", `{"f":[{"prefix":""}]}`, `{"f":"a"}`, yes},
		{"an empty prefix of a number", `{"f":[{"prefix":""}]}`, `{"f":1}`, no},
		{"an empty suffix", `{"f":[{"suffix":""}]}`, `{"f":""}`, yes},
		{"… so that what is written equals itself", `{"f":[3.0e2]}`, `{"f":3.0e2}`, yes},
		{"a number is no string", `{"f":[300]}`, `{"f":"300"}`, no},
		{"true", `{"f":[true]}`, `{"f":true}`, yes},
		{"false is not true", `{"f":[true]}`, `{"f":false}`, no},
		{"equals-ignore-case", `{"f":[{"equals-ignore-case":"straẞe"}]}`, `{"f":"STRAßE"}`, yes},
		{"equals-ignore-case of another", `{"f":[{"equals-ignore-case":"ab"}]}`, `{"f":"abc"}`, no},
		{"and", `{"f":["a"],"g":["b"]}`, `{"g":"b","f":"a"}`, yes},
		{"and without one", `{"f":["a"],"g":["b"]}`, `{"f":"a"}`, no},
		{"or of values", `{"f":["a","b"]}`, `{"f":"b"}`, yes},
		{"or of many values", `{"f":["a","b","c","d","e","f","g","h","i","j"]}`, `{"f":"j"}`, yes},
		{"or of many values, none of them", `{"f":["a","b","c","d","e","f","g","h","i","j"]}`, `{"f":"k"}`, no},
		{"$or, the first", `{"$or":[{"f":["a"]},{"g":["b"]}]}`, `{"f":"a"}`, yes},
		{"$or, the second", `{"$or":[{"f":["a"]},{"g":["b"]}]}`, `{"f":"x","g":"b"}`, yes},
		{"$or, none", `{"$or":[{"f":["a"]},{"g":["b"]}]}`, `{"f":"b","g":"a"}`, no},
		{"$or beside a field", `{"h":["c"],"$or":[{"f":["a"]},{"g":["b"]}]}`, `{"f":"a","h":"d"}`, no},
		{"$or in $or", `{"$or":[{"f":["a"],"$or":[{"h":[1]},{"h":[2]}]},{"g":["b"]}]}`, `{"f":"a","h":2}`, yes},
		{"$or below a field", `{"o":{"$or":[{"f":["a"]},{"g":["b"]}]}}`, `{"o":{"g":"b"}}`, yes},
		{"$or that is a field's name", `{"$or":["a"]}`, `{"$or":"a"}`, yes},
		{"$or of operators is a field's name", `{"$or":[{"prefix":"a"},{"prefix":"b"}]}`, `{"$or":"bc"}`, yes},
		{"anything-but", `{"f":[{"anything-but":["a","b"]}]}`, `{"f":"c"}`, yes},
		{"anything-but, one of them", `{"f":[{"anything-but":["a","b"]}]}`, `{"f":"b"}`, no},
		{"anything-but of what is missing", `{"f":[{"anything-but":["a","b"]}]}`, `{"g":"c"}`, no},
		{"anything-but of null", `{"f":[{"anything-but":"a"}]}`, `{"f":null}`, yes},
		{"anything-but of a number", `{"f":[{"anything-but":5}]}`, `{"f":5}`, no},
		{"anything-but of numbers", `{"f":[{"anything-but":[5,6]}]}`, `{"f":"5"}`, yes},
		{"anything-but a prefix", `{"f":[{"anything-but":{"prefix":"a"}}]}`, `{"f":"ab"}`, no},
		{"anything-but prefixes", `{"f":[{"anything-but":{"prefix":["a","b"]}}]}`, `{"f":"ca"}`, yes},
		{"anything-but a suffix", `{"f":[{"anything-but":{"suffix":"a"}}]}`, `{"f":"ba"}`, no},
		{"anything-but a wildcard", `{"f":[{"anything-but":{"wildcard":"*a*"}}]}`, `{"f":"bab"}`, no},
		{"anything-but in any case", `{"f":[{"anything-but":{"equals-ignore-case":["AB","c"]}}]}`, `{"f":"ab"}`, no},
		{"numeric =", `{"f":[{"numeric":["=",300]}]}`, `{"f":3.0e2}`, yes},
		{"numeric range, in it", `{"f":[{"numeric":[">",0,"<=",5]}]}`, `{"f":5}`, yes},
		{"numeric range, at its open end", `{"f":[{"numeric":[">",0,"<=",5]}]}`, `{"f":0}`, no},
		{"numeric <", `{"f":[{"numeric":["<",-1.5]}]}`, `{"f":-2}`, yes},
		{"numeric >=", `{"f":[{"numeric":[">=",10]}]}`, `{"f":9.99}`, no},
		{"numeric of a number that is no double", `{"f":[{"numeric":[">",0]}]}`, `{"f":1e999}`, no},
		{"numeric of a string", `{"f":[{"numeric":["=",5]}]}`, `{"f":"5"}`, no},
		{"exists", `{"f":[{"exists":true}]}`, `{"f":null}`, yes},
		{"exists of what is missing", `{"f":[{"exists":true}]}`, `{"g":1}`, no},
		{"exists is about leaves", `{"f":[{"exists":true}]}`, `{"f":{"g":1}}`, no},
		{"exists false", `{"f":[{"exists":false}]}`, `{"g":1}`, yes},
		{"exists false of what is there", `{"f":[{"exists":false}]}`, `{"f":null}`, no},
		{"exists false is about leaves", `{"f":[{"exists":false}]}`, `{"f":{"g":1}}`, yes},
		{"exists false of an empty array", `{"f":[{"exists":false}]}`, `{"f":[]}`, yes},
		{"exists false below what is missing", `{"f":{"g":[{"exists":false}]}}`, `{}`, yes},
		{"exists false below a leaf", `{"f":{"g":[{"exists":false}]}}`, `{"f":1}`, yes},
		{"absent or a value, absent", `{"f":[{"exists":false},"a"]}`, `{}`, yes},
		{"absent or a value, the value", `{"f":[{"exists":false},"a"]}`, `{"f":"a"}`, yes},
		{"absent or a value, another", `{"f":[{"exists":false},"a"]}`, `{"f":"b"}`, no},
		{"prefix", `{"f":[{"prefix":"eu-"}]}`, `{"f":"eu-west"}`, yes},
		{"prefix of a number", `{"f":[{"prefix":"3"}]}`, `{"f":30}`, no},
		{"prefix in any case", `{"f":[{"prefix":{"equals-ignore-case":"ẞx"}}]}`, `{"f":"ßX1"}`, yes},
		{"suffix", `{"f":[{"suffix":".png"}]}`, `{"f":"a.png"}`, yes},
		{"suffix in any case", `{"f":[{"suffix":{"equals-ignore-case":".PNG"}}]}`, `{"f":"a.png"}`, yes},
		{"suffix longer than the string", `{"f":[{"suffix":"abc"}]}`, `{"f":"bc"}`, no},
		{"wildcard", `{"f":[{"wildcard":"a*b*c"}]}`, `{"f":"a--b--bc"}`, yes},
		{"wildcard whose ends overlap", `{"f":[{"wildcard":"aba*ba"}]}`, `{"f":"aba"}`, no},
		{"wildcard with a star itself", `{"f":[{"wildcard":"a\\**"}]}`, `{"f":"a*b"}`, yes},
		{"wildcard without a star", `{"f":[{"wildcard":"ab"}]}`, `{"f":"abc"}`, no},
		{"wildcard of all", `{"f":[{"wildcard":"*"}]}`, `{"f":""}`, yes},
		{"cidr", `{"f":[{"cidr":"10.0.0.0/24"}]}`, `{"f":"10.0.0.255"}`, yes},
		{"cidr, outside", `{"f":[{"cidr":"10.0.0.0/24"}]}`, `{"f":"10.0.1.0"}`, no},
		{"cidr of six", `{"f":[{"cidr":"fd00::/8"}]}`, `{"f":"fd12::1"}`, yes},
		{"cidr of no address", `{"f":[{"cidr":"fd00::/8"}]}`, `{"f":"fd::12::1"}`, no},
		{"an array, one of it", `{"f":["a"]}`, `{"f":["b","a"]}`, yes},
		{"an array, none of it", `{"f":["a"]}`, `{"f":["b","c"]}`, no},
		{"an array in an array", `{"f":["a"]}`, `{"f":[["b",["a"]]]}`, yes},
		{"objects in an array", `{"f":{"g":["a"],"h":["b"]}}`, `{"f":[{"g":"x"},{"g":"a","h":"b"}]}`, yes},
		{"fields of two objects in an array", `{"f":{"g":["a"],"h":["b"]}}`, `{"f":[{"g":"a"},{"h":"b"}]}`, no},
		{"fields of two objects, one by $or", `{"f":{"g":["a"]},"$or":[{"f":{"h":["b"]}},{"i":["c"]}]}`, `{"f":[{"g":"a"},{"h":"b"}]}`, no},
		{"absence beside a field of an array", `{"f":{"g":["a"],"h":[{"exists":false}]}}`, `{"f":[{"g":"a"},{"h":"b"}]}`, yes},
		{"absence alone below an array", `{"f":{"h":[{"exists":false}]}}`, `{"f":[{"g":"a"},{"h":"b"}]}`, no},
		{"a leaf and an object of one field", `{"$or":[{"f":["a"]},{"f":{"g":["b"]}}]}`, `{"f":["x",{"g":"b"}]}`, yes},
		{"the last of two fields counts", `{"f":["a"]}`, `{"f":"a","f":"b"}`, no},
		{"the last of two objects counts", `{"f":{"g":["a"]}}`, `{"f":{"g":"a"},"f":{}}`, no},
		{"… with all that it has", `{"f":{"g":["a"],"h":["b"]}}`, `{"f":{"g":"a"},"f":{"h":"b"}}`, no},
		{"… and absence goes by it", `{"f":{"g":[{"exists":false}]}}`, `{"f":{"g":"a"},"f":{}}`, yes},
		{"an escaped name", `{"fß":["a"]}`, `{"\u0066\u00DF":"a"}`, yes},
		{"an escaped string", `{"f":["\"\\/\b\f\n\r\t😀"]}`, `{"f":"\"\\\/\b\f\n\r\t\ud83d\uDE00"}`, yes},
		{"half a surrogate", `{"f":["\ufffdx\ufffd"]}`, `{"f":"\ud83dx\ude00"}`, yes},
		{"white space", `{"f":["a"],"g":[1]}`, " {\n\t\"f\" : [ \"a\" ] ,\r\n \"g\" : 1 } ", yes},
		{"an array as the payload", `{"f":["a"]}`, `[{"f":"b"},{"f":"a"}]`, yes},
		{"a string as the payload", `{"f":["a"]}`, `"a"`, no},
		{"a number as the payload of an absence", `{"f":[{"exists":false}]}`, `5`, yes},
		{"deep below", `{"a":{"b":{"c":{"d":[1]}}}}`, `{"a":{"b":{"x":{"c":[]},"c":{"d":1}}}}`, yes},
		{"a dotted name in the pattern", `{"f.g":[1]}`, `{"f":{"g":1}}`, yes},
		{"a dotted name in the payload", `{"f":{"g":[1]}}`, `{"f.g":1}`, yes},
		{"a dotted name in both", `{"f.g":[1]}`, `{"f.g":1}`, yes},
		{"dots at other places", `{"f":{"g.h":[1]}}`, `{"f.g":{"h":1}}`, yes},
		{"a dotted name of another field", `{"f":{"g":[1]}}`, `{"f.h":1,"f.":1,".g":1,"f..g":1,"f.g.h":1}`, no},
		{"empty names between dots", `{"f":{"":{"g":[1]}}}`, `{"f..g":1}`, yes},
		{"a dotted name before an object", `{"f":{"g":[1],"h":[2]}}`, `{"f.g":1,"f":{"h":2}}`, yes},
		{"a dotted name after an object", `{"f":{"g":[1],"h":[2]}}`, `{"f":{"h":2},"f.g":1}`, yes},
		{"a dotted name and an array", `{"f":{"g":[1],"h":[2],"i":[3]}}`, `{"f.g":1,"f":[{"h":2},{"h":2,"i":3}]}`, yes},
		{"… one element has to match", `{"f":{"g":[1],"h":[2],"i":[3]}}`, `{"f.g":1,"f":[{"h":2},{"i":3}]}`, no},
		{"a dotted name in an element", `{"f":{"g":{"h":[1]},"i":[2]}}`, `{"f":[{"g.h":1},{"i":2}]}`, no},
		{"… with a field of the element", `{"f":{"g":{"h":[1]},"i":[2]}}`, `{"f":[{"i":2},{"g.h":1,"i":2}]}`, yes},
		{"… and not of the element before", `{"f":{"g":{"h":[1],"i":[2]}}}`, `{"f":[{"g.h":1},{"g.i":2}]}`, no},
		{"an object with a dotted name", `{"f":{"g":{"h":[1],"i":[2]}}}`, `{"f.g":{"h":1},"f":{"g":{"i":2}}}`, yes},
		{"an array of objects with a dotted name", `{"f":{"g":{"h":[1],"i":[2]}}}`, `{"f.g":[{"i":2},{"h":1,"i":2}]}`, yes},
		{"… one element has to match", `{"f":{"g":{"h":[1],"i":[2]}}}`, `{"f.g":[{"i":2},{"h":1}]}`, no},
		{"… with a longer dotted name", `{"f":{"g":{"h":[1],"i":[2]}}}`, `{"f.g":[{"i":2}],"f.g.h":1}`, yes},
		{"… not with a nested field", `{"f":{"g":{"h":[1],"i":[2]}}}`, `{"f.g":[{"i":2}],"f":{"g":{"h":1}}}`, no},
		{"absence and a dotted name", `{"f":{"g":[{"exists":false}]}}`, `{"f.g":1}`, no},
		{"absence and a dotted name before an object", `{"f":{"g":[{"exists":false}]}}`, `{"f.g":1,"f":{}}`, no},
		{"absence beside a dotted name", `{"f":{"g":[1],"h":[{"exists":false}]}}`, `{"f.g":1}`, yes},
		{"… that the object has", `{"f":{"g":[1],"h":[{"exists":false}]}}`, `{"f.g":1,"f":{"h":2}}`, no},
		{"a dotted absence", `{"f.g":[{"exists":false}]}`, `{"f":{"g":1}}`, no},
		{"the last of two dotted names counts", `{"f":{"g":[1]}}`, `{"f.g":1,"f.g":2}`, no},
		{"a dotted name and a nested one both count", `{"f":{"g":[1]}}`, `{"f.g":1,"f":{"g":2}}`, yes},
		{"a dotted name beside a scalar", `{"f":{"g":[1]}}`, `{"f":5,"f.g":1}`, yes},
		{"an escaped dot", `{"f":{"g":[1]}}`, `{"f\u002eg":1}`, yes},
		{"a dotted name among many", `{"a":{"x":[1]},"b":{"x":[1]},"c":{"x":[1]},"d":{"x":[1]},"e":{"x":[1]},"f":{"x":[1]},"g":{"x":[1]},"h":{"x":[1]},"i":{"x":[1]}}`,
			`{"a.x":1,"b.x":1,"c.x":1,"d.x":1,"e.x":1,"f.x":1,"g.x":1,"h.x":1,"i.x":1}`, yes},
		{"the value's name elsewhere", `{"a":{"b":[1]}}`, `{"b":1,"a":{"c":{"b":1}}}`, no},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, err := filter.Compile(`{"data":` + c.pattern + `}`)
			if err != nil {
				t.Fatal(err)
			}
			matches, isJSON := f.Match([]byte(c.data), "key", arrived)
			if !isJSON || matches != c.want {
				t.Errorf("%s and %s: matches %v, JSON %v", c.pattern, c.data, matches, isJSON)
			}
		})
	}
}

// These are the cases of Lambda's documentation. Data that is not JSON only matters to patterns
// with conditions on data.
func TestLambdasMatrix(t *testing.T) {
	t.Parallel()
	type answer struct{ matches, isJSON bool }
	for _, c := range []struct {
		name, pattern, data string
		want                answer
	}{
		{"JSON, pattern of JSON", `{"data":{"f":["a"]}}`, `{"f":"a"}`, answer{true, true}},
		{"JSON, pattern of JSON, another", `{"data":{"f":["a"]}}`, `{"f":"b"}`, answer{false, true}},
		{"JSON, no pattern for data", `{"partitionKey":["key"]}`, `{"f":"b"}`, answer{true, true}},
		{"no JSON, pattern of JSON", `{"data":{"f":["a"]}}`, `f=a`, answer{false, false}},
		{"no JSON, pattern of absence", `{"data":{"f":[{"exists":false}]}}`, `f=a`, answer{false, false}},
		{"no JSON, no pattern for data", `{"partitionKey":["key"]}`, `f=a`, answer{true, true}},
		{"no JSON, another key", `{"partitionKey":["other"]}`, `f=a`, answer{false, true}},
		{"no JSON, not asked for because of the key", `{"partitionKey":["other"],"data":{"f":["a"]}}`, `f=a`, answer{false, true}},
		{"no JSON, one of two patterns is about the key", `{"$or":[{"partitionKey":["key"]},{"data":{"f":["a"]}}]}`, `f=a`, answer{true, true}},
	} {
		matches, isJSON := filter.MustCompile(c.pattern).Match([]byte(c.data), "key", arrived)
		if got := (answer{matches, isJSON}); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	for _, pattern := range []string{`{"data":["f=a"]}`, `{"data":"f=a"}`} {
		if _, err := filter.Compile(pattern); err == nil {
			t.Errorf("a pattern for data that is no JSON is taken: %s", pattern)
		}
	}
}

func TestKeyAndArrival(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern string
		want    bool
	}{
		{`{"partitionKey":[{"prefix":"k"}]}`, true},
		{`{"partitionKey":[{"anything-but":["key"]}]}`, false},
		{`{"approximateArrivalTimestamp":[1545084650.987]}`, true},
		{`{"approximateArrivalTimestamp":[1545084650]}`, false},
		{`{"approximateArrivalTimestamp":[{"numeric":[">",1545084650,"<",1545084651]}]}`, true},
		{`{"approximateArrivalTimestamp":[{"numeric":["<",1545084650]}]}`, false},
		{`{"approximateArrivalTimestamp":[{"anything-but":[1545084650.987]}]}`, false},
		{`{"approximateArrivalTimestamp":[{"prefix":"15"}]}`, false},
		{`{"partitionKey":["key"],"data":{"f":[1]}}`, true},
		{`{"partitionKey":["other"],"data":{"f":[1]}}`, false},
		{`{"Filters":[{"Pattern":"{\"partitionKey\":[\"other\"]}"},{"Pattern":"{\"data\":{\"f\":[1]}}"}]}`, true},
	} {
		if matches, isJSON := filter.MustCompile(c.pattern).Match([]byte(`{"f":1}`), "key", arrived); !isJSON || matches != c.want {
			t.Errorf("%s: %v, JSON %v", c.pattern, matches, isJSON)
		}
	}
	f := filter.MustCompile(`{"partitionKey":["a"]}`, `{"partitionKey":["b"]}`)
	for key, want := range map[string]bool{"a": true, "b": true, "c": false} {
		if matches, _ := f.Match(nil, key, arrived); matches != want {
			t.Errorf("one of two patterns and %s: %v", key, matches)
		}
	}
}

func TestAWrongPatternIsToldWithItsPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, place, problem string }{
		{``, "", "empty"},
		{`{`, "byte 1", "ends too early"},
		{`{"data":{"f":["a`, "byte", "ends too early"},
		{`{"data":{"f":["a"],`, "byte", "ends too early"},
		{`{1:["a"]}`, "byte", "not JSON"},
		{`{"data":{"f":["a"],]}`, "byte", "not JSON"},
		{`{"data":{"f":["a"}}`, "byte 17", "not JSON"},
		{`{"data":{"f":["a"]}} x`, "", "not JSON"},
		{`[]`, "the pattern", "must be an object"},
		{`{}`, "the pattern", "without a field"},
		{`{"kind":["a"]}`, "kind", `"partitionKey"`},
		{`{"data":[1]}`, "data", "an array and must be an object"},
		{`{"data":{}}`, "data", "without a field"},
		{`{"data":{"f":"a"}}`, "data.f", "must be in an array"},
		{`{"data":{"f":[]}}`, "data.f", "empty"},
		{`{"data":{"f":[["a"]]}}`, "data.f[0]", "array in an array"},
		{`{"data":{"f":["a",{"prefxi":"a"}]}}`, "data.f[1].prefxi", "equals-ignore-case"},
		{`{"data":{"f":[{"prefix":"a","suffix":"b"}]}}`, "data.f[0]", "one field"},
		{`{"data":{"f.g":[{"prefix":1}]}}`, `data."f.g"[0].prefix`, "a number and must be a string"},
		{`{"data":{"f":[{"anything-but":{"prefix":""}}]}}`, "data.f[0].anything-but.prefix", "no string would match"},
		{`{"data":{"f":[{"anything-but":{"prefix":{"equals-ignore-case":"a"}}}]}}`, "data.f[0].anything-but.prefix", "does not combine"},
		{`{"data":{"f":[{"anything-but":{"suffix":[{"equals-ignore-case":"a"}]}}]}}`, "data.f[0].anything-but.suffix[0]", "does not combine"},
		{`{"data":{"f":[{"prefix":{"suffix":"a"}}]}}`, "data.f[0].prefix", "equals-ignore-case"},
		{`{"data":{"f":[{"exists":"yes"}]}}`, "data.f[0].exists", "true or false"},
		{`{"data":{"f":[{"numeric":[">"]}]}}`, "data.f[0].numeric", "a comparison and a number"},
		{`{"data":{"f":[{"numeric":["~",1]}]}}`, "data.f[0].numeric[0]", "must be one of"},
		{`{"data":{"f":[{"numeric":[">","1"]}]}}`, "data.f[0].numeric[1]", "must be a number"},
		{`{"data":{"f":[{"numeric":[">",1,">",2]}]}}`, "data.f[0].numeric[2]", "a lower bound and an upper bound"},
		{`{"data":{"f":[{"numeric":["=",1,"<",2]}]}}`, "data.f[0].numeric[2]", "a lower bound and an upper bound"},
		{`{"data":{"f":[{"numeric":[">",1,"<",1]}]}}`, "data.f[0].numeric", "no number is in between"},
		{`{"data":{"f":[{"numeric":[">",1e999]}]}}`, "data.f[0].numeric[1]", "double precision"},
		{`{"data":{"f":[{"anything-but":9007199254740993}]}}`, "data.f[0].anything-but", "double precision"},
		{`{"data":{"f":[{"anything-but":[]}]}}`, "data.f[0].anything-but", "empty"},
		{`{"data":{"f":[{"anything-but":["a",1]}]}}`, "data.f[0].anything-but", "only strings or only numbers"},
		{`{"data":{"f":[{"anything-but":null}]}}`, "data.f[0].anything-but", "only strings or only numbers"},
		{`{"data":{"f":[{"anything-but":{"numeric":1}}]}}`, "data.f[0].anything-but", "prefix, suffix"},
		{`{"data":{"f":[{"anything-but":{"prefix":[]}}]}}`, "data.f[0].anything-but.prefix", "empty"},
		{`{"data":{"f":[{"wildcard":"a**b"}]}}`, "data.f[0].wildcard", "two stars"},
		{`{"data":{"f":[{"wildcard":"a\\b"}]}}`, "data.f[0].wildcard", "backslash"},
		{`{"data":{"f":[{"cidr":"10.0.0.0"}]}}`, "data.f[0].cidr", "10.0.0.0/8"},
		{`{"data":{"$or":[{"f":["a"]}]}}`, "data.$or[0].f", "no such operator"},
		{`{"data":{"$or":[{"f":["a"]},{"g":"b"}]}}`, "data.$or[1].g", "must be in an array"},
		{`{"partitionKey":[{"exists":false}]}`, "partitionKey", "never matches"},
		{`{"data":` + strings.Repeat(`{"a":`, 100) + `[1]` + strings.Repeat(`}`, 101), "", "64 levels"},
		{`{"data":{"f":["` + strings.Repeat("a", 70_000) + `"]}}`, "", "bytes"},
		{`{"data":{"` + strings.Repeat("a.", 70) + `":[1]}}`, "", "64 levels"},
		{`{"data":{"f":[{"wildcard":"*` + strings.Repeat("a", 299) + `"},{"wildcard":"*b"}]}}`, "data.f", "too complex"},
		{`{"data":{"$or":[{"f":{"g":[{"wildcard":"` + strings.Repeat("*b", 100) + `"}]}},{"f.g":[{"anything-but":{"wildcard":["` + strings.Repeat("*ab", 100) + `"]}}]}]}}`, "data.f.g", "too complex"},
		{`{"partitionKey":[{"wildcard":"` + strings.Repeat("*b", 151) + `"}]}`, "partitionKey", "too complex"},
		{alternatives(11), "data.k09", "1000 alternatives"},
		{`{"Filters":[]}`, "Filters", "Pattern"},
		{`{"Filters":[{"Pattern":"{\"data\":{\"f\":\"a\"}}"}]}`, "Filters[0].Pattern: data.f", "array"},
	} {
		_, err := filter.Compile(c.pattern)
		if err == nil {
			t.Errorf("%.100s is taken", c.pattern)
		} else if text := err.Error(); !strings.HasPrefix(text, "filter: ") || !strings.Contains(text, c.place) || !strings.Contains(text, c.problem) {
			t.Errorf("%.100s: %v\nwant %q and %q", c.pattern, err, c.place, c.problem)
		}
	}
	_, err := filter.Compile(`{"data":{"f":["a"]}}`, `{"x":[1]}`, `{"y":[1]}`)
	if err == nil || !strings.Contains(err.Error(), "pattern 2: x") || !strings.Contains(err.Error(), "pattern 3: y") {
		t.Errorf("of several: %v", err)
	}
	if _, err := filter.Compile(); err == nil {
		t.Error("no pattern is taken")
	}
}

// Wildcards up to the limit are accepted. Equal wildcards count once.
func TestWildcardsWithinTheBoundAreAccepted(t *testing.T) {
	t.Parallel()
	long := `{"wildcard":"*` + strings.Repeat("a", 299) + `"}`
	for _, values := range []string{long, long + "," + long, `{"wildcard":"` + strings.Repeat("b", 1000) + `"}`, `{"wildcard":"` + strings.Repeat("*b", 150) + `"}`} {
		if _, err := filter.Compile(`{"data":{"f":[`+values+`],"g":[`+values+`]}}`, `{"data":{"f":[{"wildcard":"*b*"}]}}`); err != nil {
			t.Errorf("%.40s: %v", values, err)
		}
	}
}

// alternatives returns a pattern of n fields, each of which may be absent or have one value.
func alternatives(n int) string {
	var fields []string
	for i := range n {
		fields = append(fields, `"k`+string(rune('0'+i/10))+string(rune('0'+i%10))+`":["x",{"exists":false}]`)
	}
	return `{"data":{` + strings.Join(fields, ",") + `}}`
}
