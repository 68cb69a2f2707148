package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/weir-go/weir/internal/wire/codec"
)

// FuzzPut reads answers to PutRecords. The number of results is at most the number of records, and
// no part of a broken answer is used. For valid JSON the results equal those of encoding/json.
func FuzzPut(f *testing.F) {
	for _, s := range []string{
		`{"Records":[{"SequenceNumber":"49","ShardId":"shardId-1"},{"ErrorCode":"a","ErrorMessage":"b\u00e9"}]}`, `{"Records":[null,{}]}`, `{"Records":null}`, `{}`, ``, `[]`,
		`{"Records":[{"ShardId":1}]}`, `{"Records":[{"ShardId":"a"}]} x`, "\xa1\x67Records\x81\xa1\x67ShardId\x61a", "\xbf\x67Records\x9f\xbf\x67ShardId\x7f\x61a\x61b\xff\xff\xff\xff", "\xa1\x67Records\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
	} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, body []byte, most int) {
		most = max(0, min(most, 1000))
		for _, format := range []codec.Format{codec.JSON, codec.CBOR} {
			results, err := codec.ReadPut(format, bytes.Clone(body), most)
			var broken *codec.MalformedError
			switch {
			case err != nil && (!errors.As(err, &broken) || results != nil):
				t.Fatalf("%v: %d results and %T: %v", format, len(results), err, err)
			case len(results) > most:
				t.Fatalf("%v: %d results, at most %d are expected", format, len(results), most)
			}
			var want struct {
				Records []struct{ ShardId, SequenceNumber, ErrorCode, ErrorMessage string }
			}
			if format != codec.JSON || err != nil || bytes.ContainsAny(body, "\\") || repeated(body) || json.Unmarshal(body, &want) != nil {
				continue
			}
			if len(want.Records) != len(results) {
				t.Fatalf("%q: %d results, want %d", body, len(results), len(want.Records))
			}
			for i, r := range want.Records {
				if got := results[i]; got != (codec.PutResult{Shard: r.ShardId, SequenceNumber: r.SequenceNumber, Code: r.ErrorCode, Message: r.ErrorMessage}) {
					t.Fatalf("%q: result %d is %+v, want %+v", body, i, got, r)
				}
			}
		}
	})
}

// repeated reports whether encoding/json may read an answer differently. This is possible if a
// member occurs twice or in another case, or if a text is not UTF-8.
func repeated(body []byte) bool {
	lower := bytes.ToLower(body)
	return bytes.Count(lower, []byte("records")) != bytes.Count(body, []byte(`"Records"`)) || bytes.Count(body, []byte("Records")) > 1 ||
		bytes.Count(lower, []byte("shardid")) > 1 || bytes.Count(lower, []byte("sequencenumber")) > 1 || bytes.Count(lower, []byte("error")) > 2 ||
		!bytes.Equal(bytes.ToValidUTF8(body, nil), body)
}
