package multilang

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/shard"
)

func text(s string) *string { return &s }
func num(n int64) *int64    { return &n }

func TestLinesOfPrograms(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		is       bool
		response string
		sequence *string
		sub      *int64
	}{
		`{"action":"status","responseFor":"initialize"}`:                              {true, "initialize", nil, nil},
		`{"action": "status", "responseFor": null, "x": {}} more`:                     {true, "", nil, nil},
		`{"action": "checkpoint", "sequenceNumber": "4959", "subSequenceNumber": 3}`:  {true, "", text("4959"), num(3)},
		`{"action":"checkpoint","sequenceNumber":4959,"subSequenceNumber":"3"}`:       {true, "", text("4959"), num(3)},
		`{"action": "checkpoint", "sequenceNumber": null, "subSequenceNumber": null}`: {true, "", nil, nil},
		`{"action":"checkpoint"}`:                                              {true, "", nil, nil},
		`{"action":"checkpoint","checkpoint":"4959"}`:                          {true, "", text("4959"), nil},
		`{"action":"checkpoint","sequenceNumber":true}`:                        {},
		`{"action":"checkpoint","sequenceNumber":"1","subSequenceNumber":1.5}`: {},
		`{"action":"shutdown"}`:                                                {}, `null`: {}, ``: {}, `{`: {}, `not json`: {}, `[{"action":"status"}]`: {}, "{\"action\":\"stat\xff\"}": {},
	} {
		m, is := decode([]byte(line))
		if is != want.is || is && (m.response != want.response || !same(m.checkpoint.Sequence, want.sequence) || !same(m.checkpoint.Sub, want.sub)) {
			t.Errorf("%s: %+v, %v", line, m, is)
		}
	}
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func TestLinesForPrograms(t *testing.T) {
	t.Parallel()
	r := weir.Record{Data: []byte("hello"), PartitionKey: "pk\"ä😀\n", SequenceNumber: "4959"}
	b := &weir.Batch{Records: []weir.Record{r}, Behind: 1500 * time.Millisecond}
	for _, c := range []struct{ got, want string }{
		{string(encodeInitialize("shardId-0", spot{sequence: trimHorizon})), `{"action":"initialize","shardId":"shardId-0","sequenceNumber":"TRIM_HORIZON","subSequenceNumber":0}`},
		{string(appendRecords(nil, b, []spot{{"4959", 2}})), `{"action":"processRecords","records":[{"data":"aGVsbG8=","partitionKey":"pk\"\u00e4\ud83d\ude00\u000a","sequenceNumber":"4959","approximateArrivalTimestamp":0,"subSequenceNumber":2,"action":"record"}],"millisBehindLatest":1500}`},
		{string(appendRecords(nil, &weir.Batch{Behind: -1}, nil)), `{"action":"processRecords","records":[],"millisBehindLatest":null}`},
		{string(encodeAnswer(request{text("4959"), nil}, "")), `{"action":"checkpoint","sequenceNumber":"4959","subSequenceNumber":null,"error":null}`},
		{string(encodeAnswer(request{nil, num(3)}, errorShutdown)), `{"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":3,"error":"ShutdownException"}`},
		{string(encodeEvent(leaseLost, "")), `{"action":"leaseLost"}`},
		{string(encodeEvent(shutdown, "ZOMBIE")), `{"action":"shutdown","reason":"ZOMBIE"}`},
	} {
		if c.got != c.want+"\n" || !json.Valid([]byte(c.got)) {
			t.Errorf("got  %swant %s", c.got, c.want)
		}
	}
}

// Any text becomes a line that a JSON parser reads as the same text, in ASCII.
func FuzzTexts(f *testing.F) {
	f.Add("ä\x00\u2028😀\"\\")
	f.Fuzz(func(t *testing.T, s string) {
		line := appendText(nil, s)
		var back string
		if err := json.Unmarshal(line, &back); err != nil || utf8.ValidString(s) && back != s {
			t.Errorf("%q: %q, %v", s, back, err)
		}
		for _, c := range line {
			if c < ' ' || c > '~' {
				t.Fatalf("%q: %q", s, line)
			}
		}
	})
}

// Any line of a program is read without a panic, and any request gets a decision that does not go
// back and does not pass the last delivered record.
func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"action":"checkpoint","sequenceNumber":"12","subSequenceNumber":1}`), false)
	f.Add([]byte(`{"action":"checkpoint","sequenceNumber":"SHARD_END"}`), true)
	f.Fuzz(func(t *testing.T, line []byte, ending bool) {
		m, is := decode(line)
		if !is || m.status {
			return
		}
		first, _ := shard.After("10")
		p := begin(first)
		for _, seq := range []string{"11", "12", "13"} {
			after, _ := shard.After(seq)
			p.records = append(p.records, record{after, 0})
			p.delivered, p.any = spot{seq, 0}, true
		}
		p.ending = ending
		d := p.decide(m.checkpoint, true)
		last, _ := shard.After("13")
		if !d.save.IsZero() && (d.save.Compare(first) < 0 || d.save.Compare(last) > 0) || d.end && !ending {
			t.Errorf("%s: %+v", line, d)
		}
	})
}

func position(t *testing.T, s string) weir.Position {
	t.Helper()
	p, err := shard.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRequestsForCheckpoints(t *testing.T) {
	t.Parallel()
	// Delivered: 20 (plain), 30 with the numbers 0 to 2, 40 (plain). The last checkpoint is at 10.
	delivered := func(t *testing.T) *progress {
		p := begin(position(t, "10"))
		for _, r := range []struct {
			at  string
			sub int64
		}{{"20", 0}, {"30+1", 0}, {"30+2", 1}, {"30", 2}, {"40", 0}} {
			p.records = append(p.records, record{position(t, r.at), r.sub})
		}
		p.delivered, p.any = spot{"40", 0}, true
		return p
	}
	for name, c := range map[string]struct {
		r      request
		ending bool
		save   string
		fails  string
		end    bool
	}{
		"without a place, at the last record":   {r: request{}, save: "40"},
		"at a plain record":                     {r: request{text("20"), nil}, save: "20"},
		"without a number, at the first packed": {r: request{text("30"), nil}, save: "30+1"},
		"at a packed record":                    {r: request{text("30"), num(1)}, save: "30+2"},
		"at the last packed record":             {r: request{text("30"), num(2)}, save: "30"},
		"beyond the packed records":             {r: request{text("30"), num(9)}, save: "30"},
		"between two records":                   {r: request{text("35"), nil}, save: "30"},
		"at the last record":                    {r: request{text("40"), num(0)}, save: "40"},
		"with leading zeros":                    {r: request{text("0020"), nil}, save: "20"},
		"at the last checkpoint":                {r: request{text("10"), nil}},
		"before the last checkpoint":            {r: request{text("9"), nil}, fails: errorIllegalArgument},
		"beyond the last record":                {r: request{text("41"), nil}, fails: errorIllegalArgument},
		"beyond the last record, within it":     {r: request{text("40"), num(1)}, fails: errorIllegalArgument},
		"a word before":                         {r: request{text(trimHorizon), nil}, fails: errorIllegalArgument},
		"the end, too early":                    {r: request{text(shardEnd), nil}, fails: errorIllegalArgument},
		"no number":                             {r: request{text("x"), nil}, fails: errorIllegalArgument},
		"an empty text":                         {r: request{text(""), nil}, fails: errorIllegalArgument},
		"a negative number":                     {r: request{text("20"), num(-1)}, fails: errorIllegalArgument},
		"the end":                               {r: request{}, ending: true, save: "40", end: true},
		"the end by its name":                   {r: request{text(shardEnd), nil}, ending: true, save: "40", end: true},
		"the end as the last record":            {r: request{text("40"), nil}, ending: true, save: "40", end: true},
		"not the end":                           {r: request{text("20"), nil}, ending: true, save: "20"},
	} {
		p := delivered(t)
		p.ending = c.ending
		d := p.decide(c.r, true)
		if d.save.String() != c.save || d.failure != c.fails || d.end != c.end {
			t.Errorf("%s: %+v", name, d)
		}
		if d.failure == "" {
			p.saved(d)
			if again := p.decide(c.r, true); !again.save.IsZero() || again.failure != "" {
				t.Errorf("%s, again: %+v", name, again)
			}
		}
		if d := p.decide(c.r, false); d.failure != errorInvalidState {
			t.Errorf("%s, not allowed: %+v", name, d)
		}
	}
	p := begin(weir.Oldest)
	if d := p.decide(request{}, true); d.failure != "" || !d.save.IsZero() || d.at.sequence != trimHorizon {
		t.Errorf("nothing delivered: %+v", d)
	}
	if d := p.decide(request{text(trimHorizon), nil}, true); d.failure != "" || !d.save.IsZero() {
		t.Errorf("the start: %+v", d)
	}
}
