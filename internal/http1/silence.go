package http1

import (
	"context"
	"errors"
	"os"
	"time"
)

// Silence is noticed with the deadline for reading, without a timer or a goroutine of its own.
// That deadline is often too early, because it is not set anew for each call: whoever finds that
// it has passed looks at the clock and reads on.

// lastLook is how long a connection that has been silent for long enough is read once more. An
// answer that is there already is found in that time, however late this process came to look.
const lastLook = 10 * time.Millisecond

// listen sets a deadline for reading that comes no later than when a connection has been silent
// since a time for as long as it may be. One that is set and leaves half of that time is good
// enough.
func (c *conn) listen(since time.Time) {
	if c.soft.Sub(since) < c.bound.Silence/2 || c.soft.Sub(since) > c.bound.Silence {
		c.readUntil(since.Add(c.bound.Silence))
	}
}

// readUntil sets the deadline for reading, no later than where the call is bounded. An
// interruption that came before may be lost.
func (c *conn) readUntil(at time.Time) {
	if !c.most.IsZero() && at.After(c.most) {
		at = c.most
	}
	c.soft = at
	if c.SetReadDeadline(at) != nil {
		c.cut()
	}
}

// listenOn reads on when the deadline of listen has passed: until a byte comes, the listener gives
// the connection up, or the call is over.
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
