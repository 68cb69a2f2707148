package judge

import (
	"slices"
	"testing"
)

func TestJournalRoundTrip(t *testing.T) {
	want := []Handling{
		{Shard: "shardId-000000000000", Epoch: 1, Sequence: "49618000000000000000000000000000000000000000000000000002", Key: "ATL", Index: 0, At: 17},
		{Shard: "shardId-000000000003", Epoch: 12, Sequence: "1", Key: "", Index: 19999, At: 18},
	}
	var text []byte
	for _, h := range want {
		text = AppendLine(text, h)
	}
	torn := AppendLine(nil, want[0])
	text = append(text, torn[:len(torn)-5]...)

	got, rest, err := ParseLines(text)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if string(rest) != string(torn[:len(torn)-5]) {
		t.Errorf("rest %q is not the torn line", rest)
	}
	got, rest, err = ParseLines(append(rest, torn[len(torn)-5:]...))
	if err != nil || len(got) != 1 || got[0] != want[0] || len(rest) != 0 {
		t.Errorf("the rest of the line: got %v, %q, %v", got, rest, err)
	}
}

func TestDamagedJournalsAreErrors(t *testing.T) {
	for name, text := range map[string]string{
		"a field is missing":          "s\t1\t2\tk\t3\n",
		"a field too many":            "s\t1\t2\tk\t3\t4\t5\n",
		"the epoch is no number":      "s\tx\t2\tk\t3\t4\n",
		"the index is no number":      "s\t1\t2\tk\tx\t4\n",
		"the time is no number":       "s\t1\t2\tk\t3\tx\n",
		"the sequence is no number":   "s\t1\t2x\tk\t3\t4\n",
		"the sequence number is gone": "s\t1\t\tk\t3\t4\n",
		"an empty line":               "\n",
	} {
		if got, _, err := ParseLines([]byte(text)); err == nil {
			t.Errorf("%s: no error but %v", name, got)
		}
	}
}

func FuzzParseLines(f *testing.F) {
	f.Add([]byte("s\t1\t2\tk\t3\t4\ns\t1"))
	f.Add([]byte("\t\t\t\t\t\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		handled, rest, err := ParseLines(text)
		if err != nil {
			return
		}
		var again []byte
		for _, h := range handled {
			again = AppendLine(again, h)
		}
		twice, _, err := ParseLines(append(again, rest...))
		if err != nil || !slices.Equal(twice, handled) {
			t.Errorf("%q: %v became %v, %v", text, handled, twice, err)
		}
	})
}
