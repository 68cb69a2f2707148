package polling

import (
	"testing"
	"unsafe"
)

// Each idle shard has a feed. One more byte would take 32 bytes of heap, and twice that of the
// process.
func TestAFeedIsSmall(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(Feed{}); unsafe.Sizeof(uintptr(0)) == 8 && size > 288 {
		t.Errorf("%d bytes", size)
	}
}
