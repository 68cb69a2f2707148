package lease

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxPauseNoteBytes is the maximum length of a [PauseNote] as text.
const MaxPauseNoteBytes = 300

// PauseNote contains who paused a stream, and when. It is for people.
type PauseNote struct {
	// By names the operator, such as "ada@laptop". It is "" if it is unknown.
	By string
	// At is the time on the operator's clock, in milliseconds. It is zero if it is unknown.
	At time.Time
}

// String returns the note in the form that stores keep. It omits control characters and the end of
// a long name. It returns "" for the zero note.
func (n PauseNote) String() string {
	if n == (PauseNote{}) {
		return ""
	}
	at := int64(0)
	if !n.At.IsZero() {
		at = n.At.UnixMilli()
	}
	text := strconv.FormatInt(at, 10) + " " + strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(n.By, ""))
	for len(text) > MaxPauseNoteBytes {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// ParsePauseNote parses the result of [PauseNote.String]. It returns the zero note for any other
// text.
func ParsePauseNote(s string) PauseNote {
	text, by, ok := strings.Cut(s, " ")
	at, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || at < 0 || !okPauseNote(s) {
		return PauseNote{}
	}
	n := PauseNote{By: by}
	if at > 0 {
		n.At = time.UnixMilli(at)
	}
	return n
}

// okPauseNote reports whether every store can keep a note.
func okPauseNote(s string) bool {
	return len(s) <= MaxPauseNoteBytes && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// PauseNote returns the note of a paused stream. It is zero if the stream is not paused or has no
// note.
func (v View) PauseNote(stream string) PauseNote {
	if !slices.Contains(v.Paused, stream) {
		return PauseNote{}
	}
	return ParsePauseNote(v.PauseNotes[stream])
}
