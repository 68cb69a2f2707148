package filter_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weir-go/weir/filter"
	"github.com/weir-go/weir/internal/proof/longform"
)

// FuzzMatch compares Match with the model. Both must give the same answer for any pattern and
// document. JSON must be valid in the same cases as for encoding/json.
func FuzzMatch(f *testing.F) {
	for _, c := range [][2]string{
		{`{"a":["x",{"prefix":"y"}],"b":{"c":[{"exists":false}]}}`, `{"a":["z","yy"],"b":[{"d":1},{}]}`},
		{`{"$or":[{"a":[1]},{"b":[{"numeric":[">",0,"<=",5.5]}]}],"c":[{"anything-but":{"wildcard":"a*b"}}]}`, `{"b":5.5,"c":"ab\u0041"}`},
		{`{"a":{"b":["x"],"c":["y"]}}`, `{"a":[{"b":"x"},{"c":"y"}],"a":[[{"b":"x","c":"y"}]]}`},
		{`{"a":[{"cidr":"10.0.0.0/8"},{"suffix":{"equals-ignore-case":"K"}}]}`, "{\"a\":\"\u212a\"}"},
		{`{"a":[null,true,"",{"equals-ignore-case":"ß"}]}`, `[{"a":"\ud83d\ude00\u00DF"},{"a":null}]`},
		{`{"a":[1]}`, strings.Repeat(`[`, 70) + `{"a":1}` + strings.Repeat(`]`, 70)},
		{`{"a":[1]}`, strings.Repeat(`{"b":[`, 70) + `1` + strings.Repeat(`]}`, 70)},
		{`{"a":[1]}`, `{"a":01}`},
		{`{"a.b":{"c":[1],"d":[{"exists":false}]},"a":{"b.c":[{"anything-but":2}]}}`, `{"a":{"b":[{"c":1},{"d":2}]},"a.b.c":1,"a.b":{"d":{}}}`},
		{`{"a":{"b":{"c":[1],"d":[2]}}}`, `{"a.b":[{"c":1},{"d":2,"c":3}],"a":{"b.c":1},"a.b":[{"d":2}]}`},
	} {
		f.Add(c[0], []byte(c[1]))
	}
	f.Fuzz(func(t *testing.T, pattern string, document []byte) {
		compare(t, pattern, document)
	})
}

// compare compares Match with the model for one document. It reports whether the pattern is valid.
func compare(t *testing.T, pattern string, document []byte) bool {
	t.Helper()
	made, err := filter.Compile(`{"data":` + pattern + `}`)
	if err != nil {
		return false
	}
	before := string(document)
	matches, isJSON := made.Match(document, "key", arrived)
	if string(document) != before {
		t.Fatal("the document was changed")
	}
	if isJSON != json.Valid(document) {
		t.Fatalf("%s and %q: JSON %v", pattern, document, isJSON)
	}
	if !isJSON || !utf8.Valid(document) || !utf8.ValidString(pattern) { // decoding replaces these
		return true
	}
	p, err := decoded([]byte(pattern))
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	d, err := decoded(document)
	if err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	if want := modelMatches(p.(map[string]any), d); matches != want {
		t.Fatalf("%s and %s: matches %v, the model says %v", pattern, document, matches, want)
	}
	return true
}

// FuzzCompile checks that any pattern is either usable or rejected with a readable error.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		`{"data":{"a":["x"]},"partitionKey":[{"prefix":"k"}],"approximateArrivalTimestamp":[{"numeric":[">",1]}]}`,
		`{"$or":[{"data":{"a":[{"exists":false}]}},{"partitionKey":["a"]}]}`,
		`{"Filters":[{"Pattern":"{\"data\":{\"a\":[1]}}"}]}`,
		`{"data":{"a":[{"anything-but":{"suffix":["a","b"]}},{"wildcard":"a\\**"},{"cidr":"::/0"}]}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		made, err := filter.Compile(pattern)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "filter: ") || len(err.Error()) > 2*len(pattern)+1000 {
				t.Errorf("%q: %v", pattern, err)
			}
			return
		}
		made.Match([]byte(`{"a":[{"b":"x"},1,null]}`), "key", arrived)
		if again, err := filter.Compile(strings.Split(made.String(), "\n")...); err == nil && again.String() != made.String() {
			t.Errorf("%q becomes %q", made, again)
		}
	})
}

// TestRandomPatternsAndDocuments compares many random patterns with related documents.
func TestRandomPatternsAndDocuments(t *testing.T) {
	t.Parallel()
	n := 4_000
	if longform.On() {
		n = 15_000
	}
	dice := rand.New(rand.NewPCG(1, 2)) // must be reproducible
	matched := 0
	for range n {
		pattern, document := randomPattern(dice, 3), randomDocument(dice, 4)
		if !compare(t, pattern, []byte(document)) {
			if _, err := filter.Compile(`{"data":` + pattern + `}`); !strings.Contains(err.Error(), "alternatives") {
				t.Fatalf("%s: %v", pattern, err)
			}
			continue
		}
		if made := filter.MustCompile(`{"data":` + pattern + `}`); matchesIt(made, document) {
			matched++
		}
	}
	if matched < n/20 || matched > n*19/20 {
		t.Errorf("%d of %d matched", matched, n)
	}
}

func matchesIt(f *filter.Filter, document string) bool {
	matches, _ := f.Match([]byte(document), "key", arrived)
	return matches
}

func oneOf(d *rand.Rand, of ...string) string { return of[d.IntN(len(of))] }

func randomPattern(d *rand.Rand, depth int) string {
	var fields []string
	for range 1 + d.IntN(3) {
		switch {
		case depth > 0 && d.IntN(4) == 0:
			fields = append(fields, fmt.Sprintf(`"$or":[%s,%s]`, randomPattern(d, 0), randomPattern(d, depth-1)))
		case depth > 0 && d.IntN(3) == 0:
			fields = append(fields, fmt.Sprintf(`"%s":%s`, oneOf(d, "a", "b", "c", "a.b"), randomPattern(d, depth-1)))
		default:
			var values []string
			for range 1 + d.IntN(3) {
				values = append(values, randomValue(d))
			}
			fields = append(fields, fmt.Sprintf(`"%s":[%s]`, oneOf(d, "a", "b", "c", "a.b", "b.c", "a.b.c"), strings.Join(values, ",")))
		}
	}
	return "{" + strings.Join(fields, ",") + "}"
}

func randomText(d *rand.Rand) string {
	return oneOf(d, `x`, `xy`, `XY`, `xyz`, `\u0078y`, `ß`, `10.1.2.3`)
}

func randomValue(d *rand.Rand) string {
	text := randomText(d)
	switch d.IntN(14) {
	case 0:
		return oneOf(d, `null`, `true`, `""`, `1`, `1.0`)
	case 1:
		return fmt.Sprintf(`{"prefix":"%s"}`, text)
	case 2:
		return fmt.Sprintf(`{"suffix":{"equals-ignore-case":"%s"}}`, text)
	case 3:
		return fmt.Sprintf(`{"equals-ignore-case":"%s"}`, text)
	case 4:
		return fmt.Sprintf(`{"wildcard":"%s"}`, oneOf(d, `*`, `x*`, `*y`, `x*y*`, `*y*z`, `ab`))
	case 5:
		return `{"cidr":"10.0.0.0/8"}`
	case 6:
		return fmt.Sprintf(`{"numeric":[%s]}`, oneOf(d, `">",0`, `"<=",1`, `"=",1`, `">",0,"<",2`))
	case 7, 8:
		return `{"exists":false}`
	case 9:
		return `{"exists":true}`
	case 10:
		return fmt.Sprintf(`{"anything-but":%s}`, oneOf(d, `"x"`, `["x","xy"]`, `1`, `[1,2]`, `{"prefix":"x"}`, `{"wildcard":["*y*","z"]}`, `{"equals-ignore-case":"xy"}`))
	default:
		return `"` + text + `"`
	}
}

func randomDocument(d *rand.Rand, depth int) string {
	if depth == 0 {
		return oneOf(d, `null`, `1`, `1.0`, `0`, `""`, `"`+randomText(d)+`"`)
	}
	switch d.IntN(6) {
	case 0:
		return randomDocument(d, 0)
	case 1:
		var items []string
		for range d.IntN(3) {
			items = append(items, randomDocument(d, depth-1))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	var fields []string
	for range d.IntN(5) {
		fields = append(fields, fmt.Sprintf(`"%s": %s`, oneOf(d, "a", "b", "c", `\u0061`, "d", "a.b", "b.c", "a.b.c", `a\u002ec`, "b.a.c"), randomDocument(d, depth-1)))
	}
	return "{" + strings.Join(fields, ",") + "}"
}
