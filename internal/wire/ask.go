package wire

import (
	"cmp"
	"context"

	"github.com/weir-go/weir/internal/wire/codec"
)

// Splits reports whether the Caller can send a request first and read its answer later, see
// [Caller.Ask]. It can do so on the path [OwnCall] with package http1, until the first answer that
// http1 could not parse.
func (c *Caller) Splits() bool { return c.path == OwnCall && c.lean != nil && !c.fell.Load() }

// Ask sends the request of a [Caller.Read] with the same arguments. The caller must then call Read,
// which only reads the answer. This way a caller can send many requests, each on its own line,
// before it waits for the first answer. The call's timeout begins with Ask. Ask never waits for a
// connection. If Ask returns false, it has sent nothing, and Read makes the whole call.
func (c *Caller) Ask(ctx context.Context, req Request) bool {
	if !c.Splits() || req.Line == nil || req.Line.asked != nil {
		return false
	}
	l := live(ctx, &req, c.opts.Timeout, c.slow)
	l.window = cmp.Or(req.Window, c.opts.Window)
	if !c.ask(l, &req) {
		l.end()
		return false
	}
	l.asked, req.Line.asked = true, l
	return true
}

func (c *Caller) ask(l *life, req *Request) bool {
	if c.prepare(l, req) != nil || l.ep.reason != "" || !c.byHand(l) {
		return false // Read returns the error
	}
	l.state = l.ep.format.load()
	f := c.opts.Format
	if f == codec.Auto {
		f = l.state.format()
	}
	d := drafts.Get().(*draft)
	defer drafts.Put(d)
	return l.line.line.Ask(l.caller, l.ep.lean, l.ep.message(d, c.now(), &l.cred, f, req), l.limits())
}
