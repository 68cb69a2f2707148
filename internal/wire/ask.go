package wire

import (
	"cmp"
	"context"

	"github.com/weir-go/weir/internal/wire/codec"
)

// Splits reports whether requests can be sent before their answers are read, see [Caller.Ask]. Own
// calls over our own HTTP client can, while that client makes the calls to all endpoints.
func (c *Caller) Splits() bool { return c.path == OwnCall && c.lean != nil && !c.fell.Load() }

// Ask sends the request of a [Caller.Read] with the same arguments. That Read must follow, and then
// only reads the answer. Many requests can thus be sent, each on its own line, before the first
// answer is awaited. The call's time begins with Ask. Ask does not wait for a connection. If it
// returns false, nothing was sent, and Read makes the whole call.
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
