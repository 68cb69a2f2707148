package consume

import (
	"reflect"
	"testing"

	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
)

func TestTakeovers(t *testing.T) {
	t.Parallel()
	key := func(shard string) lease.Key { return lease.Key{Stream: "s", Shard: shard} }
	past := observe.Past{
		key("1"): {{Minute: 10, Worker: "B"}, {Minute: 11, Worker: "A"}},
		key("2"): {{Minute: 12, Worker: "A"}, {Minute: 13, Worker: "me"}}, // its own report is there already
		key("3"): {{Minute: 9, Session: "s3"}},
		key("4"): {{Minute: 13, Worker: "me"}},
	}
	got := []taken{{key("1"), true}, {key("2"), true}, {key("3"), false}, {key("4"), false}, {key("5"), true}}
	want := []takeover{{"A", 2, true, 12}, {"s3", 1, false, 9}}
	if all := takeovers(got, past, "me"); !reflect.DeepEqual(all, want) {
		t.Errorf("%+v, want %+v", all, want)
	}
}
