package notify

import (
	"context"
	"log/slog"
	"strings"
	"time"
	"unicode"
)

const (
	// repeatFirst and repeatMost limit the time between two lines of one cause. It doubles while
	// the cause lasts.
	repeatFirst = 10 * time.Second
	repeatMost  = time.Minute
	// mostCauses limits the number of separate causes. All further ones count as one cause.
	mostCauses = 200
)

// Repeats returns a logger like to, which [Queue.Logger] made, that limits repeated lines. Lines
// have one cause if their level and message are equal and their err differs only in numbers. The
// first line of a cause is logged at once. Those of the next 10 s count as one: the last of them is
// logged at the end of that time, with their number as "repeated". The time doubles up to a minute.
// It is 10 s again after the cause was absent for as long. Flush logs the waiting lines.
func (q *Queue) Repeats(to *slog.Logger) *slog.Logger {
	h, ok := to.Handler().(*handler)
	if !ok {
		return to
	}
	limited := *h
	limited.limit = &limiter{queue: q, causes: map[string]*cause{}}
	q.limits = append(q.limits, limited.limit)
	return slog.New(&limited)
}

// Only the queue's goroutine uses a limiter, because the text of an err comes from the user's code.
type limiter struct {
	queue  *Queue
	causes map[string]*cause
}

// cause describes the lines of one cause.
type cause struct {
	logged  time.Time // the last line
	every   time.Duration
	waiting int // lines since then
	write   func(repeated int)
}

// pass calls write now or later. write logs a line, with the number of lines for which it stands.
func (l *limiter) pass(key string, now time.Time, write func(repeated int)) {
	c := l.causes[key]
	if c == nil && len(l.causes) >= mostCauses {
		for k, c := range l.causes {
			if c.waiting == 0 && now.Sub(c.logged) >= repeatMost {
				delete(l.causes, k)
			}
		}
		if len(l.causes) >= mostCauses {
			key = ""
			c = l.causes[key]
		}
	}
	switch {
	case c == nil:
		l.causes[key] = &cause{logged: now, every: repeatFirst}
		write(1)
	case c.waiting == 0 && now.Sub(c.logged) >= c.every:
		*c = cause{logged: now, every: repeatFirst}
		write(1)
	default:
		c.write = write
		if c.waiting++; c.waiting == 1 {
			time.AfterFunc(c.logged.Add(c.every).Sub(now), func() {
				l.queue.Add(Important, nil, func() { c.flush(time.Now()) })
			})
		}
	}
}

// flush logs the last of the waiting lines.
func (c *cause) flush(now time.Time) {
	if c.waiting == 0 {
		return
	}
	n, write := c.waiting, c.write
	*c = cause{logged: now, every: min(2*c.every, repeatMost)}
	write(n)
}

// Flush logs the lines that loggers of Repeats hold back. It is called before Close.
func (q *Queue) Flush() {
	for _, l := range q.limits {
		q.Add(State, l, func() {
			for _, c := range l.causes {
				c.flush(time.Now())
			}
		})
	}
}

// causeOf names the cause of a line.
func causeOf(r slog.Record) string {
	var err string
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" {
			err = a.Value.Resolve().String()
		}
		return a.Key != "err"
	})
	return r.Level.String() + r.Message + "\x00" + withoutNumbers(err)
}

// withoutNumbers replaces each word of s that has a digit, so that errors are equal if they differ
// only in sequence numbers, IDs or times.
func withoutNumbers(s string) string {
	words := strings.FieldsFunc(s, func(r rune) bool { return r != '-' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, w := range words {
		if strings.ContainsFunc(w, unicode.IsDigit) {
			words[i] = "#"
		}
	}
	return strings.Join(words, " ")
}

// handleNow passes a record to the user's handler.
func handleNow(ctx context.Context, to slog.Handler, r slog.Record, repeated int) {
	if repeated > 1 {
		r = r.Clone()
		r.AddAttrs(slog.Int("repeated", repeated))
	}
	_ = to.Handle(ctx, r) // an error cannot be logged
}
