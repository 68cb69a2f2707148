package payload

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

const versionText = "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63"

func version(t testing.TB) SchemaVersion {
	t.Helper()
	v, err := ParseSchemaVersion(versionText)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestParseSchemaVersion(t *testing.T) {
	t.Parallel()
	if got := version(t).String(); got != versionText {
		t.Errorf("%s becomes %s", versionText, got)
	}
	if upper, err := ParseSchemaVersion(strings.ToUpper(versionText)); err != nil || upper != version(t) {
		t.Errorf("in upper case: %v, %v", upper, err)
	}
	for _, s := range []string{
		"", "b7b4a7f0", versionText[1:], versionText + "0", strings.ReplaceAll(versionText, "-", ""),
		strings.Replace(versionText, "-", "0", 1), "g" + versionText[1:], "{" + versionText + "}",
	} {
		if v, err := ParseSchemaVersion(s); err == nil || v != (SchemaVersion{}) {
			t.Errorf("%q is %v", s, v)
		}
	}
}

// The payloads were written by SerializationDataEncoder of schema-registry-serde 1.1.27. The tests
// of the Java clients in internal/proof/integration compare both sides.
func TestGlueReadsWhatAWSWrites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ payload, want string }{
		"plain": {"AwC3tKfwnJZOSqaH+13p7wxjeA==", "x"},
		"zlib":  {"AwW3tKfwnJZOSqaH+13p7wxjeJyrAAAAeQB5", "x"},
	} {
		p, err := base64.StdEncoding.DecodeString(c.payload)
		if err != nil {
			t.Fatal(err)
		}
		v, data, marked, err := Glue{}.Split(p)
		if v != version(t) || string(data) != c.want || !marked || err != nil {
			t.Errorf("%s: %v %q %v, %v", name, v, data, marked, err)
		}
	}
}

func TestGlueReturnsTheData(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("a record about an order. ", 100))
	for name, c := range map[string]struct {
		data     []byte
		compress bool
		second   byte
	}{
		"empty":               {nil, false, 0},
		"text":                {text, false, 0},
		"compressed":          {text, true, 5},
		"nothing to compress": {[]byte("x"), true, 0},
		"empty, compressed":   {nil, true, 0},
		"with a header":       {encoded(t, Glue{Version: version(t)}, text), false, 0},
	} {
		p := encoded(t, Glue{Version: version(t), Compress: c.compress}, c.data)
		got, marked, err := Glue{}.Decode(t.Context(), p)
		if err != nil || !marked || !bytes.Equal(got, c.data) || p[0] != 3 || p[1] != c.second {
			t.Errorf("%s: %.20q becomes %.20q, %v", name, c.data, got, err)
		}
		if c.compress && len(p) > glueHeader+len(c.data) {
			t.Errorf("%s: %d bytes become %d", name, len(c.data), len(p))
		}
	}
}

func TestGlueReportsWhatItCannotDecode(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("text ", 1000))
	compressed := encoded(t, Glue{Version: version(t), Compress: true}, text)
	plain := encoded(t, Glue{Version: version(t)}, text)
	for name, c := range map[string]struct {
		payload []byte
		most    int
		want    error
	}{
		"cut off":               {compressed[:len(compressed)-1], 0, ErrDamaged},
		"no data to decompress": {compressed[:glueHeader], 0, ErrDamaged},
		"no zlib":               {append(bytes.Clone(compressed[:glueHeader]), text...), 0, ErrDamaged},
		"one byte too many":     {compressed, len(text) - 1, ErrTooLarge},
		"plain and too many":    {plain, len(text) - 1, ErrTooLarge},
	} {
		if got, err := Decode(t.Context(), c.payload, Glue{MaxBytes: c.most}); !errors.Is(err, c.want) || got != nil {
			t.Errorf("%s: %.20q, %v, want %v", name, got, err, c.want)
		}
	}
	for _, most := range []int{len(text), math.MaxInt} {
		for _, p := range [][]byte{compressed, plain} {
			if got, err := Decode(t.Context(), p, Glue{MaxBytes: most}); err != nil || !bytes.Equal(got, text) {
				t.Errorf("with the limit %d: %d bytes, %v", most, len(got), err)
			}
		}
	}
	for name, p := range map[string][]byte{
		"a header cut off":    plain[:glueHeader-1],
		"another version":     append([]byte{4}, plain[1:]...),
		"another compression": append([]byte{3, 1}, plain[2:]...),
	} {
		if got, err := Decode(t.Context(), p, Glue{}); err != nil || !bytes.Equal(got, p) {
			t.Errorf("%s: %.20q, %v", name, got, err)
		}
	}
	if _, err := (Glue{}).Encode(t.Context(), text); err == nil || !strings.Contains(err.Error(), "Glue.Version is required") {
		t.Errorf("without a version: %v", err)
	}
}

func TestGlueConverts(t *testing.T) {
	t.Parallel()
	broken := errors.New("no such schema")
	g := Glue{Version: version(t), Convert: func(_ context.Context, v SchemaVersion, data []byte) ([]byte, error) {
		if string(data) == "broken" {
			return nil, broken
		}
		return append([]byte(v.String()+" "), data...), nil
	}}
	for data, want := range map[string]string{"data": versionText + " data", "broken": ""} {
		got, marked, err := g.Decode(t.Context(), encoded(t, g, []byte(data)))
		if string(got) != want || !marked || errors.Is(err, broken) != (want == "") {
			t.Errorf("%s becomes %q, %v, %v", data, got, marked, err)
		}
	}
	if _, data, _, err := g.Split(encoded(t, g, []byte("broken"))); string(data) != "broken" || err != nil {
		t.Errorf("Split converts: %q, %v", data, err)
	}
}

// A chain returns the data whatever codecs changed them, and also decodes the payloads of producers
// with a part of it.
func TestChainReturnsTheData(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("a record about an order. ", 100))
	glue := Glue{Version: version(t)}
	c := Chain(Gzip{}, glue)
	for name, data := range map[string][]byte{"empty": nil, "short": []byte("x"), "text": text, "a gzip file": encoded(t, Gzip{}, text)} {
		p := encoded(t, c, data)
		got, marked, err := c.Decode(t.Context(), p)
		if err != nil || !marked || !bytes.Equal(got, data) || p[0] != glueFormat {
			t.Errorf("%s: %.20q, %v, %v", name, got, marked, err)
		}
	}
	for name, p := range map[string][]byte{"gzip only": encoded(t, Gzip{}, text), "header only": encoded(t, glue, text), "plain": text} {
		if got, err := Decode(t.Context(), p, c); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %.20q, %v", name, got, err)
		}
	}
	damaged := encoded(t, glue, encoded(t, Gzip{}, text)[:20])
	if got, marked, err := c.Decode(t.Context(), damaged); !errors.Is(err, ErrDamaged) || !marked || got != nil {
		t.Errorf("damaged: %.20q, %v, %v", got, marked, err)
	}
	if _, err := Chain(Gzip{}, Glue{}).Encode(t.Context(), text); err == nil {
		t.Error("the second codec cannot encode, and Encode returns no error")
	}
	if got, marked, err := Chain().Decode(t.Context(), text); got != nil || marked || err != nil {
		t.Errorf("an empty chain: %.20q, %v, %v", got, marked, err)
	}
	codecs := []Codec{Gzip{}}
	fixed := Chain(codecs...)
	codecs[0] = Glue{}
	if p := encoded(t, fixed, text); slices.Equal(p, text) || p[0] != gzipMark[0] {
		t.Error("a chain depends on the caller's slice")
	}
}

func FuzzGlue(f *testing.F) {
	f.Add(encoded(f, Glue{Version: version(f)}, []byte("data")))
	f.Add(encoded(f, Glue{Version: version(f), Compress: true}, bytes.Repeat([]byte("data"), 100)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := Decode(t.Context(), data, Glue{MaxBytes: 1 << 20}); err == nil && len(got) > max(1<<20, len(data)) {
			t.Errorf("%d bytes", len(got))
		}
		g := Glue{Version: version(t), Compress: len(data)%2 == 0}
		if got, err := Decode(t.Context(), encoded(t, g, data), g); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%.20q becomes %.20q, %v", data, got, err)
		}
	})
}
