package pooled

import (
	"slices"
	"sync"
	"testing"
)

type part struct {
	n    int
	text string //nolint:unused // set by reflection
}

type object struct {
	part
	mu    sync.Mutex //nolint:unused // Fill must skip it
	list  []*int
	bytes []byte
	err   error
	call  func()
	owner string
}

func TestAnIncompleteResetIsFound(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reset func(*object)
		want  []string
	}{
		{"complete", func(o *object) {
			clear(o.list)
			o.part, o.list, o.bytes, o.err, o.call = part{}, o.list[:0], o.bytes[:0], nil, nil
		}, nil},
		{"nothing", func(*object) {}, []string{"part.n", "part.text", "list", "bytes", "err", "call"}},
		{"one field is forgotten", func(o *object) {
			clear(o.list)
			o.n, o.list, o.bytes, o.err, o.call = 0, o.list[:0], o.bytes[:0], nil, nil
		}, []string{"part.text"}},
		{"the spare memory keeps pointers", func(o *object) {
			o.part, o.list, o.bytes, o.err, o.call = part{}, o.list[:0], nil, nil, nil
		}, []string{"list keeps what it held in its spare memory"}},
	} {
		o := new(object)
		Fill(o)
		if o.owner == "" || o.err == nil || o.call == nil || o.list[0] == nil {
			t.Fatal("Fill leaves a field as it is")
		}
		tt.reset(o)
		if got := Differences(o, new(object), "owner"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: the differences are %q, want %q", tt.name, got, tt.want)
		}
	}
}
