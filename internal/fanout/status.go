package fanout

import (
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
)

// Status returns the state of the reader. It may be called at any time.
func (f *Reader) Status() source.Status {
	f.mu.Lock()
	s, sub := f.status, f.live
	f.mu.Unlock()
	if sub != nil {
		sub.describe(&s)
	}
	if s.Doing == health.NoReason {
		s.Doing = health.NotStarted
	}
	if s.Doing == health.AtTip { // the reader waits for the idle interval
		s.Trying = time.Time{}
	}
	return s
}

// trying records the time since which Next waits for a page. Zero means that Next does not wait.
func (f *Reader) trying(since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Trying = since
}

func (f *Reader) doing(d health.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.status.Doing != d || f.status.Since.IsZero() {
		f.status.Doing, f.status.Since = d, time.Now()
	}
}

// rests records why the next poll waits.
func (f *Reader) rests(page source.Page) {
	f.rest = health.Pacing
	if page.Behind == 0 || (page.Behind < 0 && len(page.Records) == 0) {
		f.rest = health.AtTip
	}
	f.doing(f.rest)
}

// waits returns why the next poll waits. It also works if a subscription was tried since the last
// poll.
func (f *Reader) waits() health.Reason {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.status.Err != nil {
		return health.ReadFailed
	}
	return f.rest
}

// failing records a failure. A nil error records a success.
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

// behind records the lag of the last page.
func (f *Reader) behind(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Behind = d
}

// follow sets the subscription that Status describes. nil means that there is none.
func (f *Reader) follow(sub *subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live = sub
}

// Stop ends the subscription while another goroutine handles its pages. It is for a reader that is
// abandoned because its handler ignores the end of its context. It may be called at any time.
func (f *Reader) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.live != nil {
		f.live.wire.Stop()
	}
}

// describe adds the state of the subscription to a Status.
func (s *subscription) describe(to *source.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to.Doing, to.Since = s.doing, s.since
	for _, ev := range s.queue {
		to.Buffer(ev.page.Records)
		to.Behind = ev.page.Behind
	}
}

// now sets the state of the goroutine that reads the subscription.
func (s *subscription) now(d health.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doing != d {
		s.doing, s.since = d, time.Now()
	}
}
