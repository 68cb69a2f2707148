package codec_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

// readParts reads an answer in parts and joins them.
func readParts(body io.Reader, length int64, window int, reuse bool) (all *codec.Page, parts int, err error) {
	pr := &codec.Parts{Body: body, Left: length, Window: window, Piece: window/3 + 1, Bodies: &codec.Bodies{Reuse: reuse, Most: codec.MostBody}}
	all = &codec.Page{Behind: -1}
	var p codec.Page
	for {
		p.Release()
		if err := pr.Next(&p); err != nil {
			return all, parts, err
		}
		parts++
		for _, r := range p.Records {
			r.Key, r.SequenceNumber = strings.Clone(r.Key), strings.Clone(r.SequenceNumber)
			if r.Data != nil {
				r.Data = append(make([]byte, 0, len(r.Data)), r.Data...)
			}
			all.Records = append(all.Records, r)
		}
		all.Bytes += p.Bytes
		if misplaced, marked := answers.Noted(p.Records); p.Misplaced != misplaced || p.Marked != marked {
			return all, parts, fmt.Errorf("misplaced %d, marked %v, want %d, %v", p.Misplaced, p.Marked, misplaced, marked)
		}
		all.Misplaced, all.Marked = answers.Noted(all.Records)
		if p.Last {
			all.Next, all.Behind, all.Children, all.Last = p.Next, p.Behind, p.Children, true
			return all, parts, nil
		}
		if len(p.Records) == 0 || p.Next != "" || p.Children != nil {
			return all, parts, fmt.Errorf("a part that is not the last has %d records, next %q", len(p.Records), p.Next)
		}
	}
}

func TestPartsMakeTheWhole(t *testing.T) {
	styles := []answers.CBOR{{}, {Open: true}, {Open: true, Chunks: true, Extra: true}, {Last: true, Extra: true}, {TextData: true}, {NullKey: true, Encryption: true, Last: true, Open: true}}
	for i, st := range styles {
		for name, want := range pages() {
			body := st.Encode(want)
			for _, window := range []int{1, 7, 100, 1000, 4096, 1 << 20} {
				for _, length := range []int64{int64(len(body)), -1} {
					if window < 100 && len(body) > 10_000 {
						continue // slow and without new cases
					}
					got, parts, err := readParts(bytes.NewReader(body), length, window, window%2 == 0)
					if err != nil {
						t.Fatalf("style %d, %s, window %d, length %d: %v", i, name, window, length, err)
					}
					if d := answers.Differ(got, want, answers.EqualTime); d != "" {
						t.Errorf("style %d, %s, window %d, length %d: %s", i, name, window, length, d)
					}
					if window >= len(body) && parts != 1 {
						t.Errorf("style %d, %s: %d parts of %d bytes in a window of %d", i, name, parts, len(body), window)
					}
				}
			}
		}
	}
}

func TestPartsFromASlowReader(t *testing.T) {
	want := pages()["odd records"]
	body := answers.CBOR{}.Encode(want)
	for name, r := range map[string]io.Reader{
		"one byte": iotest.OneByteReader(bytes.NewReader(body)), "halves": iotest.HalfReader(bytes.NewReader(body)), "EOF with data": iotest.DataErrReader(bytes.NewReader(body)),
	} {
		got, _, err := readParts(r, -1, 4096, true)
		if err != nil {
			t.Fatal(name, err)
		}
		if d := answers.Differ(got, want, answers.EqualTime); d != "" {
			t.Error(name, d)
		}
	}
}

func TestBrokenPartsAreErrors(t *testing.T) {
	want := answers.Sample(20, 100)
	whole := string(answers.CBOR{}.Encode(want))
	list := func(items string) string { return "\xa1\x67Records" + items }
	for name, c := range map[string]struct{ body, what string }{
		"records twice":          {"\xa2\x67Records\x80\x67Records\x80", "twice"},
		"more behind":            {whole + "\x00", "more after"},
		"much more behind":       {whole + strings.Repeat("\x00", 10_000), "more after"},
		"a list without an end":  {list("\x9f"), codec.ShortAnswer},
		"too long a list":        {list("\x9b\x00\x00\x00\x01\x00\x00\x00\x00"), "longer than any"},
		"too many records":       {list("\x9a\x00\x01\x00\x01\x00"), "too many"},
		"a record that is text":  {list("\x81\x61a"), "a map"},
		"a break for a record":   {list("\x81\xff"), "break"},
		"no map":                 {"\x80", "a map"},
		"records that are a map": {"\xa1\x67Records\xa0", "an array"},
		"a bad value":            {"\xa1\x72MillisBehindLatest\x61a", "a number"},
		"a bad first byte":       {"\x1c", "a map"},
		"nothing":                {"", codec.ShortAnswer},
	} {
		for _, length := range []int64{int64(len(c.body)), -1} {
			_, _, err := readParts(strings.NewReader(c.body), length, 64, false)
			if malformed := (*codec.MalformedError)(nil); !errors.As(err, &malformed) || !strings.Contains(err.Error(), c.what) {
				t.Errorf("%s, length %d: %v, want one about %q", name, length, err, c.what)
			}
		}
	}
	for n := range len(whole) {
		got, _, err := readParts(strings.NewReader(whole[:n]), -1, 500, false)
		if malformed := (*codec.MalformedError)(nil); !errors.As(err, &malformed) || !malformed.Short() {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
		for i, r := range got.Records { // records that were delivered before the error are valid
			if !bytes.Equal(r.Data, want.Records[i].Data) {
				t.Fatalf("cut after %d bytes: record %d is wrong", n, i)
			}
		}
		if _, _, err = readParts(strings.NewReader(whole[:n]), int64(len(whole)), 500, false); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("broken off after %d bytes: %v", n, err)
		}
	}
	broken := errors.New("reset")
	if _, _, err := readParts(io.MultiReader(strings.NewReader(whole[:300]), iotest.ErrReader(broken)), -1, 200, true); !errors.Is(err, broken) {
		t.Error(err)
	}
	small := &codec.Parts{Body: strings.NewReader(whole), Left: -1, Window: 1024, Bodies: &codec.Bodies{Most: 1024}}
	var p codec.Page
	err := small.Next(&p)
	for err == nil && !p.Last {
		err = small.Next(&p)
	}
	if !errors.Is(err, codec.ErrTooLarge) {
		t.Error(err)
	}
}

// An answer of 10 MiB needs at most the memory of two windows.
func TestAWindowIsEnough(t *testing.T) {
	body := answers.CBOR{}.Encode(answers.Sample(10_000, 1024))
	pr := &codec.Parts{Body: bytes.NewReader(body), Left: int64(len(body)), Window: 512 << 10, Bodies: &codec.Bodies{Reuse: true, Most: codec.MostBody}}
	var p codec.Page
	parts, most := 0, 0
	for !p.Last {
		p.Release()
		if err := pr.Next(&p); err != nil {
			t.Fatal(err)
		}
		parts++
		most = max(most, codec.BodyOf(&p)+72*cap(p.Records)+pr.Carried())
	}
	if t.Logf("an answer of %d bytes took %d parts and %d bytes of memory", len(body), parts, most); most > 2*512<<10 || parts < 20 {
		t.Error("too much")
	}
}

// FuzzParts checks that an answer gives the same result in parts as it does as a whole. If reading
// the whole answer fails, reading it in parts must fail too. The exception is an answer that names
// a member twice: it may fail in parts although it does not fail as a whole.
func FuzzParts(f *testing.F) {
	for _, p := range smallPages() {
		for i, st := range []answers.CBOR{{}, {Open: true, Chunks: true}, {Extra: true, Last: true}, {TextData: true, Float: true}} {
			f.Add(st.Encode(p), uint16(10*i+3), i%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, window uint16, known bool) {
		var want codec.Page
		wantErr := codec.Decode(codec.CBOR, bytes.Clone(body), &want)
		length := int64(-1)
		if known {
			length = int64(len(body))
		}
		got, _, err := readParts(bytes.NewReader(body), length, int(window)+1, window%2 == 1)
		if err != nil && wantErr == nil && strings.Contains(err.Error(), "twice") {
			return
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("in parts %v, at once %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if d := answers.Differ(got, &want, answers.EqualTime); d != "" {
			t.Fatal(d)
		}
	})
}
