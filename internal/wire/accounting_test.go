package wire

import (
	"errors"
	"net/http"
	"testing"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

func TestACallTakesAndGivesBackMemoryOnEveryPath(t *testing.T) {
	want := answers.Sample(100, 1000)
	for _, path := range []Path{OwnCall, UnderSDK, PlainSDK} {
		server := newFake(t, func(w http.ResponseWriter, r seen) {
			if f := r.Header.Get("Content-Type"); f == codec.JSONType {
				write(w, 200, f, string(answers.JSON{}.Encode(want)))
			} else {
				write(w, 200, codec.CBORType, string(answers.CBOR{}.Encode(want)))
			}
		})
		m := &answers.Purse{Left: 1 << 30}
		c := newCaller(t, fakeClient(server.URL), Options{Path: path, Reuse: true})
		p := codec.Page{Memory: m}
		for range 3 {
			if err := c.GetRecords(t.Context(), Request{Iterator: "it"}, &p); err != nil {
				t.Fatal(path, err)
			}
			if len(p.Records) != 100 || m.Used < 100_000 || m.Used > 200_000 {
				t.Errorf("%s: %d records, %d bytes taken", path, len(p.Records), m.Used)
			}
		}
		p.Release()
		if m.Used != 0 {
			t.Errorf("%s: %d bytes were not given back", path, m.Used)
		}
		if path == PlainSDK {
			continue
		}
		m.Left = 1000
		if short := (*codec.NoMemoryError)(nil); !errors.As(c.GetRecords(t.Context(), Request{Iterator: "it"}, &p), &short) || short.Bytes < 1000 {
			t.Errorf("%s: no error about memory", path)
		}
		if m.Used != 0 {
			t.Errorf("%s: %d bytes were not given back by a failed call", path, m.Used)
		}
	}
}
