package aggregate

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestTagsTravelWithTheirRecord(t *testing.T) {
	t.Parallel()
	tags := Tags{}.With("traceparent", "00-1-2-01").With("", "").With("traceparent", "later")
	other := tags.With("only", "here")
	var b Builder
	for _, add := range []struct {
		data string
		tags Tags
	}{{"one", tags}, {"two", Tags{}}, {"", other}} {
		if err := b.AddTagged("key", "", []byte(add.data), add.tags); err != nil {
			t.Fatal(err)
		}
	}
	payload := b.AppendContainer(nil)
	if len(payload) != b.Size() {
		t.Errorf("%d bytes, Size says %d", len(payload), b.Size())
	}
	var a Aggregate
	agree(t, &a, payload)
	if ok, err := a.Parse(payload); !ok {
		t.Fatal(err)
	}
	want := `"traceparent"="00-1-2-01" ""="" "traceparent"="later" `
	for i, want := range []string{want, "", want + `"only"="here" `} {
		if got := told(a.Record(i).Tags()); got != want {
			t.Errorf("record %d has %s, want %s", i, got, want)
		}
	}
	if v, ok := a.Record(0).Tags().Get("traceparent"); v != "00-1-2-01" || !ok {
		t.Errorf("the first of two values is %q, %v", v, ok)
	}
	if v, ok := a.Record(1).Tags().Get("traceparent"); v != "" || ok {
		t.Errorf("got %q of a record without tags", v)
	}
	kept, aliased := a.Record(0).Tags().Clone(), a.Record(2).Tags()
	if other = aliased.With("x", "y"); told(kept) != want || aliased.IsZero() {
		t.Errorf("a copy has %s", told(kept))
	}
	if before := bytes.Clone(payload); !bytes.Equal(before, b.AppendContainer(nil)) {
		t.Error("With wrote into the payload")
	}
	clear(payload)
	if told(kept) != want || !strings.HasSuffix(told(other), `"x"="y" `) {
		t.Errorf("after the payload is gone: %s, %s", told(kept), told(other))
	}
}

func TestARecordAloneIsWrappedForItsTags(t *testing.T) {
	t.Parallel()
	var b Builder
	if err := b.AddTagged("key", "7", []byte("data"), Tags{}.With("k", "v")); err != nil {
		t.Fatal(err)
	}
	if got := b.Append(nil); !bytes.Equal(got, b.AppendContainer(nil)) || !Marked(got) {
		t.Errorf("%q", got)
	}
	b.Reset()
	add(t, &b, sub{"key", "7", "data"})
	if got := b.Append(nil); string(got) != "data" {
		t.Errorf("the next one is %q", got)
	}
}

func TestTagsCountForTheLimit(t *testing.T) {
	t.Parallel()
	tags := Tags{}.With("k", strings.Repeat("v", 200))
	var whole Builder
	if err := whole.AddTagged("key", "", []byte("data"), tags); err != nil {
		t.Fatal(err)
	}
	size := len(whole.AppendContainer(nil))
	for limit := size - 5; limit < size+5; limit++ {
		b := Builder{Limit: limit}
		err := b.AddTagged("key", "", []byte("data"), tags)
		if fits := size <= limit; (err == nil) != fits || !fits && (!errors.Is(err, ErrFull) || b.Len() != 0) {
			t.Errorf("limit %d, %d bytes: %v, %d records", limit, size, err, b.Len())
		}
	}
}

// The tags of a record need not be adjacent. Fields between them are not tags.
func TestTagsAreFoundWhereverTheyLie(t *testing.T) {
	t.Parallel()
	a, b := Tags{}.With("a", "1").encoded, Tags{}.With("b", "2").encoded
	record := slices.Concat(a, []byte{0x08, 0}, []byte{0x2a, 2, 0x22, 0x22}, []byte{0x1a, 1, 'd'}, []byte{0x33, 0x08, 0, 0x34}, b, []byte{0x3d, 1, 2, 3, 4})
	payload := seal([]byte{0x0a, 1, 'k', 0x1a, byte(len(record))}, record)
	var parsed Aggregate
	agree(t, &parsed, payload)
	if ok, err := parsed.Parse(payload); !ok || told(parsed.Record(0).Tags()) != `"a"="1" "b"="2" ` {
		t.Errorf("%v: %s", err, told(parsed.Record(0).Tags()))
	}
}
