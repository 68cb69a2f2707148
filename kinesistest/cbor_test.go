package kinesistest_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/kinesistest"
)

// unhex joins bytes that are written as hexadecimal digits or as text in quotes. For example "a1
// 'Name' 61" contains the bytes of the text Name.
func unhex(tb testing.TB, parts string) []byte {
	tb.Helper()
	var out []byte
	for i, part := range strings.Split(parts, "'") {
		if i%2 == 1 {
			out = append(out, part...)
			continue
		}
		out = append(out, ok[[]byte](tb)(hex.DecodeString(strings.Join(strings.Fields(part), "")))...)
	}
	return out
}

// item decodes one value of an answer. Maps become map[string]any, and other values become plain Go
// values. It is a second decoder: it shares no code with the server's decoder. It supports only
// what the server may send.
func item(tb testing.TB, in []byte) (value any, rest []byte) {
	tb.Helper()
	first := in[0]
	in = in[1:]
	n := uint64(first & 31)
	if size := map[uint64]int{24: 1, 25: 2, 26: 4, 27: 8}[n]; size > 0 {
		var b [8]byte
		copy(b[8-size:], in)
		n, in = binary.BigEndian.Uint64(b[:]), in[size:]
	}
	open := first&31 == 31
	more := func(i int) bool {
		if !open {
			return uint64(i) < n
		}
		if in[0] == 0xff {
			in = in[1:]
			return false
		}
		return true
	}
	switch first >> 5 {
	case 0:
		return int64(n), in
	case 1:
		return -1 - int64(n), in
	case 2:
		return bytes.Clone(in[:n]), in[n:]
	case 3:
		return string(in[:n]), in[n:]
	case 4:
		list := []any{}
		for i := 0; more(i); i++ {
			var v any
			v, in = item(tb, in)
			list = append(list, v)
		}
		return list, in
	case 5:
		m := map[string]any{}
		for i := 0; more(i); i++ {
			var k, v any
			k, in = item(tb, in)
			v, in = item(tb, in)
			m[k.(string)] = v
		}
		return m, in
	case 6:
		v, in := item(tb, in)
		return [2]any{n, v}, in
	}
	switch first {
	case 0xf4:
		return false, in
	case 0xf5:
		return true, in
	case 0xf6:
		return nil, in
	}
	tb.Fatalf("unexpected 0x%02x", first)
	return nil, nil
}

func cbor(tb testing.TB, s *kinesistest.Server, action string, body []byte) (status int, answer map[string]any) {
	tb.Helper()
	status, header, got := post(tb, s, action, cborType, body)
	if header.Get("Content-Type") != cborType {
		tb.Fatalf("answered %s", header.Get("Content-Type"))
	}
	if len(got) == 0 {
		return status, nil
	}
	value, rest := item(tb, got)
	if len(rest) > 0 {
		tb.Fatalf("%d bytes follow the answer", len(rest))
	}
	return status, value.(map[string]any)
}

func TestCBOR(t *testing.T) {
	for _, indefinite := range []bool{false, true} {
		t.Run(fmt.Sprintf("IndefiniteCBOR %v", indefinite), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := kinesistest.NewServer(t, kinesistest.Config{InMemory: true, NoLimits: true, IndefiniteCBOR: indefinite})
				cborConversation(t, s)
			})
		})
	}
}

func cborConversation(t *testing.T, s *kinesistest.Server) {
	// {"StreamName": "s", "ShardCount": 1}
	if status, answer := cbor(t, s, "CreateStream", unhex(t, "a2 6a 'StreamName' 61 's' 6a 'ShardCount' 01")); status != 200 || answer != nil {
		t.Fatalf("CreateStream: %d %v", status, answer)
	}
	now := time.Now().UnixMilli()

	// {"StreamName": "s", "Data": h'00ff80', "PartitionKey": "k"}
	status, put := cbor(t, s, "PutRecord", unhex(t, "a3 6a 'StreamName' 61 's' 64 'Data' 43 00ff80 6c 'PartitionKey' 61 'k'"))
	if status != 200 || put["ShardId"] != shardID(0) || put["EncryptionType"] != nil || len(put["SequenceNumber"].(string)) != 56 {
		t.Fatalf("PutRecord: %d %v", status, put)
	}

	// The same request with indefinite lengths everywhere and an unknown field. The key is in two
	// pieces. The blob is in three pieces, one of them empty.
	status, many := cbor(t, s, "PutRecords", unhex(t, `
		bf 6a 'StreamName' 61 's' 63 'New' a1 01 82 f7 fb 3ff0000000000000
		67 'Records' 9f
			bf 64 'Data' 5f 42 0102 40 41 03 ff 6c 'PartitionKey' 7f 61 'a' 61 'b' ff ff
			bf 64 'Data' 40 6c 'PartitionKey' 63 'xyz' 6f 'ExplicitHashKey' f6 ff
		ff ff`))
	if status != 200 || many["FailedRecordCount"] != int64(0) || len(many["Records"].([]any)) != 2 {
		t.Fatalf("PutRecords: %d %v", status, many)
	}

	// {"StreamName": "s", "ShardId": …, "ShardIteratorType": "AT_TIMESTAMP", "Timestamp":
	// 1(milliseconds)}
	request := unhex(t, "a4 6a 'StreamName' 61 's' 67 'ShardId' 74 'shardId-000000000000' 71 'ShardIteratorType' 6c 'AT_TIMESTAMP' 69 'Timestamp' c1 1b")
	status, it := cbor(t, s, "GetShardIterator", binary.BigEndian.AppendUint64(request, uint64(now)))
	if status != 200 {
		t.Fatalf("GetShardIterator: %d %v", status, it)
	}
	// Send the same request without the tag and with a time in the future. The number still means
	// milliseconds, not seconds.
	request = bytes.Replace(request, []byte{0xc1, 0x1b}, []byte{0x1b}, 1)
	status, refused := cbor(t, s, "GetShardIterator", binary.BigEndian.AppendUint64(request, uint64(now+60_000)))
	if status != 400 || refused["__type"] != "InvalidArgumentException" || !strings.Contains(refused["message"].(string), fmt.Sprint(now+60_000)) {
		t.Fatalf("GetShardIterator in the future: %d %v", status, refused)
	}

	iterator := it["ShardIterator"].(string)
	request = unhex(t, "a1 6d 'ShardIterator' 79")
	request = append(binary.BigEndian.AppendUint16(request, uint16(len(iterator))), iterator...)
	status, page := cbor(t, s, "GetRecords", request)
	if status != 200 || page["MillisBehindLatest"] != int64(0) || page["NextShardIterator"] == "" {
		t.Fatalf("GetRecords: %d %v", status, page)
	}
	want := []struct {
		key  string
		data []byte
	}{{"k", []byte{0, 0xff, 0x80}}, {"ab", []byte{1, 2, 3}}, {"xyz", []byte{}}}
	records := page["Records"].([]any)
	if len(records) != len(want) {
		t.Fatalf("%d records", len(records))
	}
	for i, r := range records {
		got := r.(map[string]any)
		if got["PartitionKey"] != want[i].key || !bytes.Equal(got["Data"].([]byte), want[i].data) {
			t.Errorf("record %d: %v", i, got)
		}
		// The value is tag 1 with an integer of milliseconds. The record may have arrived up to one
		// millisecond after now.
		if at, tagged := got["ApproximateArrivalTimestamp"].([2]any); !tagged || at[0] != uint64(1) || at[1].(int64)-now > 1 || at[1].(int64) < now {
			t.Errorf("record %d arrived at %v, it is %d", i, got["ApproximateArrivalTimestamp"], now)
		}
	}
	if records[0].(map[string]any)["SequenceNumber"] != put["SequenceNumber"] {
		t.Errorf("the numbers differ: %v, %v", records[0], put)
	}

	s.Split("s", shardID(0))
	status, end := cbor(t, s, "GetRecords", request)
	if next, there := end["NextShardIterator"]; status != 200 || there || next != nil || len(end["ChildShards"].([]any)) != 2 || len(end["Records"].([]any)) != 3 {
		t.Errorf("the end: %d %v", status, end)
	}
}

func TestBadCBOR(t *testing.T) {
	s, _ := start(t)
	for name, body := range map[string]string{
		"nothing":                            "",
		"a list":                             "80",
		"a map that does not end":            "a1 6a 'StreamName'",
		"an open map that does not end":      "bf 6a 'StreamName' 61 's'",
		"more after the map":                 "a0 a0",
		"a blob as the stream's name":        "a1 6a 'StreamName' 41 's'",
		"text as a blob":                     "a1 64 'Data' 61 's'",
		"a string longer than the body":      "a1 6a 'StreamName' 7b 7fffffffffffffff",
		"a string of 2^64-1 bytes":           "a1 6a 'StreamName' 7b ffffffffffffffff",
		"a map of 2^64-1 members":            "bb ffffffffffffffff 61 'a' 01",
		"a list of 2^32 elements":            "a1 67 'Records' 9a ffffffff",
		"a number as a key":                  "a1 01 01",
		"a break without a list":             "a1 6a 'StreamName' ff",
		"reserved additional information":    "a1 6a 'StreamName' 1c",
		"an open integer":                    "a1 6a 'StreamName' 1f",
		"a piece of another kind":            "a1 64 'Data' 5f 61 'a' ff",
		"an open piece in an open string":    "a1 64 'Data' 5f 5f 41 00 ff ff",
		"text that is not UTF-8":             "a1 6a 'StreamName' 62 c328",
		"a timestamp that is not a number":   "a1 69 'Timestamp' f97e00",
		"a tag in place of the value":        "a1 6a 'StreamName' c1",
		"deep nesting of an unknown member":  "a1 61 'x'" + strings.Repeat("81", 100_000) + "00",
		"deep nesting of open lists":         "a1 61 'x'" + strings.Repeat("9f", 100_000),
		"a tower of tags on a known member":  "a1 6a 'StreamName'" + strings.Repeat("c1", 100_000) + "61 's'",
		"a tower of tags on another member":  "a1 61 'x'" + strings.Repeat("c1", 100_000) + "00",
		"deep nesting of maps in the filter": "a1 6b 'ShardFilter'" + strings.Repeat("a1 61 'x'", 50_000) + "00",
	} {
		// Operations have different fields. Every operation that has the field must refuse the
		// body, and all errors must be in CBOR.
		for _, action := range []string{"PutRecord", "PutRecords", "ListShards", "GetShardIterator", "DescribeStreamSummary"} {
			status, answer := cbor(t, s, action, unhex(t, body))
			if status < 400 || status >= 500 || answer["__type"] == "" {
				t.Errorf("%s: %s: %d %v", name, action, status, answer)
			}
		}
		action := "ListShards"
		switch {
		case strings.Contains(body, "'Data'"):
			action = "PutRecord"
		case strings.Contains(body, "'Records'"):
			action = "PutRecords"
		case strings.Contains(body, "'Timestamp'"):
			action = "GetShardIterator"
		}
		status, answer := cbor(t, s, action, unhex(t, body))
		if answer["__type"] != "SerializationException" || answer["Message"] == "" || status != http.StatusBadRequest {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
}
