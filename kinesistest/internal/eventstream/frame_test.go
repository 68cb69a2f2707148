package eventstream

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/aws/smithy-go/eventstream"
)

func TestFramesByteForByte(t *testing.T) {
	initial := func(contentType string) []Header {
		return []Header{{":message-type", "event"}, {":event-type", "initial-response"}, {":content-type", contentType}}
	}
	for name, tc := range map[string]struct {
		headers []Header
		payload string
		want    string
	}{
		"nothing at all": {nil, "", "000000100000000005c248eb7d98c8ff"},
		"no headers":     {nil, "{'foo':'bar'}", "0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936"},
		"the first frame of a JSON stream": {initial("application/x-amz-json-1.1"), "{}", "0000007200000060ab820d9e" +
			"0d3a6d6573736167652d747970650700056576656e74" + "0b3a6576656e742d74797065070010696e697469616c2d726573706f6e7365" +
			"0d3a636f6e74656e742d7479706507001a6170706c69636174696f6e2f782d616d7a2d6a736f6e2d312e31" + "7b7d" + "e16e66e4"},
		"the first frame of a CBOR stream": {initial("application/x-amz-cbor-1.1"), "\xa0", "0000007100000060ec22774e" +
			"0d3a6d6573736167652d747970650700056576656e74" + "0b3a6576656e742d74797065070010696e697469616c2d726573706f6e7365" +
			"0d3a636f6e74656e742d7479706507001a6170706c69636174696f6e2f782d616d7a2d63626f722d312e31" + "a0" + "cb427534"},
	} {
		t.Run(name, func(t *testing.T) {
			buf := []byte("before")
			buf = Open(buf, tc.headers...)
			buf = append(buf, tc.payload...)
			buf = Close(buf, len("before"))
			if got := hex.EncodeToString(buf[len("before"):]); got != tc.want || string(buf[:6]) != "before" {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestTheSDKReadsFrames(t *testing.T) {
	long := strings.Repeat("x", 40_000)
	headers := []Header{{"a", ""}, {"name", "väl"}, {"long", long}, {long, "v"}}
	payloads := []string{"", "p", strings.Repeat("0123456789", 1_400_000)}
	var buf []byte
	for _, p := range payloads {
		start := len(buf)
		buf = Close(append(Open(buf, headers...), p...), start)
	}
	r := bytes.NewReader(buf)
	for _, p := range payloads {
		m, err := eventstream.NewDecoder().Decode(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if string(m.Payload) != p || len(m.Headers) != len(headers) {
			t.Errorf("%d headers, a payload of %d bytes, not %d", len(m.Headers), len(m.Payload), len(p))
		}
		for name, want := range map[string]string{"a": "", "name": "väl", "long": long[:32767], long[:255]: "v"} {
			if got := m.Headers.Get(name); got == nil || got.String() != want {
				t.Errorf("the header %.10s is %.10v", name, got)
			}
		}
	}
	if r.Len() != 0 {
		t.Errorf("%d bytes are left", r.Len())
	}
}
