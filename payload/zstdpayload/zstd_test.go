package zstdpayload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/weir-go/weir/payload"
)

func codec(t testing.TB, o Options) *Codec {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func encoded(t testing.TB, c *Codec, data []byte) []byte {
	t.Helper()
	before := bytes.Clone(data)
	p, err := c.Encode(context.Background(), data)
	if err != nil || !bytes.Equal(data, before) {
		t.Fatalf("%.20q becomes %.20q, %v", before, data, err)
	}
	return p
}

// Decoding returns any data, and compression never makes them larger unless they look compressed.
func TestCodecReturnsTheData(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 10_000)
	for i := range random {
		random[i] = byte(rnd.Uint32())
	}
	text := []byte(strings.Repeat("a record about an order. ", 1000))
	inner := encoded(t, codec(t, Options{}), text)
	for _, level := range []int{0, 1, 3, 6, 10, 22} {
		c := codec(t, Options{Level: level})
		for _, d := range []struct {
			name       string
			data       []byte
			compressed bool
		}{
			{"empty", nil, false},
			{"short", []byte("x"), false},
			{"text", text, true},
			{"10 MiB", bytes.Repeat([]byte("0123456789abcdef"), 10<<16), true},
			{"random", random, false},
			{"random with the mark", append(bytes.Clone(mark), random...), true},
			{"the mark", mark, true},
			{"a part of the mark", mark[:3], false},
			{"compressed before", inner, true},
		} {
			p := encoded(t, c, d.data)
			got, err := payload.Decode(t.Context(), p, c)
			if err != nil || !bytes.Equal(got, d.data) || bytes.HasPrefix(p, mark) != d.compressed {
				t.Errorf("%s, level %d: %d bytes become %d, and %.20q, %v", d.name, level, len(d.data), len(p), got, err)
			}
		}
	}
	if len(inner) > len(text)/50 {
		t.Errorf("%d bytes of text become %d", len(text), len(inner))
	}
}

func TestCodecReportsWhatItCannotDecode(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("text ", 1000))
	c := codec(t, Options{})
	p := encoded(t, c, text)
	flipped := bytes.Clone(p)
	flipped[len(flipped)-1] ^= 1 // in the checksum
	var streamed bytes.Buffer    // its header does not contain its size
	w, err := zstd.NewWriter(&streamed, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(bytes.Repeat([]byte("a"), 1<<20))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]struct {
		payload []byte
		most    int
		want    error
	}{
		"only the mark":        {mark, 0, payload.ErrDamaged},
		"cut off":              {p[:len(p)-1], 0, payload.ErrDamaged},
		"a wrong checksum":     {flipped, 0, payload.ErrDamaged},
		"something after it":   {append(bytes.Clone(p), "more"...), 0, payload.ErrDamaged},
		"one byte too many":    {p, len(text) - 1, payload.ErrTooLarge},
		"no size, too large":   {streamed.Bytes(), 1<<20 - 1, payload.ErrTooLarge},
		"two frames too large": {append(bytes.Clone(p), p...), 2*len(text) - 1, payload.ErrTooLarge},
		"a window of 1 GiB":    {append(bytes.Clone(mark), 0, 20<<3, 1, 0, 0), 0, payload.ErrTooLarge},
		// A frame of one segment with 4 GiB.
		"a size beyond all limits": {append(bytes.Clone(mark), 0xa0, 0xff, 0xff, 0xff, 0xff, 1, 0, 0), 0, payload.ErrTooLarge},
	} {
		c := codec(t, Options{MaxBytes: d.most})
		if got, err := payload.Decode(t.Context(), d.payload, c); !errors.Is(err, d.want) || got != nil {
			t.Errorf("%s: %.20q, %v, want %v", name, got, err, d.want)
		}
	}
	for name, d := range map[string]struct {
		payload []byte
		want    []byte
	}{
		"at the limit": {p, text},
		"no size":      {streamed.Bytes(), bytes.Repeat([]byte("a"), 1<<20)},
		"two frames":   {append(bytes.Clone(p), p...), append(bytes.Clone(text), text...)},
		"plain":        {text, text},
	} {
		c := codec(t, Options{MaxBytes: len(d.want)})
		if got, err := payload.Decode(t.Context(), d.payload, c); err != nil || !bytes.Equal(got, d.want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

// A header that claims a large size costs little memory if the payload is small.
func TestClaimedSizesAreNotAllocated(t *testing.T) {
	claim := append(bytes.Clone(mark), 0xa0, 0, 0, 0, 0x03, 1, 0, 0) // 48 MiB
	c := codec(t, Options{})
	_, _, _ = c.Decode(t.Context(), claim)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, marked, err := c.Decode(t.Context(), claim)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; !marked || !errors.Is(err, payload.ErrDamaged) || got > 1<<20 {
		t.Errorf("%d bytes for a payload of %d, %v", got, len(claim), err)
	}
}

func TestNewNamesTheWrongOption(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{
		"Options.Level is 23":               {Level: 23},
		"Options.Level is -1":               {Level: -1},
		"Options.MaxBytes is -1":            {MaxBytes: -1},
		fmt.Sprint("MaxBytes is ", 1<<30+1): {MaxBytes: 1<<30 + 1},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

func TestCodecMayBeUsedConcurrently(t *testing.T) {
	t.Parallel()
	c := codec(t, Options{})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 100 {
				data := []byte(strings.Repeat(fmt.Sprint(i, " ", j, " "), 50))
				p, err := c.Encode(context.Background(), data)
				if err != nil {
					t.Error(err)
				}
				if j%10 == 9 { // a decoder that failed is used again
					_, _ = payload.Decode(context.Background(), p[:len(p)/2], c)
				}
				if got, err := payload.Decode(context.Background(), p, c); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%.20q, %v, want %.20q", got, err, data)
				}
			}
		})
	}
	all.Wait()
}

// order is a record of usual size, 1 KiB.
func order(i int) []byte {
	b := fmt.Appendf(nil, `{"kind":"order","number":%d,"items":[`, i)
	for j := 0; len(b) < 1000; j++ {
		b = fmt.Appendf(b, `{"article":"%x","count":%d},`, i*7919+j*104729, j%5+1)
	}
	return append(b[:len(b)-1], "]}"...)
}

// Each record costs one allocation, for its result.
func TestAllocationsPerRecord(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes sync.Pool drop objects")
	}
	c := codec(t, Options{})
	data := order(1)
	p := encoded(t, c, data)
	// There is an encoder and a decoder for each processor. Each allocates when it is used first,
	// and the encoders do so again when they are used for the second time.
	for range 2 * runtime.GOMAXPROCS(0) {
		_, _ = c.Encode(t.Context(), data)
		_, _, _ = c.Decode(t.Context(), p)
	}
	if n := testing.AllocsPerRun(200, func() { _, _ = c.Encode(context.Background(), data) }); n > 1 {
		t.Errorf("encoding: %v allocations", n)
	}
	if n := testing.AllocsPerRun(200, func() { _, _, _ = c.Decode(context.Background(), p) }); n > 1 {
		t.Errorf("decoding: %v allocations", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	c := codec(b, Options{})
	for _, k := range []struct {
		name  string
		codec payload.Codec
	}{{"zstd", c}, {"gzip", payload.Gzip{}}} {
		var data, encoded [100][]byte
		size := 0
		for i := range data {
			data[i] = order(i)
			encoded[i], _ = k.codec.Encode(b.Context(), data[i])
			size += len(encoded[i])
		}
		b.Run(k.name+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data[0])))
			for i := 0; b.Loop(); i++ {
				_, _ = k.codec.Encode(b.Context(), data[i%len(data)])
			}
			b.ReportMetric(float64(size)/float64(len(data)), "bytes/record")
		})
		b.Run(k.name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data[0])))
			for i := 0; b.Loop(); i++ {
				if _, _, err := k.codec.Decode(b.Context(), encoded[i%len(encoded)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzCodec(f *testing.F) {
	c := codec(f, Options{MaxBytes: 1 << 20})
	f.Add(encoded(f, c, []byte(strings.Repeat("data ", 100))))
	f.Add(mark)
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := payload.Decode(t.Context(), data, c); err == nil && len(got) > max(1<<20, len(data)) {
			t.Errorf("%d bytes", len(got))
		}
		if got, err := payload.Decode(t.Context(), encoded(t, c, data), c); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%.20q becomes %.20q, %v", data, got, err)
		}
	})
}
