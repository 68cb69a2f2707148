// Package peers watches the services and the stores that a command asks. It says what the command
// waits for while one of them does not answer, and ends calls when the first answer takes longer
// than --connect-timeout.
package peers

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/explain"
)

const (
	DefaultPatience = Patience(30 * time.Second)
	// firstWord is the silence after which the command reports it. Each further report comes after
	// twice the time, at most a minute apart.
	firstWord  = 5 * time.Second
	mostQuiet  = time.Minute
	peerRested = 15 * time.Second // without a call: retries come sooner
)

// Patience is --connect-timeout: how long the first answer of a service or a store may take.
type Patience time.Duration

// Set implements the value of a flag, with String and Type.
func (p *Patience) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is not a duration: write it like 30s or 2m", s)
	}
	*p = Patience(d)
	return nil
}

func (p *Patience) String() string { return time.Duration(*p).String() }
func (p *Patience) Type() string   { return "duration" }

// waits are the services and the stores that a command asks. While one does not answer they say so.
type waits struct {
	say   Say
	over  chan struct{}
	ended sync.WaitGroup

	mu    sync.Mutex
	peers []*Peer
}

type waitsKey struct{}

// Say prints a sentence that fmt.Sprintf formats.
type Say func(level slog.Level, format string, args ...any)

// WithWaits begins to say what the command of this context waits for, until end is called.
func WithWaits(ctx context.Context, say Say) (_ context.Context, end func()) {
	w := &waits{say: say, over: make(chan struct{})}
	return context.WithValue(ctx, waitsKey{}, w), func() {
		close(w.over)
		w.ended.Wait()
	}
}

// New is a service or a store that the command of this context asks. Calls fail when it has not
// answered once within limit; 0 is no limit.
func New(ctx context.Context, name string, limit time.Duration) *Peer {
	p := &Peer{limit: limit, name: name}
	p.late, p.expire = context.WithCancelCause(context.Background())
	w, ok := ctx.Value(waitsKey{}).(*waits)
	if !ok {
		return p // without anyone to report to
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.peers = append(w.peers, p); len(w.peers) == 1 {
		w.ended.Go(w.watch) // ends with the command
	}
	return p
}

// watch says each second what there is to say.
func (w *waits) watch() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-w.over:
			return
		case now := <-ticker.C:
			w.mu.Lock()
			peers := w.peers
			w.mu.Unlock()
			for _, p := range peers {
				if word := p.word(now); word != "" {
					w.say(slog.LevelWarn, "%s", word)
				}
			}
		}
	}
}

// Peer is the state of a service or a store as its calls show it. It is safe for concurrent use.
type Peer struct {
	limit time.Duration
	Wait  bool // --wait: calls are made again after that

	mu       sync.Mutex
	name     string
	answered bool // at least once
	open     int  // calls that have not ended
	failed   bool // one has ended without an answer since the last answer
	// since when nothing has come although something was asked, zero when all is answered
	since  time.Time
	ended  time.Time       // the end of the last call
	said   time.Duration   // the silence at the last word about it
	back   time.Duration   // a reported silence whose end is not reported yet
	why    string          // the error of a call that is retried
	due    time.Time       // of the first answer
	timer  *time.Timer     // until late, nil before the first call
	late   context.Context // ends when the first answer is overdue
	expire context.CancelCauseFunc
}

// call is a call that has not ended.
type call struct {
	p      *Peer
	late   context.Context // the peer's at its begin
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   func() bool
	once   sync.Once
	heard  bool
}

// begin notes the start of a call. The caller uses the call's context and ends the call.
func (p *Peer) begin(ctx context.Context) *call {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() || p.open == 0 && now.Sub(p.ended) > peerRested {
		p.since, p.said = now, 0
	}
	p.open++
	if p.timer == nil && p.limit > 0 && !p.answered {
		expire := p.expire
		p.due = now.Add(p.limit)
		p.timer = time.AfterFunc(p.limit, func() { expire(p.noAnswer()) })
	}
	c := &call{p: p, late: p.late}
	if p.answered { // perhaps in the moment in which the first answer was overdue
		c.late = context.Background()
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.stop = context.AfterFunc(c.late, func() { c.cancel(context.Cause(c.late)) })
	return c
}

// UntilDue gives a call's context the deadline of the first answer, if that is still to come: the
// client of Redis does not look at a context's end.
func (p *Peer) UntilDue(ctx context.Context) (context.Context, context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answered || p.due.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, p.due)
}

// hears notes that a whole answer has come.
func (c *call) hears() {
	c.hearsSome()
	p := c.p
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// hearsSome notes that some of an answer has come.
func (c *call) hearsSome() {
	p := c.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said > 0 {
		p.back = max(p.back, time.Since(p.since))
	}
	c.heard, p.failed, p.said, p.why = true, false, 0, ""
	p.since = time.Now()
}

// end notes that the call is over. Only the first one counts.
func (c *call) end() {
	c.once.Do(func() {
		c.stop()
		c.cancel(nil)
		p := c.p
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open--
		p.ended = time.Now()
		p.failed = p.failed || !c.heard
		if p.open == 0 && !p.failed {
			p.since = time.Time{}
		}
	})
}

// overdue is the error of a call that was given up because there was no first answer, nil for
// others.
func (c *call) overdue() error {
	return context.Cause(c.late) // nil while the call runs
}

// again allows new calls after others were given up. why is their error.
func (p *Peer) again(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.why = why
	if p.answered {
		return
	}
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	if p.late.Err() != nil {
		p.late, p.expire = context.WithCancelCause(context.Background())
	}
}

// hasAnswered reports whether an answer has ever come.
func (p *Peer) hasAnswered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered
}

func (p *Peer) rename(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name = name
}

// word returns the message to print now, "" for none.
func (p *Peer) word(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if back := p.back; back > 0 {
		p.back = 0
		return fmt.Sprintf("%s answers, after %v", p.name, back.Round(time.Second))
	}
	if p.since.IsZero() || p.open == 0 && (p.why == "" || now.Sub(p.ended) > peerRested) {
		return ""
	}
	silent := now.Sub(p.since)
	if silent < nextWord(p.said) {
		return ""
	}
	p.said = silent
	word := fmt.Sprintf("waiting for %s, %v so far", p.name, silent.Round(time.Second))
	switch {
	case p.why != "":
		word += ": " + p.why
	case !p.answered && p.Wait:
		word += "; --wait waits until it answers"
	case !p.answered && p.limit > 0:
		word += fmt.Sprintf("; it has to answer within %v (--connect-timeout)", p.limit)
	}
	return word
}

// nextWord is the silence after which the next report is due.
func nextWord(said time.Duration) time.Duration {
	if said == 0 {
		return firstWord
	}
	return min(2*said, said+mostQuiet).Truncate(time.Second)
}

// noAnswer is the error of a call to a service or a store from which nothing has ever come.
type noAnswer struct{ explain.PlainError }

func (e noAnswer) Unwrap() error { return e.PlainError }

// CanceledError keeps the SDK from trying again.
func (noAnswer) CanceledError() bool { return true }

// Timeout says what kind of an error of the network it is.
func (noAnswer) Timeout() bool { return true }

func (p *Peer) noAnswer() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return noAnswer{explain.PlainError{Text: fmt.Sprintf("%s did not answer within %v: check its address and the network, or wait for longer with --connect-timeout",
		p.name, p.limit), Cause: context.DeadlineExceeded}}
}
