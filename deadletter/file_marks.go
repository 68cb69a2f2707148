package deadletter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/weir-go/weir/internal/seen"
)

// marks contains the states of a file's dead letters, as this box has read them. Between two
// listings the box reads only appended lines, so that Mark does not need to read the whole file.
type marks struct {
	of     os.FileInfo // the file that was read
	read   int64       // end of the last line that was read
	listed bool        // the box has listed the dead letters
	states map[seen.Key]standing
	// seen is for dead letters that other boxes have changed since this box saw them. It contains
	// the states that this box saw. If listed is set, the box has seen all other dead letters in
	// their current state, which is in states. A dead letter that was never marked is in neither
	// map.
	seen map[seen.Key]standing
}

// from returns the state in which a box has seen a dead letter. It returns false if the box has not
// seen it.
func (m *marks) from(by string, key seen.Key) (standing, bool) {
	if s, ok := m.seen[key]; ok {
		return s, true
	}
	s := m.states[key]
	return s, m.listed || s.By == by
}

// change records a change of a dead letter's state.
func (m *marks) change(by string, key seen.Key, before, now standing) {
	if now.By == by {
		delete(m.seen, key)
		return
	}
	if _, ok := m.seen[key]; !ok && (m.listed || before.By == by) {
		if m.seen == nil {
			m.seen = map[seen.Key]standing{}
		}
		m.seen[key] = before
	}
}

// replace records that the file was read again from its beginning. read is the end of the part that
// was read, and states contains the states of its dead letters.
func (m *marks) replace(by string, of os.FileInfo, read int64, states map[seen.Key]standing) {
	for key, before := range m.states {
		if now := states[key]; !now.same(before) {
			m.change(by, key, before, now)
		}
	}
	for key, now := range states {
		if _, known := m.states[key]; !known {
			m.change(by, key, standing{}, now)
		}
	}
	m.of, m.read, m.states = of, read, states
}

// forget removes dead letters that are no longer in the file, except those that this box is
// handling.
func (m *marks) forget(by string, last map[seen.Key]int) {
	for key, s := range m.seen {
		if _, there := last[key]; !there && (s.State != Begun || s.By != by) {
			delete(m.seen, key)
		}
	}
}

// see returns the state of a dead letter. The box has then seen that state.
func (f *file) see(key seen.Key) standing {
	f.marking.Lock()
	defer f.marking.Unlock()
	delete(f.marks.seen, key)
	return f.marks.states[key]
}

// open opens the file for reading.
func (f *file) open() (from *os.File, now os.FileInfo, err error) {
	if from, err = os.Open(f.path); err == nil {
		if now, err = from.Stat(); err != nil {
			_ = from.Close() // nothing was read or written
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("weir: dead letters: %w", err)
	}
	return from, now, nil
}

// index reads the whole file and returns the last line number of each dead letter.
func (f *file) index(ctx context.Context) (last map[seen.Key]int, err error) {
	f.marking.Lock()
	defer f.marking.Unlock()
	from, now, err := f.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }() // the file was only read
	last, states, read := map[seen.Key]int{}, map[seen.Key]standing{}, int64(0)
	err = f.each(ctx, from, func(n int, text []byte) bool {
		l := decode(text)
		if l.ID != "" {
			last[seen.KeyOf(l.ID)] = n
		}
		l.apply(states, nil)
		if text[len(text)-1] == '\n' { // otherwise a writer may be active
			read += int64(len(text))
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	f.marks.replace(f.by, now, read, states)
	f.marks.forget(f.by, last)
	f.marks.listed = true
	return last, nil
}

// follow reads the appended lines. It returns the dead letters that a valid mark of this box in
// these lines has changed. The caller holds marking.
func (f *file) follow(ctx context.Context) (marked map[seen.Key]bool, err error) {
	from, now, err := f.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }() // the file was only read
	m := &f.marks
	// The file was moved away or edited.
	if m.of == nil || !os.SameFile(m.of, now) || now.Size() < m.read {
		m.replace(f.by, now, 0, map[seen.Key]standing{})
	}
	if _, err := from.Seek(m.read, io.SeekStart); err != nil {
		return nil, fmt.Errorf("weir: dead letters: %w", err)
	}
	marked = map[seen.Key]bool{}
	err = f.each(ctx, from, func(_ int, text []byte) bool {
		if text[len(text)-1] != '\n' { // a writer is active
			return false
		}
		m.read += int64(len(text))
		l := decode(text)
		l.apply(m.states, func(key seen.Key, before, now standing) {
			m.change(f.by, key, before, now)
			if now.By == f.by {
				marked[key] = true
			}
		})
		return true
	})
	return marked, err
}

// statement is a line of the file: a mark, or a dead letter.
type statement struct {
	mark
	ID string `json:"id"`
}

// decode parses a line. It returns the zero statement for an unreadable line.
func decode(text []byte) (s statement) {
	if json.Unmarshal(bytes.TrimSpace(text), &s) != nil {
		return statement{}
	}
	return s
}

// apply applies a line to states. If changed is not nil, apply calls it for each dead letter whose
// state changes. If the line puts a dead letter again, the record was dead-lettered again, so apply
// drops the earlier state.
func (s *statement) apply(states map[seen.Key]standing, changed func(key seen.Key, before, now standing)) {
	if s.ID != "" {
		key := seen.KeyOf(s.ID)
		if before, marked := states[key]; marked {
			delete(states, key)
			if changed != nil {
				changed(key, before, standing{})
			}
		}
	}
	for _, id := range s.IDs {
		key := seen.KeyOf(id)
		before := states[key]
		if s.From != nil && !before.same(*s.From) {
			continue
		}
		states[key] = s.standing
		if changed != nil {
			changed(key, before, s.standing)
		}
	}
}
