package main

import (
	"bytes"
	"io"
)

// longestOutputLine is where a line of a function's output is cut.
const longestOutputLine = 8 << 10

// prefixed writes whole lines with something in front, so that those of many processes do not mix.
// What is behind the first bytes of a long line is left out.
type prefixed struct {
	w      io.Writer
	prefix string
	line   []byte
	long   bool
}

// Write never fails: a process does not have to end because nobody reads what it says.
func (p *prefixed) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		part, rest, ended := bytes.Cut(b, []byte("\n"))
		if room := longestOutputLine - len(p.line); len(part) > room {
			part, p.long = part[:room], true
		}
		p.line = append(p.line, part...)
		if ended {
			p.flush()
		}
		b = rest
	}
	return n, nil
}

// flush writes the line that has begun.
func (p *prefixed) flush() {
	if len(p.line) == 0 {
		return
	}
	out := append([]byte(p.prefix), p.line...)
	if p.long {
		out = append(out, " …"...)
	}
	_, _ = p.w.Write(append(out, '\n'))
	p.line, p.long = p.line[:0], false
}
