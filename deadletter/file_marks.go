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

// marks holds the state of the letters of a file, as this box has read it. Between two listings it
// reads only appended lines, so that a mark does not read the whole file.
type marks struct {
	of     os.FileInfo // the file that was read
	read   int64       // end of the last line that was read
	listed bool        // whether the box has yielded letters
	states map[seen.Key]standing
	// seen contains the states in which the box has seen letters that others have changed since. If
	// it has listed letters, it has seen all others in their present state in states. A letter that
	// was never marked is in neither map.
	seen map[seen.Key]standing
}

// from returns the state in which the box named by has seen a letter, if it has.
func (m *marks) from(by string, key seen.Key) (standing, bool) {
	if s, ok := m.seen[key]; ok {
		return s, true
	}
	s := m.states[key]
	return s, m.listed || s.By == by
}

// change records a change of a letter's state.
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

// replace records that the whole file was read up to an end, and the states of its letters.
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

// forget removes letters that the file no longer contains, except for those that this box is
// handling.
func (m *marks) forget(by string, last map[seen.Key]int) {
	for key, s := range m.seen {
		if _, there := last[key]; !there && (s.State != Begun || s.By != by) {
			delete(m.seen, key)
		}
	}
}

// see returns the state of a letter. The box has then seen that state.
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
			_ = from.Close() // it was not read
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("weir: dead letters: %w", err)
	}
	return from, now, nil
}

// index reads the whole file, and returns the last line of each letter.
func (f *file) index(ctx context.Context) (last map[seen.Key]int, err error) {
	f.marking.Lock()
	defer f.marking.Unlock()
	from, now, err := f.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }() // it was only read
	last, states, read := map[seen.Key]int{}, map[seen.Key]standing{}, int64(0)
	err = f.each(ctx, from, func(n int, text []byte) bool {
		l := decode(text)
		if l.ID != "" {
			last[seen.KeyOf(l.ID)] = n
		}
		l.apply(states, nil)
		if text[len(text)-1] == '\n' { // otherwise a writer may be active: follow reads it again
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

// follow reads the appended lines, and returns the letters for which one of them is a valid mark of
// this box. The caller holds marking.
func (f *file) follow(ctx context.Context) (marked map[seen.Key]bool, err error) {
	from, now, err := f.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }() // it was only read
	m := &f.marks
	// the file was moved away or edited
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

// statement is a line of the file: a mark of some letters, or a letter.
type statement struct {
	mark
	ID string `json:"id"`
}

// decode reads a line. An unreadable line is ignored.
func decode(text []byte) (s statement) {
	if json.Unmarshal(bytes.TrimSpace(text), &s) != nil {
		return statement{}
	}
	return s
}

// apply applies a line to states, and calls changed, if that is not nil, for each letter whose
// state changes. A letter that is put again was given up again, and loses its earlier state.
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
