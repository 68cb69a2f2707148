package s3sink_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/fakes3"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/sink/s3sink"
	"github.com/weir-go/weir/store/memstore"
)

func TestPayloadLines(t *testing.T) {
	for name, row := range map[string]struct{ data, line string }{
		"JSON on a line stays as it is":  {` {"b": 1.50, "a":"ä\u00e4"} `, ` {"b": 1.50, "a":"ä\u00e4"} `},
		"JSON on several lines":          {"{\n  \"a\": 1.50,\r\n  \"b\": \"x y\"\n}", `{"a":1.50,"b":"x y"}`},
		"a number":                       {"17", "17"},
		"a text with an escaped newline": {`"a\nb"`, `"a\nb"`},
		"nothing":                        {"", `{"data_base64":""}`},
		"a word":                         {"word", `{"data_base64":"d29yZA=="}`},
		"two values":                     {"1 2", `{"data_base64":"MSAy"}`},
		"a text over two lines":          {"\"a\nb\"", `{"data_base64":"ImEKYiI="}`},
		"JSON that is not UTF-8":         {"\"\xff\"", `{"data_base64":"Iv8i"}`},
		"a newline in JSON's end":        {"{}\n", "{}"},
	} {
		line, err := s3sink.AppendPayload([]byte("before\n"), []byte(row.data))
		if err != nil || string(line) != "before\n"+row.line+"\n" {
			t.Errorf("%s: %q, %v", name, line, err)
		}
	}
}

// Each payload becomes one line of valid JSON.
func FuzzPayloadLines(f *testing.F) {
	f.Add([]byte("{\"a\":\n1}"))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		line, err := s3sink.AppendPayload(nil, data)
		if err != nil || !json.Valid(line) || strings.Count(string(line), "\n") != 1 || line[len(line)-1] != '\n' || strings.Contains(string(line), "\r") {
			t.Errorf("%q: %q, %v", data, line, err)
		}
	})
}

func TestEnvelopes(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		s := sink(t, bucket, s3sink.Options{Lines: s3sink.Envelopes, Plain: true, Partition: s3sink.Unpartitioned})
		_, first := srv.Put("s", "k<1>", []byte("two\nlines"))
		srv.Put("s", "k2", []byte{0xff})
		stop := start(t, srv, memstore.New(), s.PullHandler())
		time.Sleep(5 * time.Second)
		stop()
		key := "s/shardId-000000000000-" + first + ".ndjson"
		lines := strings.Split(string(bucket.Get(key)), "\n")
		var got map[string]any
		if len(lines) != 3 || json.Unmarshal([]byte(lines[0]), &got) != nil || got["data"] != "two\nlines" || got["key"] != "k<1>" ||
			got["sequence"] != first || got["shard"] != "shardId-000000000000" || got["arrival"] != "2000-01-01T00:00:00.000Z" || len(got) != 5 {
			t.Errorf("%q: %v, %q", lines, got, bucket.Keys())
		}
		if !strings.Contains(lines[1], `"data_base64":"/w=="`) {
			t.Errorf("%s", lines[1])
		}
	})
}

func sequence(t *testing.T, seq string) weir.Position {
	t.Helper()
	p, err := shard.After(seq)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// For any sequence numbers, the newest link is listed first and the start last.
func TestNamesOfLinksAreInReverse(t *testing.T) {
	var names []string
	for _, seq := range []string{"0", "9", "10", "11", "99", "100", "49590338271490256608559692538361571095921575989136588898",
		"49590338271490256608559692538361571095921575989136588899", "59590338271490256608559692538361571095921575989136588898", strings.Repeat("9", 129)} {
		names = append(names, s3sink.LinkName(sequence(t, seq)))
	}
	names = slices.Insert(names, 0, s3sink.LinkName(weir.Position{}))
	slices.Reverse(names)
	if !slices.IsSorted(names) || names[len(names)-1] != "start" {
		t.Errorf("%q", names)
	}
}

func TestContinues(t *testing.T) {
	at := sequence(t, "17")
	for _, row := range []struct {
		from, end weir.Position
		want      bool
	}{
		{shard.Oldest, weir.Position{}, true},
		{sequence(t, "17"), weir.Position{}, true},
		{sequence(t, "17"), at, true},
		{sequence(t, "9"), at, true},
		{sequence(t, "18"), at, false},
		{shard.Oldest, at, false},
		{shard.At(time.Now()), at, false},
		{shard.Oldest, shard.End, true},
		{sequence(t, "18"), shard.End, true},
	} {
		if got := s3sink.Continues(row.from, row.end); got != row.want {
			t.Errorf("from %s, the end is %q: %v", row.from, row.end, got)
		}
	}
}

// Each entry of the map damages a valid link. The key of the entry is the text to replace, new is
// the replacement, and says is a part of the expected error.
func TestDamagedLinks(t *testing.T) {
	s := sink(t, fakes3.New(), s3sink.Options{})
	start := "_weir/s/shardId-0/start"
	good := `{"weir_chain":1,"stream":"s","shard":"shardId-0","from":"oldest","to":"17","object":"s/x"}`
	if to, err := s3sink.ParseLink(s, start, []byte(good)); err != nil || to != "17" {
		t.Fatalf("%s, %v", to, err)
	}
	for old, row := range map[string]struct{ new, says string }{
		`{"weir`:              {`[{"weir`, "unexpected end of JSON"},
		`_chain":1`:           {`_chain":2`, "form 2; this weir reads up to 1"},
		`"weir_chain":1,`:     {``, `no "weir_chain"`},
		`"stream":"s"`:        {`"stream":"S"`, `of stream "S"`},
		`"shard":"shardId-0"`: {`"shard":"shardId-1"`, `of shard "shardId-1"`},
		`"from"`:              {`"at":"5","from"`, `it begins at "5"`},
		`"oldest"`:            {`""`, `reading began at ""`},
		`"17"`:                {`"17+2"`, `it ends at "17+2"`},
		`"to":"17"`:           {`"to":"latest"`, `it ends at "latest"`},
		`"to":"17",`:          {``, `it ends at ""`},
		`"object":"s/x"`:      {`"object":"other/x"`, `its object is "other/x"`},
		`,"object":"s/x"`:     {``, `its object is ""`},
	} {
		if _, err := s3sink.ParseLink(s, start, []byte(strings.Replace(good, old, row.new, 1))); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s for %s: %v", row.new, old, err)
		}
	}
}

func FuzzLinks(f *testing.F) {
	f.Add("start", []byte(`{"weir_chain":1,"stream":"s","shard":"shardId-0","from":"oldest","to":"17","object":"s/x"}`))
	f.Add(s3sink.LinkName(weir.Position{}), []byte(`{"weir_chain":1,"stream":"s","shard":"shardId-0","at":"17","to":"end"}`))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		s := sink(t, fakes3.New(), s3sink.Options{})
		if to, err := s3sink.ParseLink(s, "_weir/s/shardId-0/"+name, text); err == nil && to == "" {
			t.Errorf("%s, %s: %s", name, text, fmt.Sprint(to))
		}
	})
}

// A damaged link stops the shard with an error. It never counts as the end of the chain.
func TestADamagedLinkIsNoEnd(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		s := sink(t, bucket, s3sink.Options{})
		bucket.Put("_weir/s/shardId-000000000000/start", []byte("<html>"))
		if at, err := s.Position(t.Context(), "s", "shardId-000000000000"); err == nil || !strings.Contains(err.Error(), "shardId-000000000000/start is damaged") {
			t.Errorf("%v, %v", at, err)
		}
		bucket.Put("_weir/s/shardId-000000000000/start", []byte(strings.Repeat(" ", 1<<20)))
		if at, err := s.Position(t.Context(), "s", "shardId-000000000000"); err == nil || !strings.Contains(err.Error(), "more than 65536 bytes") {
			t.Errorf("%v, %v", at, err)
		}
		bucket.Control(func(c fakes3.Call) fakes3.Fault {
			if c.Method == "GET" {
				bucket.Delete(c.Key)
			}
			return fakes3.None
		})
		if at, err := s.Position(t.Context(), "s", "shardId-000000000000"); err == nil || !strings.Contains(err.Error(), "was listed and is not there") {
			t.Errorf("%v, %v", at, err)
		}
	})
}
