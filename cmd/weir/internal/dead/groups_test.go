package dead

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/payload/zstdpayload"
)

func TestDeadLettersAreGroupedByError(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	var items []deadletter.Item
	add := func(app, err string, reason deadletter.Reason, ago time.Duration) {
		items = append(items, deadletter.Item{State: deadletter.Kept, Letter: deadletter.Letter{
			ID: fmt.Sprint("id-", len(items)), App: app, Error: err, Reason: reason, GivenUp: now.Add(-ago), Attempts: 3, Data: []byte("x"),
		}})
	}
	add("a", "exit status 3", deadletter.Attempts, time.Hour)
	for n := range 5 {
		add("a", fmt.Sprintf("order 4711-%d-abcd: no room", n), deadletter.Attempts, time.Duration(5-n)*time.Minute)
	}
	add("a", "exit status 4", deadletter.Attempts, time.Minute)
	add("b", "exit status 3", deadletter.Attempts, time.Second)
	add("a", "exit status 3", deadletter.Age, time.Second)
	var got []string
	for _, g := range groups(items) {
		got = append(got, fmt.Sprintf("%d %s %s %s %s", len(g.items), g.app, g.reason, g.error, g.items[0].ID))
	}
	want := []string{
		"5 a attempts order 4711-4-abcd: no room id-5", "1 b attempts exit status 3 id-7", "1 a age exit status 3 id-8",
		"1 a attempts exit status 4 id-6", "1 a attempts exit status 3 id-0",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q", got)
	}

	text := groupsText(items[:6], false, now)
	const shown = `6 dead letters, 2 errors.

5 times in application a, attempts, 5 min to 60 s ago:
  order 4711-4-abcd: no room
    2026-11-25T02:59:00Z  kept, 3 attempts, 1 B
      id-5
    2026-11-25T02:58:00Z  kept, 3 attempts, 1 B
      id-4
    2026-11-25T02:57:00Z  kept, 3 attempts, 1 B
      id-3
    and 2 more: --each shows them

1 time in application a, attempts, 60 min ago:
  exit status 3
    2026-11-25T02:00:00Z  kept, 3 attempts, 1 B
      id-0
`
	if text != shown {
		t.Errorf("shown as\n%s", text)
	}
	if each := groupsText(items[:6], true, now); strings.Count(each, "id-") != 6 || strings.Contains(each, "more") {
		t.Errorf("shown as\n%s", each)
	}
}

func TestAPayloadIsDecoded(t *testing.T) {
	t.Parallel()
	pack := func(text string) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write([]byte(text))
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	zstd, err := zstdpayload.New(zstdpayload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	small, err := zstd.Encode(t.Context(), []byte(strings.Repeat("text ", 100)))
	if err != nil {
		t.Fatal(err)
	}
	damaged := pack("some text")
	damaged = damaged[:len(damaged)-4]
	for name, c := range map[string]struct {
		data       []byte
		what, text string
	}{
		"JSON":           {[]byte(`{"n":1,"a":[true]}`), "JSON", "{\n  \"n\": 1,\n  \"a\": [\n    true\n  ]\n}\n"},
		"a large number": {[]byte(`{"n":12345678901234567890}`), "JSON", "{\n  \"n\": 12345678901234567890\n}\n"},
		"text":           {[]byte("a\r\nb\tä\n"), "text", "a\nb\tä\n"},
		"nothing":        {nil, "empty", ""},
		"binary":         {[]byte{0, 1, 0xff, 'a'}, "binary", "00000000  00 01 ff 61                                       |...a|\n"},
		"gzip of JSON":   {pack(`{"n":1}`), "gzip of 7 B, JSON", "{\n  \"n\": 1\n}\n"},
		"gzip of text":   {pack("some text"), "gzip of 9 B, text", "some text\n"},
		"zstd of text":   {small, "zstd of 500 B, text", strings.TrimSpace(strings.Repeat("text ", 100)) + " \n"},
		"control":        {[]byte("a\x1b[2J"), "binary", "00000000  61 1b 5b 32 4a                                    |a.[2J|\n"},
		"a JSON string":  {[]byte("\"a\u202eb\""), "JSON", "\"a\\u202eb\"\n"},
	} {
		if what, text := PayloadText(c.data); what != c.what || text != c.text {
			t.Errorf("%s: %s, %q", name, what, text)
		}
	}
	if what, _ := PayloadText(damaged); what != "binary" {
		t.Errorf("damaged gzip: %s", what)
	}
	if what, text := PayloadText(bytes.Repeat([]byte{0}, mostHex+3)); what != "binary" || !strings.HasSuffix(text, "\nand 3 bytes more: --data writes all of them\n") {
		t.Errorf("many bytes: %s, %q", what, text[len(text)-80:])
	}
}

// The text of a dead letter is printable, even if its record contains terminal controls.
func TestADeadLetterIsShown(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	text := letterText(&deadletter.Item{State: deadletter.Kept, Letter: deadletter.Letter{
		ID: "a/s/shard/12", App: "a", Stream: "s", Shard: "shard", SequenceNumber: "12", Position: "12+1", PartitionKey: clitest.Evil,
		Data: []byte(`{"n":1}`), Worker: "w", GivenUp: at, FirstFailure: at, LastFailure: at, Reason: deadletter.Attempts, Attempts: 1,
		Error: clitest.Evil, ErrorType: "*fs.PathError", Stack: "one\ntwo\n",
	}})
	clitest.CheckShown(t, "a letter", text, strings.Count(text, "\n"))
	for _, want := range []string{"ID              a/s/shard/12\n", "reason          attempts, after 1 attempt from 2026-11-25T03:00:00Z to", "payload: 7 B, JSON\n{\n  \"n\": 1\n}\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
