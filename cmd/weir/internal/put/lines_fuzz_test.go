package put

import (
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzLines reads any input. Each record must be within the limit and belong to an existing line.
// An error must name the line.
func FuzzLines(f *testing.F) {
	f.Add([]byte("{\"k\":\"a\"}\n\r\n{\"k\":1.50}\r\nlast"), "k", uint16(100))
	f.Add([]byte("{\"k\":{}}"), "k", uint16(100))
	f.Add([]byte("{\"k\":null}\n[]\nnull\n\xff"), "", uint16(3))
	f.Add([]byte(strings.Repeat("x", 3000)), "", uint16(1000))
	f.Add([]byte(`{"k":"\ud800","k":""}`), "k", uint16(100))
	f.Fuzz(func(t *testing.T, input []byte, field string, limit uint16) {
		l := newLines(strings.NewReader(string(input)), field, int(limit))
		records, total := int64(0), 0
		for {
			e, err := l.next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "line ") {
					t.Errorf("%q: %v", input, err)
				}
				if errors.Is(err, io.EOF) && l.read != int64(len(input)) {
					t.Errorf("%d of %d bytes were read", l.read, len(input))
				}
				break
			}
			records++
			total += len(e.Data)
			n := utf8.RuneCountInString(e.Key)
			if e.Size() > int(limit) || n < 1 || n > 256 || len(e.Data) == 0 || strings.Contains(string(e.Data), "\n") {
				t.Errorf("%q of %d bytes in line %d, key %q", e.Data, e.Size(), e.Line, e.Key)
			}
		}
		if total > len(input) || records > int64(len(input)) || l.number > int64(len(input))+1 {
			t.Errorf("%d records of %d bytes in %d lines of %d bytes", records, total, l.number, len(input))
		}
	})
}
