package shardrun

import (
	"testing"
	"unsafe"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/pull"
	"github.com/weir-go/weir/lease"
)

// Each idle shard has one Loop, one Term and one feed. Their sizes are size classes of the heap.
// One more byte would take 16 or 32 bytes more of the heap, and twice that of the process's memory.
func TestWhatAShardIsReadWithIsSmall(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("pointers have another size")
	}
	if n := unsafe.Sizeof(Loop{}); n > 144 {
		t.Errorf("a loop has %d bytes", n)
	}
	if n := unsafe.Sizeof(group.Term{}); n > 288 {
		t.Errorf("a term has %d bytes", n)
	}
}

// A hold belongs to one call of the function that pulls. A hold that is set after the call has
// ended has no effect.
func TestAHoldEndsWithItsTerm(t *testing.T) {
	in := shared(t, Config{}, nil)
	term := group.NewTestTerm(lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2})
	before, now := new(pull.Progress), new(pull.Progress)
	l := NewTestLoop(in, term, nil)
	if l.Held().Why != "" {
		t.Error("a loop without a handler is held")
	}
	l.handledBy(newSession(l, &fakeHandler{pulling: before}, Position{}))
	if before.Hold("by an open window"); l.Held().Why == "" {
		t.Error("a hold is not seen")
	}
	l.handledBy(nil)
	if l.Held().Why != "" {
		t.Error("a hold outlasts its term")
	}
	l.handledBy(newSession(l, &fakeHandler{pulling: now}, Position{}))
	if before.Hold("late"); l.Held().Why != "" {
		t.Error("a late call holds the next term's checkpoint")
	}
	now.Hold("by an open window")
	if now.Hold(""); l.Held().Why != "" {
		t.Error("a hold that was lifted is seen")
	}
	now.Hold("by an open window")
	if l.Leave(); l.Held().Why != "" {
		t.Error("a handler that was left behind holds the checkpoint")
	}
}
