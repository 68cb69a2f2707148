package wire

import (
	"io"
	"net/http"
	"time"

	"github.com/weir-go/weir/internal/http1"
	"github.com/weir-go/weir/internal/mono"
)

// A call may be made a second time, once, if the connection of the first attempt is silent:
// GetRecords and GetShardIterator change nothing. The first connection is closed before, so that no
// answer arrives twice, and a server that is merely slow gets no additional load. The second
// attempt has what is left of the call's time.

// Retry contains the caller's settings for a second attempt and reports it.
type Retry struct {
	// After is the minimum time between sending a request and the second attempt, however silent
	// the connection is.
	After time.Duration
	// At is when the second attempt was made; zero if there was none.
	At time.Time
}

func (r *Retry) reset() {
	if r != nil {
		r.At = time.Time{}
	}
}

// limits returns the bounds of the call for our own HTTP client.
func (l *life) limits() http1.Bound {
	b := http1.Bound{At: l.bound.At, Why: l.bound.Why}
	if b.Silence = l.patience(); b.Silence > 0 {
		b.Listener = l
	}
	return b
}

// patience returns how long no byte may arrive; 0 for as long as the call may take.
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

// giveUp decides whether a silent connection is closed. The caller holds the lock.
func (l *life) giveUp() bool {
	if l.silent = l.quiet.again(); !l.silent {
		l.patient = true
	}
	return l.silent
}

// again reports whether a failed call is made a second time, and prepares its life for that.
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

// twice makes a call, and makes it again if its connection was silent.
func (c *Caller) twice(l *life, call func() error) error {
	err := call()
	if !l.again(err) {
		c.strange(l.ep, err)
		return err
	}
	if pool, ok := c.http.(interface{ CloseIdleConnections() }); ok && l.posted {
		pool.CloseIdleConnections() // they may be dead as well; our own client checks by itself
	}
	if times := l.quiet.news(time.Now()); times > 0 && c.opts.Silent != nil {
		c.opts.Silent(l.quiet.endpoint, times)
	}
	err = call()
	c.strange(l.ep, err)
	return err
}

// listenTo makes the request of a call over net/http, and checks the answer for silence. The time
// that net/http takes to find a connection counts.
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

// heardBody is a body whose silence is noticed while it is read.
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

// listen begins to wait for a byte. It rarely changes the timer, which usually fires soon enough
// and then finds no silence.
func (l *life) listen(now mono.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = now
	if p := l.patience(); p > 0 && l.inner != nil && (l.timer == nil || l.rings > now.Add(p)) {
		l.arm(now)
	}
}

// rest ends the wait of listen.
func (l *life) rest() {
	l.mu.Lock()
	l.since = 0
	l.mu.Unlock()
}

// arm makes the timer fire when the call is over or has been silent for too long. The caller holds
// the lock, and there is an inner context.
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

// ring ends the inner context if it is time. A timer may fire when the call has ended and its
// objects belong to the next call.
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
