// Package peers watches the services and stores that a command calls. While a service or store does
// not answer, the package prints what the command is waiting for. If the first answer takes longer
// than --connect-timeout, the package ends the calls.
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
	// firstWord is the duration of a silence at which the command first reports it. The interval to
	// the next report doubles each time, up to mostQuiet.
	firstWord  = 5 * time.Second
	mostQuiet  = time.Minute
	peerRested = 15 * time.Second // time without a call after which the peer is idle; retries come sooner
)

// Patience is the value of the flag --connect-timeout. It limits the time until the first answer of
// a service or store.
type Patience time.Duration

// Set implements pflag.Value, together with String and Type.
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

// waits contains the services and stores that a command calls. It reports those that do not answer.
type waits struct {
	say   Say
	over  chan struct{}
	ended sync.WaitGroup

	mu    sync.Mutex
	peers []*Peer
}

type waitsKey struct{}

// Say prints a message, with the arguments of fmt.Sprintf.
type Say func(level slog.Level, format string, args ...any)

// WithWaits returns a context for a command. Until end is called, WithWaits watches calls with this
// context, and calls say about services that do not answer.
func WithWaits(ctx context.Context, say Say) (_ context.Context, end func()) {
	w := &waits{say: say, over: make(chan struct{})}
	return context.WithValue(ctx, waitsKey{}, w), func() {
		close(w.over)
		w.ended.Wait()
	}
}

// New returns the state of a service or store that a command calls. ctx is a context from
// WithWaits. Calls fail if the first answer has not come within limit. A limit of 0 means no limit.
func New(ctx context.Context, name string, limit time.Duration) *Peer {
	p := &Peer{limit: limit, name: name}
	p.late, p.expire = context.WithCancelCause(context.Background())
	w, ok := ctx.Value(waitsKey{}).(*waits)
	if !ok {
		return p // there is nothing to report to
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.peers = append(w.peers, p); len(w.peers) == 1 {
		w.ended.Go(w.watch) // ends with the command
	}
	return p
}

// watch prints due messages once a second.
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

// Peer is the state of a service or store, according to the calls that the command makes to it. It
// is safe for concurrent use.
type Peer struct {
	limit time.Duration
	Wait  bool // --wait: calls are repeated after the limit

	mu       sync.Mutex
	name     string
	answered bool // an answer has come at least once
	open     int  // number of calls in progress
	failed   bool // a call has ended without an answer since the last answer
	// since is when the current silence began, which is when a request was made that has no answer
	// yet. It is zero if all requests are answered.
	since  time.Time
	ended  time.Time       // when the last call ended
	said   time.Duration   // duration of the silence at the last report
	back   time.Duration   // duration of a reported silence whose end is not reported yet
	why    string          // error of a call that is being repeated
	due    time.Time       // when the first answer is due
	timer  *time.Timer     // ends late; nil before the first call
	late   context.Context // ends when the first answer is overdue
	expire context.CancelCauseFunc
}

// call is a call in progress.
type call struct {
	p      *Peer
	late   context.Context // the late context of the peer when the call began
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   func() bool
	once   sync.Once
	heard  bool
}

// begin records the start of a call. The caller must use the context of the result and end the
// call.
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
	if p.answered { // the first answer may have come just as it became overdue
		c.late = context.Background()
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.stop = context.AfterFunc(c.late, func() { c.cancel(context.Cause(c.late)) })
	return c
}

// UntilDue returns a context with the deadline of the first answer, if the first answer has not
// come yet. The Redis client needs a deadline, because it does not notice that a context has ended.
func (p *Peer) UntilDue(ctx context.Context) (context.Context, context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answered || p.due.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, p.due)
}

// hears records that a whole answer has come.
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

// hearsSome records that part of an answer has come.
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

// end records the end of the call. Only the first call of end counts.
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

// overdue returns the error of a call that was ended because the first answer was overdue. It
// returns nil for other calls.
func (c *call) overdue() error {
	return context.Cause(c.late) // nil while the call is in progress
}

// again allows new calls after a failed call. If the first answer was overdue, its time limit
// starts again. why is the error of the failed call.
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

// hasAnswered reports whether any answer has come.
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

// word returns the message to print now, or "" if there is none.
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

// nextWord returns the duration of a silence at which the next report is due. said is the duration
// at the last report.
func nextWord(said time.Duration) time.Duration {
	if said == 0 {
		return firstWord
	}
	return min(2*said, said+mostQuiet).Truncate(time.Second)
}

// noAnswer is the error of a call to a service or store that has never answered.
type noAnswer struct{ explain.PlainError }

func (e noAnswer) Unwrap() error { return e.PlainError }

// CanceledError keeps the SDK from retrying the call.
func (noAnswer) CanceledError() bool { return true }

// Timeout marks the error as a timeout.
func (noAnswer) Timeout() bool { return true }

func (p *Peer) noAnswer() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return noAnswer{explain.PlainError{Text: fmt.Sprintf("%s did not answer within %v: check its address and the network, or wait for longer with --connect-timeout",
		p.name, p.limit), Cause: context.DeadlineExceeded}}
}
