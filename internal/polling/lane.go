package polling

import (
	"context"

	"github.com/weir-go/weir/internal/wire"
)

// lane is what is kept from one turn to the next: the connection of its calls, and a context for
// them. Turns are short and many, and what each would make and unmake costs as much as the read.
type lane struct {
	used  int // the tick of the scheduler at which it was last
	line  wire.Line
	retry wire.Retry      // of the call that is under way
	calls context.Context // that ctx was made from
	ctx   context.Context
	end   context.CancelFunc
}

// context returns one that is made from calls, and what ends it. It is the turn's until that is
// over.
func (l *lane) context(calls context.Context) (context.Context, context.CancelFunc) {
	if l.ctx == nil || l.ctx.Err() != nil || l.calls.Done() != calls.Done() {
		l.close()
		l.calls = calls
		l.ctx, l.end = context.WithCancel(calls)
	}
	return l.ctx, l.end
}

// reset makes l as good as new, except that it keeps its connection and its context, and notes when
// it was last used.
func (l *lane) reset(used int) {
	*l = lane{used: used, line: l.line, calls: l.calls, ctx: l.ctx, end: l.end}
}

// close ends the context, too.
func (l *lane) close() {
	l.line.Park()
	if l.end != nil {
		l.end()
		l.calls, l.ctx, l.end = nil, nil, nil
	}
}
