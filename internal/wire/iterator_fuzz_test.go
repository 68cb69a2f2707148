package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

// FuzzIterator reads answers to GetShardIterator. The result is either a documented error or an
// iterator of at most 64 KiB. The iterator must equal the one that encoding/json finds.
func FuzzIterator(f *testing.F) {
	for _, s := range []string{
		`{"ShardIterator":"AAAA/+=="}`, `{"More":[{"ShardIterator":"no"}],"ShardIterator":"a\u00e9\n"}`, `{"ShardIterator":""}`, `{"ShardIterator":null}`, `{}`, "", "null", `{"ShardIterator":5}`,
		`{"ShardIterator":"a"} {`, `{"ShardIterator":"a","ShardIterator":"b"}`, `{"ShardIterator":"` + strings.Repeat("i", codec.MaxIterator+1) + `"}`, "<html>",
		"\xa1\x6dShardIterator\x64AAAA", "\xbf\x6dShardIterator\x7f\x61a\x61b\xff\xff", "\xa1\x6dShardIterator\x7a\xff\xff\xff\xff", strings.Repeat(`{"a":`, 200),
	} {
		for _, contentType := range []string{codec.JSONType, codec.CBORType, "", "application/json; charset=utf-8"} {
			f.Add([]byte(s), contentType, "")
		}
	}
	f.Add([]byte(`{"ShardIterator":"a"}`), codec.JSONType, "gzip")
	f.Add([]byte(`{"ShardIterator":"a"}`), "text/html", "identity")
	f.Fuzz(func(t *testing.T, body []byte, contentType, encoding string) {
		read := &pieces{r: bytes.NewReader(body)}
		header := http.Header{"Content-Type": {contentType}, "Content-Encoding": {encoding}}
		a := fullAnswer(&http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(read), ContentLength: -1})
		it, err := readIterator(&a)
		var broken *smithy.DeserializationError
		switch {
		case (it == "") != (err != nil) || len(it) > codec.MaxIterator:
			t.Fatalf("%d bytes of an iterator and %v", len(it), err)
		case err == nil && encoding != "" && encoding != "identity":
			t.Fatalf("it was not unpacked from %q", encoding)
		case err != nil && !errors.Is(err, ErrNoIterator) && !errors.Is(err, codec.ErrTooLarge) && !errors.As(err, &broken):
			t.Fatalf("the error is %T: %v", err, err)
		}
		if contentType != codec.JSONType || encoding != "" {
			return
		}
		if d := json.NewDecoder(bytes.NewReader(body)); err == nil && d.Decode(new(any)) == nil && len(bytes.TrimSpace(body[d.InputOffset():])) > 0 {
			t.Fatalf("%q has more behind its end", body)
		}
		var members map[string]any // names are case-sensitive
		if json.Unmarshal(body, &members) != nil {
			return // the SDK accepts some invalid JSON, and this package may accept it too
		}
		want, _ := members["ShardIterator"].(string)
		switch {
		case want == it:
		case err == nil && bytes.Count(body, []byte("terator")) > 1: // the member is repeated
		case err != nil && (answers.Bounded(err) || errors.Is(err, codec.ErrTooLarge)):
		default:
			t.Fatalf("%q is read as %q, %v", body, it, err)
		}
	})
}
