package polling

import (
	"testing"
	"unsafe"
)

// Each idle shard has a feed. One more byte would move a feed to the next size class, with 32 bytes
// more of heap and 64 bytes more of process memory.
func TestAFeedIsSmall(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(Feed{}); unsafe.Sizeof(uintptr(0)) == 8 && size > 288 {
		t.Errorf("%d bytes", size)
	}
}
