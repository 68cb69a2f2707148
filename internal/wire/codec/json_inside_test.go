package codec

import (
	"strings"
	"testing"
)

func TestIntegers(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "12": 12, "-5": -5, "999999999999999999": 999999999999999999, "1234567890123456789": 1234567890123456789,
		"9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63,
	} {
		d := &jsonReader{b: []byte(text + " ")}
		if got, err := d.integer(); err != nil || got != want {
			t.Errorf("%s is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"9223372036854775808", "-9223372036854775809", "99999999999999999999999999", "1e2", "1.0", "x", "-"} {
		d := &jsonReader{b: []byte(text + " ")}
		if got, err := d.integer(); err == nil {
			t.Errorf("%s is %d", text, got)
		}
	}
}

func TestTextsWithEscapes(t *testing.T) {
	for quoted, want := range map[string]string{
		`"plain"`: "plain", `"a\"b\\c\/d\b\f\n\r\te"`: "a\"b\\c/d\b\f\n\r\te", `"\u0041\u00e9\u20ac\ud834\udd1e"`: "Aé€𝄞",
		`"\ud834"`: "\ufffd", `"\ud834x"`: "\ufffdx", `"\udd1e\ud834\ud834\udd1e"`: "\ufffd\ufffd𝄞", `"\ud834\u0041"`: "\ufffdA",
		"\"raw \xff\"": "raw \xff", "\"fixed \xff\\n\"": "fixed \ufffd\n", "\"\\n\xff\xff\xff\xff\xff\xff\xff\xff\"": "\n" + strings.Repeat("\ufffd", 8),
		"\"\\u0041\xff\xfe é\"": "A\ufffd\ufffd é",
	} {
		d := &jsonReader{b: []byte(quoted + ",")}
		got, err := d.text()
		if err != nil || string(got) != want || d.i != len(quoted) {
			t.Errorf("%s is %q, %v, and ends at %d", quoted, got, err, d.i)
		}
		if len(got) != cap(got) && !strings.Contains(quoted, `\`) {
			t.Errorf("%s has spare capacity", quoted)
		}
	}
}
