package verdict

import (
	"reflect"
	"strings"
	"testing"
)

// given returns the tale with one change: number 100 of a key is poison. It was never handled, and
// b dead-lettered it.
func given() *tale {
	t := told()
	t.a.Handlings, t.b.Handlings = without(t.a.Handlings, 100), without(t.b.Handlings, 100)
	t.Poison = func(p Put) bool { return p.Key == "key-one" && p.Number == 100 }
	t.Letters = []Letter{{Put: t.put("one", 100), ID: "one/100", Life: "b.1", Shard: "one", Epoch: 2, At: 17 * sec, Confirmed: true}}
	return t
}

func without(all []Handling, number int) (kept []Handling) {
	for _, h := range all {
		if h.Shard != "one" || h.Number != number {
			kept = append(kept, h)
		}
	}
	return kept
}

func TestLetters(t *testing.T) {
	again := func(t *tale, change func(*Letter)) {
		l := t.Letters[0]
		l.At += sec
		change(&l)
		t.Letters = append(t.Letters, l)
	}
	for _, c := range []struct {
		name string
		do   func(*tale)
		says string // "" means no violation
	}{
		{"a record that was dead-lettered is not lost", func(*tale) {}, ""},
		{"without its dead letter it is", func(t *tale) { t.Letters = nil }, "number 100 of key key-one was never handled"},
		{"a dead letter of a record that can be handled", func(t *tale) { t.Poison = func(Put) bool { return false } }, "which can be handled"},
		{"a dead letter of a record that was handled", func(t *tale) { t.handle(t.b, "one", 2, 100, 16*sec+100*ms, 16*sec+100*ms+ms/4) }, "had handled"},
		{"a dead letter of a record that was never put", func(t *tale) { t.Letters[0].Key = "else" }, "never put"},
		{"a dead letter twice by one owner", func(t *tale) { again(t, func(*Letter) {}) }, "although that was confirmed"},
		{"one that was not confirmed", func(t *tale) {
			t.Letters[0].Confirmed = false
			again(t, func(*Letter) {})
		}, ""},
		{"one of the next owner", func(t *tale) { again(t, func(l *Letter) { l.Epoch, l.Life = 3, "c.1" }) }, ""},
		{"one of the next owner with another ID", func(t *tale) { again(t, func(l *Letter) { l.Epoch, l.ID = 3, "one/100/3" }) }, "has dead letters with the IDs"},
		{"one ID for two records", func(t *tale) {
			t.Poison = func(Put) bool { return true }
			again(t, func(l *Letter) { l.Put = t.put("two", 100) })
		}, "have the ID one/100"},
	} {
		told := given()
		c.do(told)
		told.AnyWait = true
		v := told.judge()
		if got := strings.Join(v.Violations, "; "); c.says == "" && got != "" || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q", c.name, v.Violations)
		}
	}
}

func TestLettersAreReadAsTheyWereWritten(t *testing.T) {
	want := []Letter{{Put{"key", 3, 7}, "s/1/2", "w1.2", "shard", 4, 9, true}, {Put{"key", 4, 8}, "s/1/3", "w1.2", "shard", 4, 10, false}}
	text := AppendLetter(AppendLetter(nil, want[0]), want[1])
	got, err := ParseLetters(append(text, "half a line"...))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := ParseLetters([]byte("key\t1\t2\n")); err == nil {
		t.Error("a line that is too short is taken")
	}
}
