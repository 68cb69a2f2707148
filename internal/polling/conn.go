package polling

import (
	"context"

	"github.com/weir-go/weir/internal/wire"
)

// conn keeps a connection and a context for calls between turns. Turns are short and frequent. A
// new connection and context for each turn would cost as much as the read.
type conn struct {
	used  int // the tick at which it was last used
	line  wire.Line
	retry wire.Retry      // of the present call
	calls context.Context // ctx is derived from calls
	ctx   context.Context
	end   context.CancelFunc
}

// context returns a context that is derived from calls, and its cancel function. The caller may use
// the context until the end of the turn.
func (l *conn) context(calls context.Context) (context.Context, context.CancelFunc) {
	if l.ctx == nil || l.ctx.Err() != nil || l.calls.Done() != calls.Done() {
		l.close()
		l.calls = calls
		l.ctx, l.end = context.WithCancel(calls)
	}
	return l.ctx, l.end
}

// reset clears l, but keeps its connection and its context. It records when l was last used.
func (l *conn) reset(used int) {
	*l = conn{used: used, line: l.line, calls: l.calls, ctx: l.ctx, end: l.end}
}

// close releases the connection and ends the context.
func (l *conn) close() {
	l.line.Park()
	if l.end != nil {
		l.end()
		l.calls, l.ctx, l.end = nil, nil, nil
	}
}
