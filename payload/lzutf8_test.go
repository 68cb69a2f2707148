package payload

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// The npm package lzutf8 0.6.3 wrote the first three payloads, and returns the same as the codec
// for all of them.
func TestLZUTF8Decodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ payload, want string }{
		{"61626364c404", "abcdabcd"},
		{"6162636465c505", "abcdeabcde"},
		{"61df01df016161", strings.Repeat("a", 65)},
		{"61626364c504", "abcdabcda"},
		{"61626364c603", "abcdbcdbcd"},
		{"61626364e40004", "abcdabcd"},
		{"6162c002", "ab"},
		{"61e20001", "aaa"},
		{"6162f09f9880c404", "ab😀😀"},
		{"61626364f80004", "abcd" + strings.Repeat("abcd", 6)},
	} {
		p, err := hex.DecodeString(c.payload)
		if err != nil {
			t.Fatal(err)
		}
		if got, marked, err := (LZUTF8{}).Decode(t.Context(), p); string(got) != c.want || !marked || err != nil {
			t.Errorf("%s: %q, %v, %v", c.payload, got, marked, err)
		}
		if got, _, err := (LZUTF8{MaxBytes: len(c.want)}).Decode(t.Context(), p); string(got) != c.want || err != nil {
			t.Errorf("%s, at the limit: %q, %v", c.payload, got, err)
		}
		if got, marked, err := (LZUTF8{MaxBytes: len(c.want) - 1}).Decode(t.Context(), p); got != nil || !marked || !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s, above the limit: %q, %v, %v", c.payload, got, marked, err)
		}
	}
	for _, plain := range []string{"", "a", "text", "ä€😀", "\xc4", "\xff\xff"} {
		if got, err := Decode(t.Context(), []byte(plain), LZUTF8{}); string(got) != plain || err != nil {
			t.Errorf("%q: %q, %v", plain, got, err)
		}
	}
	for _, damaged := range []string{"c401", "61c402", "61c400", "61e400", "61e40002", "616263ff7f"} {
		p, err := hex.DecodeString(damaged)
		if err != nil {
			t.Fatal(err)
		}
		if got, marked, err := (LZUTF8{}).Decode(t.Context(), p); got != nil || !marked || !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %q, %v, %v", damaged, got, marked, err)
		}
	}
}

func TestLZUTF8EncodesText(t *testing.T) {
	t.Parallel()
	text := []byte("Grüße 😀")
	if got := encoded(t, LZUTF8{}, text); !bytes.Equal(got, text) {
		t.Errorf("%q", got)
	}
	if got, err := (LZUTF8{}).Encode(t.Context(), []byte("a\xff")); got != nil || err == nil {
		t.Errorf("%q, %v", got, err)
	}
}

func FuzzLZUTF8(f *testing.F) {
	f.Add([]byte("abcd\xc4\x04"))
	f.Add([]byte("a\xff\x00\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, marked, err := LZUTF8{MaxBytes: 1 << 10}.Decode(t.Context(), data)
		if len(got) > 1<<10 || !marked && (got != nil || err != nil) || err != nil && got != nil {
			t.Errorf("%.20q, %v, %v", got, marked, err)
		}
		if p, err := (LZUTF8{}).Encode(t.Context(), data); err == nil {
			if got, err := Decode(t.Context(), p, LZUTF8{}); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%.20q becomes %.20q, %v", data, got, err)
			}
		}
	})
}
