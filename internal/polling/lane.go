package polling

import (
	"context"

	"github.com/weir-go/weir/internal/wire"
)

// lane is what is kept between turns: the connection and a context for the calls. Turns are short
// and frequent, and making these for each turn would cost as much as the read.
type lane struct {
	used  int // the tick of the scheduler at which it was last used
	line  wire.Line
	retry wire.Retry      // of the present call
	calls context.Context // ctx is derived from it
	ctx   context.Context
	end   context.CancelFunc
}

// context returns a context that is derived from calls, and its cancel function. The turn owns it
// until it is over.
func (l *lane) context(calls context.Context) (context.Context, context.CancelFunc) {
	if l.ctx == nil || l.ctx.Err() != nil || l.calls.Done() != calls.Done() {
		l.close()
		l.calls = calls
		l.ctx, l.end = context.WithCancel(calls)
	}
	return l.ctx, l.end
}

// reset clears l, except for its connection and its context, and records when it was last used.
func (l *lane) reset(used int) {
	*l = lane{used: used, line: l.line, calls: l.calls, ctx: l.ctx, end: l.end}
}

// close also ends the context.
func (l *lane) close() {
	l.line.Park()
	if l.end != nil {
		l.end()
		l.calls, l.ctx, l.end = nil, nil, nil
	}
}
