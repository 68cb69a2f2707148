package deadletter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// marks is how the letters of a file stand, as far as it was read. It goes on from there, so that
// many marks one after the other do not read the file each.
type marks struct {
	of     os.FileInfo // the file that was read
	read   int64       // up to here, the end of a line
	states map[string]standing
}

// follow reads what was added to the file, and returns the letters for which a mark of this box in
// it counts. The caller holds mu.
func (f *file) follow(ctx context.Context) (marked map[string]bool, err error) {
	from, err := os.Open(f.path)
	if err != nil {
		return nil, fmt.Errorf("weir: dead letters: %w", err)
	}
	defer func() { _ = from.Close() }() // it was only read
	now, err := from.Stat()
	if err != nil {
		return nil, fmt.Errorf("weir: dead letters: %w", err)
	}
	m := &f.marks
	if m.of == nil || !os.SameFile(m.of, now) || now.Size() < m.read { // it was put away, or changed by hand
		*m = marks{of: now, states: map[string]standing{}}
	}
	if _, err := from.Seek(m.read, io.SeekStart); err != nil {
		return nil, fmt.Errorf("weir: dead letters: %w", err)
	}
	marked = map[string]bool{}
	err = f.each(ctx, from, func(_ int, line []byte) bool {
		if line[len(line)-1] != '\n' { // somebody is writing it
			return false
		}
		m.read += int64(len(line))
		apply(m.states, bytes.TrimSpace(line), func(id, by string) {
			if by == f.by {
				marked[id] = true
			}
		})
		return true
	})
	return marked, err
}

// apply does to states what a line says, and returns the ID of the letter if the line is one: a
// letter that was put again was given up again, whatever became of it before. It calls marked, if
// that is not nil, with each letter for which a mark counts.
func apply(states map[string]standing, line []byte, marked func(id, by string)) (put string) {
	var is struct {
		mark
		ID string `json:"id"`
	}
	if json.Unmarshal(line, &is) != nil {
		return ""
	}
	if is.ID != "" {
		delete(states, is.ID)
	}
	for _, id := range is.IDs {
		if is.From != nil && !states[id].same(*is.From) {
			continue
		}
		states[id] = is.standing
		if marked != nil {
			marked(id, is.By)
		}
	}
	return is.ID
}
