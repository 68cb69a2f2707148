package codec

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// tree decodes a value of any kind to plain Go values, for comparison.
func tree(d Decoder) (any, error) {
	switch k := d.Peek(); k {
	case Map:
		m := map[string]any{}
		err := d.Map(func(key []byte) error {
			name := string(key)
			v, err := tree(d)
			m[name] = v
			return err
		})
		return m, err
	case Array:
		list := []any{}
		err := d.Array(func() error {
			v, err := tree(d)
			list = append(list, v)
			return err
		})
		return list, err
	case String:
		return d.Text()
	case Bytes:
		return d.Blob()
	case Bool:
		return d.Bool()
	case Number:
		return d.Int()
	default:
		return nil, d.Skip()
	}
}

func readAll(f Format, in []byte) (any, error) {
	d := NewDecoder(f, in)
	v, err := tree(d)
	if err != nil {
		return nil, err
	}
	return v, d.End()
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The examples come from appendix A of RFC 8949. Examples with types that the API does not use are
// left out.
func TestCBORExamplesOfTheRFC(t *testing.T) {
	for in, want := range map[string]any{
		"00":                               int64(0),
		"17":                               int64(23),
		"1818":                             int64(24),
		"1903e8":                           int64(1000),
		"1a000f4240":                       int64(1000000),
		"1b000000e8d4a51000":               int64(1000000000000),
		"20":                               int64(-1),
		"3903e7":                           int64(-1000),
		"f90000":                           int64(0),
		"f93c00":                           int64(1),
		"f97bff":                           int64(65504),
		"fa47c35000":                       int64(100000),
		"fbc010000000000000":               int64(-4),
		"c11a514b67b0":                     int64(1363896240),
		"f4":                               false,
		"f5":                               true,
		"f6":                               nil,
		"f7":                               nil,
		"f0":                               nil, // simple(16)
		"f8ff":                             nil, // simple(255)
		"40":                               []byte{},
		"4401020304":                       []byte{1, 2, 3, 4},
		"5f42010243030405ff":               []byte{1, 2, 3, 4, 5},
		"60":                               "",
		"6449455446":                       "IETF",
		"62c3bc":                           "ü",
		"64f0908591":                       "𐅑",
		"7f657374726561646d696e67ff":       "streaming",
		"80":                               []any{},
		"83010203":                         []any{int64(1), int64(2), int64(3)},
		"9f018202039f0405ffff":             []any{int64(1), []any{int64(2), int64(3)}, []any{int64(4), int64(5)}},
		"a0":                               map[string]any{},
		"a26161016162820203":               map[string]any{"a": int64(1), "b": []any{int64(2), int64(3)}},
		"bf6346756ef563416d7421ff":         map[string]any{"Fun": true, "Amt": int64(-2)},
		"bf61610161629f0203ffff":           map[string]any{"a": int64(1), "b": []any{int64(2), int64(3)}},
		"d74401020304":                     []byte{1, 2, 3, 4},
		"d9d9f783010203":                   []any{int64(1), int64(2), int64(3)},
		"1b7fffffffffffffff":               int64(math.MaxInt64),
		"3b7fffffffffffffff":               int64(math.MinInt64),
		"a1 7f 61 61 61 62 ff 01":          map[string]any{"ab": int64(1)},
		"98 02 01 02":                      []any{int64(1), int64(2)},
		"5a 00000002 0102":                 []byte{1, 2},
		"a2 61 61 01 61 61 02":             map[string]any{"a": int64(2)},
		"c1 c1 c1 01":                      int64(1),
		"a1 61 78 df 61 79":                nil, // see below
		"5f ff":                            []byte{},
		"9f ff":                            []any{},
		"bf ff":                            map[string]any{},
		"7f ff":                            "",
		"f9 4000":                          int64(2),
		"1a ffffffff":                      int64(math.MaxUint32),
		"d8 20 60":                         "",
		"81 a1 61 6b 41 ff":                []any{map[string]any{"k": []byte{0xff}}},
		"a1 62 6162 9f 01 ff":              map[string]any{"ab": []any{int64(1)}},
		"fb 4000000000000000":              int64(2),
		"d9 0001 1b 0000018bcfe56800":      int64(1700000000000),
		"a1 61 61 bf 61 62 5f 41 01 ff ff": map[string]any{"a": map[string]any{"b": []byte{1}}},
		"bf 7f 61 61 ff 81 f6 61 62 f5 ff": map[string]any{"a": []any{nil}, "b": true},
		"83 f4 f5 f6":                      []any{false, true, nil},
		"a1 60 00":                         map[string]any{"": int64(0)},
		"82 5f 42 0102 42 0304 ff 41 05":   []any{[]byte{1, 2, 3, 4}, []byte{5}},
		"8f 01 01 01 01 01 01 01 01 0101010101 0101": []any{int64(1), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1)},
	} {
		got, err := readAll(CBOR, unhex(t, in))
		if in == "a1 61 78 df 61 79" { // a tag of indefinite length
			if !errors.Is(err, ErrFormat) {
				t.Errorf("%s: read as %v, %v", in, got, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read as %#v, %v, want %#v", in, got, err, want)
		}
	}
}

func TestMalformed(t *testing.T) {
	for _, in := range []string{
		"", "18", "19 00", "1c", "1f", "3f", "5c", "41", "5f 41", "5f 00 ff", "5f 5f ff ff", "61", "61 ff", "7f 41 00 ff",
		"81", "9f 01", "a1", "a1 01 01", "a1 61 61", "bf 61 61 ff", "c1", "df 00", "f8", "fa 00", "fe", "ff", "00 00",
		"1b ffffffffffffffff", "3b ffffffffffffffff", "9b ffffffffffffffff 00", "bb 7fffffffffffffff", "5b 8000000000000000 00",
		strings.Repeat("81", 40) + "00", strings.Repeat("9f", 40), strings.Repeat("c1", 40) + "00", strings.Repeat("a1 61 61", 40) + "00",
	} {
		if got, err := readAll(CBOR, unhex(t, in)); !errors.Is(err, ErrFormat) {
			t.Errorf("CBOR %q: read as %v, %v", in, got, err)
		}
	}
	for _, in := range []string{
		"", " ", "{", "}", "[", "]", `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `[1,]`, `[,1]`, `[1 2]`, `{"a":1 "b":2}`, "nul", "nulll", "tru", "01",
		"-", "1.", ".5", "1e", "1e+", "+1", "0x1", "NaN", `"`, `"a`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"\n\"", "\"\x00\"", "\"\xff\"", `1 2`, `{}}`,
		"1e400", "9223372036854775808", strings.Repeat("[", 40) + strings.Repeat("]", 40), strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40),
		"\"\\n\xff\"", "'a'", "\ufeff{}",
	} {
		if got, err := readAll(JSON, []byte(in)); !errors.Is(err, ErrFormat) {
			t.Errorf("JSON %q: read as %v, %v", in, got, err)
		}
	}
}

func TestJSON(t *testing.T) {
	for in, want := range map[string]any{
		` { "a" : [ 1 , -2 , 1e3 , 1.0 ] , "b" : null , "c" : { } , "d" : [ ] } `: map[string]any{"a": []any{int64(1), int64(-2), int64(1000), int64(1)}, "b": nil, "c": map[string]any{}, "d": []any{}},
		`"\"\\\/\b\f\n\r\t\u00fc\ud83d\udef6"`:                                    "\"\\/\b\f\n\r\tü🛶",
		`"\ud83d"`:                                                                "\ufffd",
		`"\ud83dx\udef6"`:                                                         "\ufffdx\ufffd",
		`"\ud83d\u0041"`:                                                          "\ufffdA",
		`{"a\u0062c\"":true,"x":"\n"}`:                                            map[string]any{"abc\"": true, "x": "\n"},
		`{"\u0061":{"\u0062":"\u0063"},"\u0064":false}`:                           map[string]any{"a": map[string]any{"b": "c"}, "d": false},
		`-0`:                  int64(0),
		`9223372036854775807`: int64(math.MaxInt64),
	} {
		if got, err := readAll(JSON, []byte(in)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read as %#v, %v, want %#v", in, got, err, want)
		}
	}
}

func TestTypedMembers(t *testing.T) {
	type all struct {
		S  Opt[string]
		I  Opt[int64]
		B  Opt[bool]
		D  Opt[[]byte]
		T  Opt[time.Time]
		L  []string
		M  map[string]string
		In Opt[string]
	}
	fields := func(v *all) Fields {
		return Fields{
			{"S", &v.S}, {"I", &v.I}, {"B", &v.B}, {"D", &v.D}, {"T", &v.T}, {"L", &v.L}, {"M", &v.M},
			{"N", Fields{{"In", &v.In}}},
			{"F", func(d Decoder) error { return d.Skip() }},
		}
	}
	want := all{
		S: Some("s"), I: Some[int64](-5), B: Some(true), D: Some([]byte{0, 255}), T: Some(time.UnixMilli(1459799926480)),
		L: []string{"x", "y"}, M: map[string]string{"k": "v"}, In: Some("in"),
	}
	for f, in := range map[Format][]byte{
		JSON: []byte(`{"S":"s","I":-5,"B":true,"D":"AP8=","T":1459799926.480,"L":["x","y"],"M":{"k":"v"},"N":{"In":"in","Out":1},"F":[{}],"S2":1}`),
		CBOR: unhex(t, `a9 6153 6173 6149 24 6142 f5 6144 42 00ff 6154 c1 1b 00000153e2db26d0 614c 82 6178 6179 614d a1 616b 6176 614e a1 62496e 62696e 6146 00`),
	} {
		var got all
		d := NewDecoder(f, in)
		if err := errors.Join(fields(&got).Decode(d), d.End()); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read as %+v, %v", f, got, err)
		}
	}
	var absent all
	if err := fields(&absent).Decode(NewDecoder(JSON, []byte(`{"S":null,"I":null,"L":null,"N":null}`))); err != nil || !reflect.DeepEqual(absent, all{}) {
		t.Errorf("null: read as %+v, %v", absent, err)
	}
	for _, in := range []string{
		`{"S":1}`, `{"S":true}`, `{"I":"1"}`, `{"B":"x"}`, `{"B":1}`, `{"D":[]}`, `{"D":"A"}`, `{"D":"AP8=\n"}`, `{"T":"2016"}`, `{"T":1e300}`,
		`{"L":"x"}`, `{"L":[1]}`, `{"L":[null]}`, `{"M":[]}`, `{"M":{"k":1}}`, `{"M":{"k":null}}`, `{"N":"x"}`, `{"N":{"In":1}}`, `[]`, `null`, `"x"`,
	} {
		var v all
		if err := fields(&v).Decode(NewDecoder(JSON, []byte(in))); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: read as %+v, %v", in, v, err)
		}
	}
}

func TestBlobsDoNotShareMemory(t *testing.T) {
	for f, in := range map[Format][]byte{
		JSON: []byte(`["AQID","","BAUG"]`),
		CBOR: unhex(t, "83 43 010203 40 43 040506"),
	} {
		d := NewDecoder(f, in)
		var got [][]byte
		if err := d.Array(func() error {
			b, err := d.Blob()
			got = append(got, b)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		clear(in)
		for i := range got {
			got[i] = append(got[i], 0xee) // must not overwrite the next blob
		}
		if want := [][]byte{{1, 2, 3, 0xee}, {0xee}, {4, 5, 6, 0xee}}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v", f, got)
		}
	}
}

// encodeTree encodes a value that tree returned.
func encodeTree(e *Encoder, v any) {
	switch v := v.(type) {
	case map[string]any:
		e.Map()
		for k, m := range v {
			e.Key(k)
			encodeTree(e, m)
		}
		e.End()
	case []any:
		e.Array(len(v))
		for _, m := range v {
			e.Elem()
			encodeTree(e, m)
		}
		e.End()
	case string:
		e.Text(v)
	case []byte:
		e.Blob(v)
	case int64:
		e.Int(v)
	case bool:
		e.Bool(v)
	case nil:
		e.Null()
	}
}

func TestEncodersAreReadBack(t *testing.T) {
	long := map[string]any{}
	for i := range 23 {
		long[fmt.Sprint(i)] = int64(i)
	}
	value := map[string]any{
		"text": "a\"b\\c\nd\te\x01f\x7fü🛶</>&\u2028", "empty": "", "list": []any{int64(1), "x", nil, true, false, []any{}, map[string]any{}},
		"big": int64(math.MaxInt64), "small": int64(math.MinInt64), "long": long, "many": make([]any, 300),
	}
	for _, n := range []int64{0, 23, 24, 255, 256, 65535, 65536, 1 << 32, -1, -24, -25, -257} {
		value[fmt.Sprint(n)] = n
	}
	for _, n := range []int{23, 24, 255, 256, 65536} {
		value[fmt.Sprint("t", n)] = strings.Repeat("t", n)
	}
	delete(value, "255") // a structure has at most 23 fields
	for _, f := range []Format{JSON, CBOR} {
		for _, indefinite := range []bool{false, true} {
			e := NewEncoder(f, []byte("before"), indefinite)
			e.Grow(10)
			e.Map()
			rest := map[string]any{}
			for k, v := range value { // in halves, because of the limit of 23 fields
				rest[k] = v
			}
			e.Key("value").Array(len(rest))
			for k, v := range rest {
				e.Elem().Map()
				e.Key(k)
				encodeTree(e, v)
				e.End()
			}
			e.End()
			e.End()
			if len(e.open) != 0 || e.Format() != f {
				t.Fatal("something is open")
			}
			out, had := bytes.CutPrefix(e.Bytes(), []byte("before"))
			if !had {
				t.Fatal("what was in the buffer is gone")
			}
			if f == JSON && !json.Valid(out) {
				t.Errorf("encoding/json refuses %s", out)
			}
			got, err := readAll(f, out)
			if err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			back := map[string]any{}
			for _, m := range got.(map[string]any)["value"].([]any) {
				for k, v := range m.(map[string]any) {
					back[k] = v
				}
			}
			if !reflect.DeepEqual(back, value) {
				t.Errorf("%s, indefinite %v: read back as %v", f, indefinite, back)
			}
		}
	}
}

func TestBlobsAndTimes(t *testing.T) {
	for _, ms := range []int64{0, 1, 999, 1000, 1459799926480, -1, -1500} {
		for _, f := range []Format{JSON, CBOR} {
			e := NewEncoder(f, nil, false)
			e.Time(time.UnixMilli(ms))
			got, err := NewDecoder(f, e.Bytes()).Time()
			if err != nil || got.UnixMilli() != ms {
				t.Errorf("%s: %d came back as %d, %v", f, ms, got.UnixMilli(), err)
			}
		}
	}
	e := NewEncoder(CBOR, nil, false)
	e.Millis(1700000000000)
	if got := hex.EncodeToString(e.Bytes()); got != "c11b0000018bcfe56800" {
		t.Errorf("a timestamp is %s", got)
	}
	e = NewEncoder(JSON, nil, false)
	e.Millis(1459799926048)
	if got := string(e.Bytes()); got != "1459799926.048" {
		t.Errorf("a timestamp is %s", got)
	}
	e = NewEncoder(CBOR, nil, false)
	e.Blob([]byte{1, 2})
	if got := hex.EncodeToString(e.Bytes()); got != "420102" {
		t.Errorf("a blob is %s", got)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"x",{"b":null}],"c":"\u00fc"}`, "[]", `"\ud83d\udef6"`, "\xa2\x61a\x01\x61b\x82\x02\x03", "\xbf\x61a\x5f\x41\x01\x40\xff\xff", "\xc1\x1b\x00\x00\x01\x8b\xcf\xe5\x68\x00", "\xf9\x3c\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, format := range []Format{JSON, CBOR} {
			before := bytes.Clone(in)
			got, err := readAll(format, in)
			if !bytes.Equal(in, before) {
				t.Fatal("the input was changed")
			}
			d := NewDecoder(format, in)
			skipErr := d.Skip()
			if skipErr == nil {
				skipErr = d.End()
			}
			if err == nil && skipErr != nil {
				t.Fatalf("%s: read but not skipped: %v", format, skipErr)
			}
			if format == JSON && skipErr == nil && !json.Valid(in) {
				t.Fatalf("encoding/json refuses what was accepted: %q", in)
			}
			if err != nil {
				continue
			}
			if wide(got) {
				continue
			}
			// The decoded value must survive encoding and decoding in both formats.
			for _, indefinite := range []bool{false, true} {
				e := NewEncoder(CBOR, nil, indefinite)
				encodeTree(e, got)
				again, err := readAll(CBOR, e.Bytes())
				if err != nil || !reflect.DeepEqual(got, again) {
					t.Fatalf("%#v was written as %x and read as %#v, %v", got, e.Bytes(), again, err)
				}
			}
			// A typed read of any input must return a value or an error.
			for _, read := range []func(Decoder) error{
				func(d Decoder) error { _, err := d.Blob(); return err },
				func(d Decoder) error { _, err := d.Time(); return err },
				func(d Decoder) error { _, err := d.Text(); return err },
				func(d Decoder) error { _, err := d.Int(); return err },
				func(d Decoder) error { _, err := d.Bool(); return err },
			} {
				if err := read(NewDecoder(format, in)); err != nil && !errors.Is(err, ErrFormat) {
					t.Fatal(err)
				}
			}
		}
	})
}

// wide reports whether a structure has more fields than an Encoder supports.
func wide(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 23 {
			return true
		}
		for _, m := range v {
			if wide(m) {
				return true
			}
		}
	case []any:
		for _, m := range v {
			if wide(m) {
				return true
			}
		}
	}
	return false
}
