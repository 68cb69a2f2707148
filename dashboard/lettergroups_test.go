package dashboard

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/payload"
)

func TestLettersAreGroupedByError(t *testing.T) {
	t.Parallel()
	var rows []letterRow
	for i, text := range []string{"exit status 3", "order 4711-0-abcd: no room", "order 4711-1-abcd: no room", "exit status 4", "order 4711-2-abcd: no room"} {
		rows = append(rows, letterRow{Letter: deadletter.Letter{ID: fmt.Sprint(i), Reason: deadletter.Attempts, Error: text, GivenUp: time.Unix(int64(i), 0)}})
	}
	var got []string
	for _, g := range groupLetters(rows) {
		got = append(got, fmt.Sprintf("%d %s: %s from %s to %s", len(g.Rows), g.Reason, g.Error, g.Oldest().ID, g.Newest().ID))
	}
	want := "3 attempts: order 4711-2-abcd: no room from 1 to 4|1 attempts: exit status 4 from 3 to 3|1 attempts: exit status 3 from 0 to 0"
	if strings.Join(got, "|") != want {
		t.Errorf("%q", got)
	}
}

func TestPayloadsAreDecoded(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(`{"a":1}`)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("é", mostPayload)
	for name, c := range map[string]struct {
		data []byte
		want shownPayload
	}{
		"empty":   {nil, shownPayload{"0 B, empty", "", false}},
		"text":    {[]byte("one\r\n\ttwo\u202e"), shownPayload{"12 B, text", "one\n    two\ufffd", false}},
		"JSON":    {[]byte(`{"a":[1]}`), shownPayload{"9 B, JSON", "{\n  \"a\": [\n    1\n  ]\n}", false}},
		"gzip":    {packed.Bytes(), shownPayload{fmt.Sprintf("%d B, gzip of 7 B, JSON", packed.Len()), "{\n  \"a\": 1\n}", false}},
		"damaged": {packed.Bytes()[:5], shownPayload{"5 B, binary", "00000000  1f 8b 08 00 00                                    |.....|\n", false}},
		"long":    {[]byte(long), shownPayload{fmt.Sprintf("%d B, text", len(long)), long[:mostPayload], true}},
	} {
		if got := payloadOf(c.data, map[string]payload.Codec{"gzip": payload.Gzip{MaxBytes: mostUnpacked}}); got != c.want {
			t.Errorf("%s: %+q, want %+q", name, got.Kind+": "+got.Text, c.want.Kind+": "+c.want.Text)
		}
	}
}
