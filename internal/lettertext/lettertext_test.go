package lettertext

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/payload"
)

func TestShape(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"no such user user-00017": "no such user …",
		"no such user 17":         "no such user 17",
		"permission denied":       "permission denied",
	} {
		if got := Shape(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]Payload{
		"":                  {Kind: "empty"},
		`{"a":1}`:           {Kind: "JSON", Text: "{\n  \"a\": 1\n}"},
		"a\tb\r\n":          {Kind: "text", Text: "a\tb\r\n"},
		"\x1b[31m":          {Kind: "binary", Binary: true},
		"\xff":              {Kind: "binary", Binary: true},
		"\x1f\x8b\x08 torn": {Kind: "binary", Binary: true},
	} {
		want.Data = []byte(data)
		got := Decode([]byte(data), map[string]payload.Codec{"gzip": payload.Gzip{}})
		if got.Kind != want.Kind || got.Text != want.Text || got.Binary != want.Binary || got.Codec != "" || string(got.Data) != data {
			t.Errorf("%q is %+v, want %+v", data, got, want)
		}
	}
}

func TestDecodeUsesTheCodecs(t *testing.T) {
	t.Parallel()
	packed, err := payload.Gzip{}.Encode(t.Context(), []byte(`{"a":"`+strings.Repeat("x", 100)+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	codecs := map[string]payload.Codec{"gzip": payload.Gzip{}, "other": payload.LZUTF8{}}
	if got := Decode(packed, codecs); got.Kind != "JSON" || got.Codec != "gzip" || len(got.Data) != 108 {
		t.Errorf("%+v", got)
	}
	for name, codecs := range map[string]map[string]payload.Codec{"none": nil, "a low limit": {"gzip": payload.Gzip{MaxBytes: 107}}} {
		if got := Decode(packed, codecs); got.Kind != "binary" || got.Codec != "" || len(got.Data) != len(packed) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
