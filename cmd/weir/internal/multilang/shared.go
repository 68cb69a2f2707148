package multilang

import (
	"io"
	"sync"
)

// shared is an output of all programs. Each write is done as a whole, also if it is slow: the
// programs wait meanwhile.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func newShared(w io.Writer) *shared { return &shared{w: w} }

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}
