package wire

import (
	"bytes"
	"errors"
	"net/http"
	"testing"
)

// purse is a Memory that can be empty.
type purse struct{ left, most, used int }

func (m *purse) TryTake(least, most int) int {
	n := min(most, m.left)
	if n < least {
		return 0
	}
	m.take(n)
	return n
}

func (m *purse) take(n int) {
	m.left, m.used = m.left-n, m.used+n
	m.most = max(m.most, m.used)
}

func (m *purse) TakeExcess(n int) { m.take(n) }
func (m *purse) Give(n int)       { m.take(-n); m.most = max(m.most, m.used) }

// What a page lives in is taken before it is there, and given back once it is not needed, whatever
// happened.
func TestMemoryIsAskedFirstAndGivenBack(t *testing.T) {
	want := samplePage(200, 1000)
	cbor := (&cborStyle{}).encode(want)
	for _, reuse := range []bool{false, true} {
		for name, c := range map[string]struct {
			window, purse int
			length        int64
			fails         bool
			most          int // bytes ever taken
		}{
			"whole":                          {0, 1 << 20, int64(len(cbor)), false, 300_000},
			"whole, of unknown length":       {0, 1 << 20, -1, false, 800_000},
			"whole, with too little":         {0, 100_000, int64(len(cbor)), true, 0},
			"unknown length, too little":     {0, 200_000, -1, true, 200_000},
			"in parts":                       {20_000, 1 << 20, int64(len(cbor)), false, 30_000},
			"in parts smaller than a window": {100_000, 15_000, int64(len(cbor)), true, 15_000},
			"in parts, with too little":      {20_000, 3_000, int64(len(cbor)), true, 3_000},
		} {
			m := &purse{left: c.purse}
			rd := &reading{reuse: reuse, most: mostBody}
			p := Page{Memory: m}
			var err error
			records := 0
			if c.window == 0 {
				var b []byte
				if b, err = rd.body(bytes.NewReader(cbor), c.length, &p); err == nil {
					err = Decode(CBOR, b, &p)
					records = len(p.Records)
				}
			} else {
				pr := &partsReader{body: bytes.NewReader(cbor), left: c.length, window: c.window, rd: rd}
				for err == nil && !p.Last {
					p.Reset()
					err = pr.next(&p)
					records += len(p.Records)
				}
				pr.close()
			}
			if name == "in parts smaller than a window" && records < 10 {
				t.Errorf("reuse %v: %d records although one part fitted", reuse, records)
			}
			if short := (*NoMemoryError)(nil); errors.As(err, &short) != c.fails || (err == nil && records != 200) {
				t.Errorf("%s, reuse %v: %d records, %v", name, reuse, records, err)
			}
			if m.most > c.most || (!c.fails && m.used == 0 && c.window == 0) {
				t.Errorf("%s, reuse %v: %d bytes were taken at most, want up to %d", name, reuse, m.most, c.most)
			}
			p.Release()
			p.Release()
			if m.used != 0 || p.Memory == nil {
				t.Errorf("%s, reuse %v: %d bytes were not given back", name, reuse, m.used)
			}
		}
	}
}

func TestACallTakesAndGivesBackMemoryOnEveryPath(t *testing.T) {
	want := samplePage(100, 1000)
	for _, path := range []Path{OwnCall, UnderSDK, PlainSDK} {
		server := newFake(t, func(w http.ResponseWriter, r seen) {
			if f := r.Header.Get("Content-Type"); f == jsonType {
				write(w, 200, f, string((&jsonStyle{}).encode(want)))
			} else {
				write(w, 200, cborType, string((&cborStyle{}).encode(want)))
			}
		})
		m := &purse{left: 1 << 30}
		c := newCaller(t, fakeClient(server.URL), Options{Path: path, Reuse: true})
		p := Page{Memory: m}
		for range 3 {
			if err := c.GetRecords(t.Context(), Request{Iterator: "it"}, &p); err != nil {
				t.Fatal(path, err)
			}
			if len(p.Records) != 100 || m.used < 100_000 || m.used > 200_000 {
				t.Errorf("%s: %d records, %d bytes taken", path, len(p.Records), m.used)
			}
		}
		p.Release()
		if m.used != 0 {
			t.Errorf("%s: %d bytes were not given back", path, m.used)
		}
		if path == PlainSDK {
			continue
		}
		m.left = 1000
		if short := (*NoMemoryError)(nil); !errors.As(c.GetRecords(t.Context(), Request{Iterator: "it"}, &p), &short) || short.Bytes < 1000 {
			t.Errorf("%s: no error about memory", path)
		}
		if m.used != 0 {
			t.Errorf("%s: %d bytes were not given back by a failed call", path, m.used)
		}
	}
}
