package wire

import (
	"cmp"
	"context"

	"github.com/weir-go/weir/internal/wire/codec"
)

// Splits reports whether calls can be asked now and answered later, see [Caller.Ask]: those of our
// own can, over our own HTTP client, while that makes the calls to all endpoints.
func (c *Caller) Splits() bool { return c.path == OwnCall && c.lean != nil && !c.fell.Load() }

// Ask sends the request of the [Caller.Read] that has to follow, with the same arguments, which
// then only reads the answer: so many calls can be sent, each on a line of its own, before the
// first answer is waited for. The call's time begins with Ask. It waits for no connection. If it
// returns false nothing has begun, and Read makes all of the call, as it does without Ask.
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
		return false // Read says what is wrong
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
