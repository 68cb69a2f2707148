package codec_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

// The memory of a page is taken before it is used. It is returned when it is no longer needed,
// after success and after errors.
func TestMemoryIsAskedFirstAndGivenBack(t *testing.T) {
	want := answers.Sample(200, 1000)
	cbor := answers.CBOR{}.Encode(want)
	for _, reuse := range []bool{false, true} {
		for name, c := range map[string]struct {
			window, purse int
			length        int64
			fails         bool
			most          int // maximum of bytes taken
		}{
			"whole":                          {0, 1 << 20, int64(len(cbor)), false, 300_000},
			"whole, of unknown length":       {0, 1 << 20, -1, false, 800_000},
			"whole, with too little":         {0, 100_000, int64(len(cbor)), true, 0},
			"unknown length, too little":     {0, 200_000, -1, true, 200_000},
			"in parts":                       {20_000, 1 << 20, int64(len(cbor)), false, 30_000},
			"in parts smaller than a window": {100_000, 15_000, int64(len(cbor)), true, 15_000},
			"in parts, with too little":      {20_000, 3_000, int64(len(cbor)), true, 3_000},
		} {
			m := &answers.Purse{Left: c.purse}
			rd := &codec.Bodies{Reuse: reuse, Most: codec.MostBody}
			p := codec.Page{Memory: m}
			var err error
			records := 0
			if c.window == 0 {
				var b []byte
				if b, err = rd.Read(bytes.NewReader(cbor), c.length, &p); err == nil {
					err = codec.Decode(codec.CBOR, b, &p)
					records = len(p.Records)
				}
			} else {
				pr := &codec.Parts{Body: bytes.NewReader(cbor), Left: c.length, Window: c.window, Bodies: rd}
				for err == nil && !p.Last {
					p.Reset()
					err = pr.Next(&p)
					records += len(p.Records)
				}
				pr.Close()
			}
			if name == "in parts smaller than a window" && records < 10 {
				t.Errorf("reuse %v: %d records although one part fitted", reuse, records)
			}
			if short := (*codec.NoMemoryError)(nil); errors.As(err, &short) != c.fails || (err == nil && records != 200) {
				t.Errorf("%s, reuse %v: %d records, %v", name, reuse, records, err)
			}
			if m.Most > c.most || (!c.fails && m.Used == 0 && c.window == 0) {
				t.Errorf("%s, reuse %v: %d bytes were taken at most, want up to %d", name, reuse, m.Most, c.most)
			}
			p.Release()
			p.Release()
			if m.Used != 0 || p.Memory == nil {
				t.Errorf("%s, reuse %v: %d bytes were not given back", name, reuse, m.Used)
			}
		}
	}
}
