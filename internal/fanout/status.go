package fanout

import (
	"time"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
)

// Status may be called at any time.
func (f *Reader) Status() source.Status {
	f.mu.Lock()
	s, sub := f.status, f.live
	f.mu.Unlock()
	if sub != nil {
		sub.describe(&s)
	}
	if s.Doing == source.AtTip { // nothing is tried, but the idle interval waited for
		s.Trying = time.Time{}
	}
	return s
}

// trying notes since when a page has been waited for, zero when none is.
func (f *Reader) trying(since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Trying = since
}

func (f *Reader) doing(d source.Doing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.status.Doing != d || f.status.Since.IsZero() {
		f.status.Doing, f.status.Since = d, time.Now()
	}
}

// rests names the wait for the next read, after one by polling.
func (f *Reader) rests(page source.Page) {
	f.rest = source.Pacing
	if page.Behind == 0 || (page.Behind < 0 && len(page.Records) == 0) {
		f.rest = source.AtTip
	}
	f.doing(f.rest)
}

// waits names the wait for the next read by polling, also when a subscription was tried since the
// last one.
func (f *Reader) waits() source.Doing {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.status.Err != nil {
		return source.BackingOff
	}
	return f.rest
}

// failing notes a failure, nil when all is well again.
func (f *Reader) failing(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.status.Err = err; {
	case err == nil:
		f.status.Attempt = 0
	case streams.Throttled(err):
		f.status.Attempt++
		f.status.Throttled++
	default:
		f.status.Attempt++
		f.status.Failed++
	}
}

// behind notes how far the last page was behind the tip.
func (f *Reader) behind(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Behind = d
}

// follow makes sub the subscription that is described, nil for none.
func (f *Reader) follow(sub *subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live = sub
}

// Stop ends the subscription, if there is one, while somebody is handling what it brought: for a
// reader that is left behind, because its handler ignores that it is to end. It may be called at
// any time.
func (f *Reader) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.live != nil {
		f.live.wire.Stop()
	}
}

// describe says what the subscription is at.
func (s *subscription) describe(to *source.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to.Doing, to.Since = s.doing, s.since
	for _, ev := range s.queue {
		to.Buffer(ev.page.Records)
		to.Behind = ev.page.Behind
	}
}

// now notes what the goroutine is at.
func (s *subscription) now(d source.Doing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doing != d {
		s.doing, s.since = d, time.Now()
	}
}
