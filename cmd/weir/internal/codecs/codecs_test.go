package codecs

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/payload"
)

func encode(t *testing.T, c payload.Codec, data []byte) []byte {
	t.Helper()
	p, err := c.Encode(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDecodeUsesTheNamedCodecs(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("a record ", 50))
	glue := payload.Glue{Version: payload.SchemaVersion{1}}
	gzipped, zstded := encode(t, payload.Gzip{}, text), encode(t, zstd(), text)
	for _, c := range []struct {
		flag          string
		payload, want []byte
	}{
		{"gzip", gzipped, text},
		{"gzip", zstded, zstded},
		{"gzip,zstd", zstded, text},
		{"gzip,zstd", text, text},
		{"zstd", gzipped, gzipped},
		{"glue,gzip", encode(t, glue, gzipped), text},
		{"gzip,glue", encode(t, glue, gzipped), gzipped}, // in this order
		{"glue", encode(t, glue, gzipped), gzipped},
		{"lzutf8", []byte("abcd\xc4\x04"), []byte("abcdabcd")},
	} {
		var f Decode
		if err := f.Set(c.flag); err != nil || !f.On() || f.String() != c.flag {
			t.Errorf("%s: %v, %q", c.flag, err, &f)
			continue
		}
		if got, err := f.Data(t.Context(), c.payload); err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%s: %.40q, %v", c.flag, got, err)
		}
	}
	for _, wrong := range []string{"", "lz4", "gzip,", "gzip gzip", "GZIP", "gzip,gzip"} {
		if err := new(Decode).Set(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
	var none Decode
	if got, err := none.Data(t.Context(), gzipped); none.On() || err != nil || !bytes.Equal(got, gzipped) {
		t.Errorf("without the flag: %.40q, %v", got, err)
	}
}

// The handler gets decoded records, and the records of the batch stay as they are, because the next
// attempt and dead letters use them. A record that cannot be decoded is rejected after the handler
// has handled the records before it.
func TestHandlerGetsDecodedRecords(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("a record ", 50))
	packed := encode(t, payload.Gzip{}, text)
	var f Decode
	if err := f.Set("gzip"); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the handler failed")
	for name, c := range map[string]struct {
		data     [][]byte
		fails    error
		handled  int // number of records that the handler gets; -1 if it is not called
		rejected bool
	}{
		"all can be decoded":          {[][]byte{packed, text, packed}, nil, 3, false},
		"the end of a shard":          {nil, nil, 0, false},
		"the first one is damaged":    {[][]byte{packed[:20], packed}, nil, -1, true},
		"the last one is damaged":     {[][]byte{packed, text, packed[:20]}, nil, 2, true},
		"the handler fails before it": {[][]byte{packed, packed[:20]}, broken, 1, false},
	} {
		b := &weir.Batch{End: true}
		for _, data := range c.data {
			b.Records = append(b.Records, weir.Record{Data: data, PartitionKey: "k"})
		}
		before := slices.Clone(b.Records)
		handled := -1
		err := f.Handler(weir.HandlerFunc(func(_ context.Context, got *weir.Batch) error {
			handled = len(got.Records)
			for _, r := range got.Records {
				if !bytes.Equal(r.Data, text) || r.PartitionKey != "k" {
					t.Errorf("%s: the handler gets %.40q", name, r.Data)
				}
			}
			if got.End != (len(got.Records) == len(c.data)) {
				t.Errorf("%s: End is %v", name, got.End)
			}
			return c.fails
		})).Handle(t.Context(), b)
		if handled != c.handled || weir.IsRejected(err) != c.rejected || c.fails != nil && !errors.Is(err, c.fails) || c.fails == nil && !c.rejected && err != nil {
			t.Errorf("%s: %d records, %v", name, handled, err)
		}
		for i, r := range b.Records {
			if !bytes.Equal(r.Data, before[i].Data) {
				t.Errorf("%s: the batch changed", name)
			}
		}
	}
	var h weir.Handler = weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil })
	if got := new(Decode).Handler(h); got == nil {
		t.Error("without the flag there is no handler")
	}
}
