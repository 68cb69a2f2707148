package payload

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

func encoded(t testing.TB, c Codec, data []byte) []byte {
	t.Helper()
	before := bytes.Clone(data)
	p, err := c.Encode(context.Background(), data)
	if err != nil || !bytes.Equal(data, before) {
		t.Fatalf("%.20q becomes %.20q, %v", before, data, err)
	}
	return p
}

// Whatever the data are, decoding returns them, and compression never makes them larger unless they
// look compressed.
func TestGzipReturnsTheData(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 10_000)
	for i := range random {
		random[i] = byte(rnd.Uint32())
	}
	text := []byte(strings.Repeat("a record about an order. ", 1000))
	inner := encoded(t, Gzip{}, text)
	for _, c := range []struct {
		name       string
		data       []byte
		compressed bool
	}{
		{"empty", nil, false},
		{"short", []byte("x"), false},
		{"text", text, true},
		{"random", random, false},
		{"random with the mark", append(bytes.Clone(gzipMark), random...), true},
		{"the mark", gzipMark, true},
		{"a part of the mark", gzipMark[:2], false},
		{"compressed before", inner, true},
	} {
		for _, level := range []int{0, 1, 9} {
			p := encoded(t, Gzip{Level: level}, c.data)
			got, err := Decode(t.Context(), p, Gzip{})
			if err != nil || !bytes.Equal(got, c.data) || bytes.HasPrefix(p, gzipMark) != c.compressed {
				t.Errorf("%s, level %d: %d bytes become %d, and %.20q, %v", c.name, level, len(c.data), len(p), got, err)
			}
		}
	}
	if len(inner) > len(text)/50 {
		t.Errorf("%d bytes of text become %d", len(text), len(inner))
	}
}

func TestGzipReportsWhatItCannotDecode(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("text ", 1000))
	p := encoded(t, Gzip{}, text)
	flipped := bytes.Clone(p)
	flipped[len(flipped)-5] ^= 1 // in the checksum
	for name, c := range map[string]struct {
		payload []byte
		codec   Gzip
		want    error
	}{
		"only the mark":     {gzipMark, Gzip{}, ErrDamaged},
		"cut off":           {p[:len(p)-1], Gzip{}, ErrDamaged},
		"a wrong checksum":  {flipped, Gzip{}, ErrDamaged},
		"one byte too many": {p, Gzip{MaxBytes: len(text) - 1}, ErrTooLarge},
	} {
		if got, err := Decode(t.Context(), c.payload, c.codec); !errors.Is(err, c.want) || got != nil {
			t.Errorf("%s: %.20q, %v, want %v", name, got, err, c.want)
		}
	}
	for _, most := range []int{len(text), math.MaxInt} {
		if got, err := Decode(t.Context(), p, Gzip{MaxBytes: most}); err != nil || !bytes.Equal(got, text) {
			t.Errorf("with the limit %d: %d bytes, %v", most, len(got), err)
		}
	}
	if _, err := (Gzip{Level: 10}).Encode(t.Context(), text); err == nil || !strings.Contains(err.Error(), "Gzip.Level is 10") {
		t.Errorf("level 10: %v", err)
	}
	if got, err := Decode(t.Context(), p); err != nil || !bytes.Equal(got, p) {
		t.Errorf("without codecs: %d bytes, %v", len(got), err)
	}
}

func TestGzipMayBeUsedConcurrently(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 100 {
				data := []byte(strings.Repeat(fmt.Sprint(i, " ", j, " "), 50))
				p, err := Gzip{}.Encode(context.Background(), data)
				if err != nil {
					t.Error(err)
				}
				if j%10 == 9 { // a reader that failed is used again
					_, _ = Decode(context.Background(), p[:len(p)/2], Gzip{})
				}
				if got, err := Decode(context.Background(), p, Gzip{}); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%.20q, %v, want %.20q", got, err, data)
				}
			}
		})
	}
	all.Wait()
}

// contains matches data with a word.
type contains string

func (c contains) Match(data []byte, _ string, _ time.Time) (matches, isJSON bool) {
	return bytes.Contains(data, []byte(c)), data[0] == '{'
}

func TestMatchingDecodes(t *testing.T) {
	t.Parallel()
	m := Matching(contains("order"), Gzip{})
	data := []byte("{" + strings.Repeat("an order ", 100))
	for name, c := range map[string]struct {
		payload         []byte
		matches, isJSON bool
	}{
		"encoded": {encoded(t, Gzip{}, data), true, true},
		"plain":   {data, true, true},
		"other":   {[]byte("{}"), false, true},
		"damaged": {encoded(t, Gzip{}, data)[:20], false, false},
	} {
		if matches, isJSON := m.Match(c.payload, "k", time.Time{}); matches != c.matches || isJSON != c.isJSON {
			t.Errorf("%s: %v, %v", name, matches, isJSON)
		}
	}
}

func FuzzGzip(f *testing.F) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte("data"))
	_ = w.Close()
	f.Add(b.Bytes())
	f.Add(gzipMark)
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := Decode(t.Context(), data, Gzip{MaxBytes: 1 << 20}); err == nil && len(got) > 1<<20 {
			t.Errorf("%d bytes", len(got))
		}
		if got, err := Decode(t.Context(), encoded(t, Gzip{}, data), Gzip{}); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%.20q becomes %.20q, %v", data, got, err)
		}
	})
}
