package http1

import (
	"context"
	"errors"
	"os"
	"time"
)

// Silence is detected by a deadline for reading, without a timer or a goroutine. The deadline is
// often too early, because it is not set for each call. When it passes, the reader checks the
// clock, and continues to read until the silence has lasted long enough.

// lastLook is the duration of a last read before a silent connection counts as dead. If this
// process was delayed, the answer may already have arrived, and this read finds it.
const lastLook = 10 * time.Millisecond

// listen sets a deadline for reading. since is the beginning of the silence. The deadline is no
// later than the time at which the connection has been silent for too long. listen keeps an
// existing deadline that allows at least half of [Bound].Silence.
func (c *conn) listen(since time.Time) {
	if c.soft.Sub(since) < c.bound.Silence/2 || c.soft.Sub(since) > c.bound.Silence {
		c.readUntil(since.Add(c.bound.Silence))
	}
}

// readUntil sets the deadline for reading, but no later than the call's deadline. It may undo an
// earlier interruption.
func (c *conn) readUntil(at time.Time) {
	if !c.most.IsZero() && at.After(c.most) {
		at = c.most
	}
	c.soft = at
	if c.SetReadDeadline(at) != nil {
		c.cut()
	}
}

// listenOn continues to read after the deadline of listen has passed. It returns when a byte
// arrives, when the listener gives up the connection, or when the call is over.
func (c *conn) listenOn(ctx context.Context, p []byte, since time.Time) (int, error) {
	looked := false
	for {
		now := time.Now()
		if !c.most.IsZero() && !now.Before(c.most) {
			return 0, os.ErrDeadlineExceeded
		}
		switch left := since.Add(c.bound.Silence).Sub(now); {
		case c.bound.Listener == nil:
			c.readUntil(c.most)
		case left > 0:
			c.readUntil(now.Add(left))
		case !looked:
			looked = true
			c.readUntil(now.Add(lastLook))
		case c.bound.Listener.GiveUp():
			c.host.suspect(since)
			return 0, ErrSilent
		default:
			c.bound.Listener = nil
			c.readUntil(c.most)
		}
		c.stillCut(ctx)
		n, err := c.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil {
			return n, err
		}
	}
}
