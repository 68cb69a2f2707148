package weir

import (
	"testing"
	"unsafe"

	"github.com/weir-go/weir/internal/group"
)

func TestARecordIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(Record{}); n > 80 {
		t.Errorf("a record has %d bytes", n)
	}
}

// Each idle shard has one of each, and of its feed. They have the sizes of the heap's classes: one byte more takes 16 or 32, and twice that of
// the process.
func TestWhatAShardIsReadWithIsSmall(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("pointers have another size")
	}
	if n := unsafe.Sizeof(shardLoop{}); n > 144 {
		t.Errorf("a loop has %d bytes", n)
	}
	if n := unsafe.Sizeof(group.Term{}); n > 288 {
		t.Errorf("a term has %d bytes", n)
	}
}
