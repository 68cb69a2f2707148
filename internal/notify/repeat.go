package notify

import (
	"context"
	"log/slog"
	"strings"
	"time"
	"unicode"
)

const (
	// repeatFirst and repeatMost are the minimum and maximum of the time between two lines with the
	// same cause. The time doubles while the cause lasts.
	repeatFirst = 10 * time.Second
	repeatMost  = time.Minute
	// mostCauses is the maximum number of separate causes. All further ones count as one cause.
	mostCauses = 200
)

// Repeats returns a logger that limits repeated lines. to must be a logger from [Queue.Logger].
// Lines have the same cause if their level and message are equal and their attributes err differ at
// most in numbers.
//
// The first line of a cause is logged at once, and an interval of 10 s begins. At the end of the
// interval, the last line of the interval is logged, with the number of its lines as "repeated".
// The next interval is twice as long, up to a minute. After an interval without lines of the cause,
// the interval is 10 s again. Flush logs the waiting lines.
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

// limiter limits the lines of a logger, see Repeats. Only the queue's goroutine uses it, because
// the text of an err comes from user code.
type limiter struct {
	queue  *Queue
	causes map[string]*cause
}

// cause contains the state about lines with the same cause.
type cause struct {
	logged  time.Time // time of the last line
	every   time.Duration
	waiting int // number of lines since then
	write   func(repeated int)
}

// pass calls write now or later. write logs a line. repeated is the number of lines that this line
// represents.
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

// Flush logs the waiting lines of all loggers from Repeats. It must be called before Close.
func (q *Queue) Flush() {
	for _, l := range q.limits {
		q.Add(State, l, func() {
			for _, c := range l.causes {
				c.flush(time.Now())
			}
		})
	}
}

// causeOf returns a text that identifies the cause of a line.
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

// withoutNumbers puts "#" in place of each word of s that has a digit. Errors that differ only in
// sequence numbers, IDs or times are then equal.
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
