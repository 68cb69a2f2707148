package wire

import (
	"io"
	"net/http"
	"time"

	"github.com/weir-go/weir/internal/http1"
	"github.com/weir-go/weir/internal/mono"
)

// A call is retried once if the connection of its first attempt is silent. This is safe because
// GetRecords and GetShardIterator do not change anything. The first connection is closed before the
// retry, so the answer cannot arrive twice. The retry gets the rest of the call's time.

// Retry configures the retry of a call, and reports whether a retry was made.
type Retry struct {
	// After is the minimum time without a received byte before the retry.
	After time.Duration
	// At is the time of the retry. It is zero if there was none.
	At time.Time
}

func (r *Retry) reset() {
	if r != nil {
		r.At = time.Time{}
	}
}

// limits returns the bounds of the call for this package's HTTP client.
func (l *life) limits() http1.Bound {
	b := http1.Bound{At: l.bound.At, Why: l.bound.Why}
	if b.Silence = l.patience(); b.Silence > 0 {
		b.Listener = l
	}
	return b
}

// patience returns the maximum time without a received byte. 0 means no limit.
func (l *life) patience() time.Duration {
	if l.quiet == nil || l.second || l.patient || l.deaf {
		return 0
	}
	d := l.quiet.bound()
	if d > 0 && l.retry != nil {
		d = max(d, l.retry.After)
	}
	return d
}

// GiveUp implements [http1.Listener].
func (l *life) GiveUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.giveUp()
}

// giveUp decides whether to close a silent connection. The caller holds the lock.
func (l *life) giveUp() bool {
	if l.silent = l.quiet.again(); !l.silent {
		l.patient = true
	}
	return l.silent
}

// again reports whether to retry a failed call, and prepares its life for the retry.
func (l *life) again(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if err == nil || !l.silent || l.second || l.caller.Err() != nil || !now.Before(l.bound.At) {
		return false
	}
	l.second, l.answer = true, nil
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if l.inner != nil {
		l.cancel(http1.ErrSilent)
		l.inner = nil
	}
	if l.retry != nil {
		l.retry.At = now
	}
	return true
}

// twice makes a call, and retries it if its connection was silent.
func (c *Caller) twice(l *life, call func() error) error {
	err := call()
	if !l.again(err) {
		c.strange(l.ep, err)
		return err
	}
	if pool, ok := c.http.(interface{ CloseIdleConnections() }); ok && l.posted {
		pool.CloseIdleConnections() // they may be dead as well; http1 checks its own
	}
	if times := l.quiet.news(time.Now()); times > 0 && c.opts.Silent != nil {
		c.opts.Silent(l.quiet.endpoint, times)
	}
	err = call()
	c.strange(l.ep, err)
	return err
}

// listenTo sends the request of a call over net/http, and checks for silence until the answer
// begins. The time in which net/http looks for a connection counts as silence.
func (l *life) listenTo(d doer, r *http.Request) (*http.Response, error) {
	began := mono.Now()
	l.posted = true
	l.listen(began)
	resp, err := d.Do(r)
	l.rest()
	if err != nil {
		return nil, err
	}
	l.quiet.heard(mono.Since(began))
	if resp.Body != nil {
		resp.Body = &heardBody{resp.Body, l}
	}
	return resp, nil
}

// heardBody is a body that detects silence while it is read.
type heardBody struct {
	io.ReadCloser
	life *life
}

func (b *heardBody) Read(p []byte) (int, error) {
	b.life.listen(mono.Now())
	n, err := b.ReadCloser.Read(p)
	b.life.rest()
	return n, err
}

// listen begins to wait for a byte. It rarely resets the timer, which usually fires soon enough. If
// the timer fires without silence, it is set again.
func (l *life) listen(now mono.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = now
	if p := l.patience(); p > 0 && l.inner != nil && (l.timer == nil || l.rings > now.Add(p)) {
		l.arm(now)
	}
}

// rest ends the wait that listen began.
func (l *life) rest() {
	l.mu.Lock()
	l.since = 0
	l.mu.Unlock()
}

// arm sets the timer to the deadline of the call, or to the time at which the call has been silent
// for too long if that is earlier. The caller holds the lock, and the inner context exists.
func (l *life) arm(now mono.Time) {
	l.rings = mono.Of(l.bound.At)
	if p := l.patience(); p > 0 && !l.since.IsZero() {
		l.rings = min(l.rings, l.since.Add(p))
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(l.rings.Sub(now), l.ring)
	} else {
		l.timer.Reset(l.rings.Sub(now))
	}
}

// ring ends the inner context if the call is over or silent. The timer may fire late, when the call
// has ended and its objects belong to the next call.
func (l *life) ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.inner == nil || l.timer == nil {
		return
	}
	now, p := mono.Now(), l.patience()
	switch {
	case now >= mono.Of(l.bound.At):
		l.cancel(l.bound.Why)
	case p > 0 && !l.since.IsZero() && now.Sub(l.since) >= p && l.giveUp():
		l.cancel(http1.ErrSilent)
	default:
		l.arm(now)
	}
}
