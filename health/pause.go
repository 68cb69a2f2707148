package health

import "time"

// Pause is the beginning of a pause.
type Pause struct {
	Stream string    // "" stands for the whole application
	By     string    // the operator, such as "ada@laptop", or "" if unknown
	At     time.Time // on the operator's clock; zero if unknown
}

// String returns who paused the stream, and when, such as "by ada@laptop at 14:03 UTC on 2
// January". It returns "" if neither is known.
func (p Pause) String() string {
	by, at := "", ""
	if p.By != "" {
		by = "by " + clean(p.By)
	}
	if !p.At.IsZero() {
		at = p.At.UTC().Format("at 15:04 UTC on 2 January")
	}
	if by == "" || at == "" {
		return by + at
	}
	return by + " " + at
}

// pausedBy returns who paused a stream and when, as the end of a sentence, or "".
func (c *conclusion) pausedBy(stream string) string {
	for _, p := range c.Pauses {
		if text := p.String(); p.Stream == stream && text != "" {
			return "; it was paused " + text
		}
	}
	return ""
}
