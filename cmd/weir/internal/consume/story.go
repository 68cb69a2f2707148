package consume

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

const (
	// lookEvery is the time between two looks at the state of the worker's shards.
	lookEvery = 10 * time.Second
	// summaryEvery is the time between two summaries.
	summaryEvery = 10 * time.Minute
	// lastingAfter is how long a bad state lasts until it is logged.
	lastingAfter = 2 * time.Minute
)

// story logs what happens to a worker: its start, states of its shards that last, a summary from
// time to time, and its end.
type story struct {
	log      *slog.Logger
	consumer *weir.Consumer
	leases   *leases
	lasting  lasting
	before   weir.Counts // of the last summary
	summed   time.Time

	worker string // name of the worker
	// past returns the history of the application from a minute since 1970 on. It is nil if there
	// is none.
	past func(ctx context.Context, since int64) ([]lease.HistoryChunk, error)
}

// run calls work, and logs until it returns.
func (s *story) run(ctx context.Context, work func(context.Context) error) error {
	began := time.Now()
	s.summed = began
	inner, stop := context.WithCancel(ctx)
	defer stop()
	var looking sync.WaitGroup
	looking.Go(func() { // ends with inner
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			select {
			case <-inner.Done():
				return
			case now := <-ticker.C:
				s.look(now)
				s.previous(inner, now)
			}
		}
	})
	err := work(ctx)
	stop()
	looking.Wait()
	s.leases.flush()
	all := s.consumer.Counts()
	about := append(countsOf(all, weir.Counts{}), "after", time.Since(began).Round(time.Second))
	switch {
	case err != nil:
		s.log.Warn("the worker has stopped with an error", about...)
	default:
		s.log.Info("the worker has stopped; its progress is saved and its shards are released", about...)
	}
	return err
}

// look logs what has changed since the last look, and a summary if it is due.
func (s *story) look(now time.Time) {
	s.leases.flush()
	v := s.consumer.Verdict()
	switch changed, began := s.lasting.see(v, now); {
	case changed && began.IsZero():
		s.log.Info("the shards of this worker are well again", "state", v.State.String())
	case changed:
		s.log.Warn("records wait for a long time, or shards are not read", lastingAttrs(v, began)...)
	}
	if now.Sub(s.summed) >= summaryEvery {
		s.summary(v.State, now)
	}
}

// lastingAttrs returns the attributes of a bad state that lasts, with its cause and the first next
// step, if they are known.
func lastingAttrs(v health.Verdict, began time.Time) []any {
	if !v.Since.IsZero() {
		began = v.Since
	}
	all := []any{"state", v.State.String(), "why", v.Sentence, "since", began.UTC().Truncate(time.Second)}
	if because := v.Because(); because != "" {
		all = append(all, "cause", because)
	}
	if len(v.Steps) > 0 {
		step := v.Steps[0].Do
		if v.Steps[0].Command != "" {
			step += ": " + v.Steps[0].Command
		}
		all = append(all, "step", step)
	}
	return all
}

// summary logs what the worker has done since the last summary.
func (s *story) summary(state health.State, now time.Time) {
	shards, lag := s.consumer.Shards(), time.Duration(-1)
	for i := range shards {
		lag = max(lag, shards[i].HandledLag)
	}
	counts := s.consumer.Counts()
	about := append([]any{"shards", len(shards), "state", state.String()}, countsOf(counts, s.before)...)
	if lag >= 0 {
		about = append(about, "lag", lag.Round(time.Millisecond))
	}
	s.log.Info("what the worker did since the previous summary", append(about, "for", now.Sub(s.summed).Round(time.Second))...)
	s.before, s.summed = counts, now
}

// countsOf returns the differences of counters as attributes. It omits what did not happen, except
// the number of handled records.
func countsOf(now, before weir.Counts) []any {
	about := []any{"records", now.RecordsHandled - before.RecordsHandled}
	for _, c := range []struct {
		name string
		n    uint64
	}{
		{"handler_failures", now.HandlerFailures - before.HandlerFailures},
		{"dead_lettered", now.RecordsDeadLettered - before.RecordsDeadLettered},
		{"repeats_dropped", now.RepeatsDropped - before.RepeatsDropped},
		{"filtered", now.RecordsFiltered - before.RecordsFiltered},
		{"reads_throttled", now.ReadsThrottled - before.ReadsThrottled},
		{"reads_failed", now.ReadsFailed - before.ReadsFailed},
		{"leases_taken", now.LeasesTaken - before.LeasesTaken},
		{"leases_lost", now.LeasesLost - before.LeasesLost},
	} {
		if c.n > 0 {
			about = append(about, c.name, c.n)
		}
	}
	return about
}

// lasting finds bad states that last.
type lasting struct {
	since time.Time    // since when the state is bad; zero if it is not
	said  health.State // the worst state that was logged; OK if none was
	known bool         // a cause was logged
}

// see takes the present verdict. changed is true if a bad state has lasted long enough, if it has
// become worse or its cause has become known since it was logged, or if it is over. began is when
// the bad state began, or zero if it is over.
func (l *lasting) see(v health.Verdict, now time.Time) (changed bool, began time.Time) {
	switch v.State {
	case health.OK, health.Idle, health.NotKnown:
		changed = l.said != health.OK
		*l = lasting{}
		return changed, time.Time{}
	case health.Behind, health.CatchingUp, health.GoingBack, health.FallingBehind, health.Unread, health.Stalled, health.RetentionNear:
	}
	if l.since.IsZero() {
		l.since = now
	}
	known := v.Cause != health.NoCause
	if now.Sub(l.since) < lastingAfter || v.State <= l.said && (l.known || !known) {
		return false, l.since
	}
	l.said, l.known = max(l.said, v.State), l.known || known
	return true, l.since
}

// leases is a log handler. Unless verbose is set, it passes on only the first few messages about
// leases between two looks, and then the number of the others.
type leases struct {
	slog.Handler
	*leaseCounts
}

// leaseCounts is the state that all copies of a handler share.
type leaseCounts struct {
	verbose bool
	root    slog.Handler // with the attributes of the worker

	mu   sync.Mutex // guards the fields below
	seen map[string]int
	got  []taken
}

// took returns the shards that were taken since the last call.
func (h *leaseCounts) took() []taken {
	h.mu.Lock()
	defer h.mu.Unlock()
	got := h.got
	h.got = nil
	return got
}

// leaseLines is the number of messages of each kind about leases that are passed on between two
// looks.
const leaseLines = 8

const (
	leaseTaken = "lease taken"
	leaseEnded = "lease ended"
)

func newLeases(h slog.Handler, verbose bool) *leases {
	return &leases{h, &leaseCounts{verbose: verbose, root: h, seen: map[string]int{}}}
}

// Handle implements slog.Handler.
func (h *leases) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelInfo && r.Message == leaseTaken {
		h.mu.Lock()
		h.got = append(h.got, takenBy(r))
		h.mu.Unlock()
	}
	if r.Level == slog.LevelInfo && (r.Message == leaseTaken || r.Message == leaseEnded) && !h.passes(r.Message) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// passes counts a message, and reports whether it is passed on.
func (h *leases) passes(message string) bool {
	if h.verbose {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen[message]++
	return h.seen[message] <= leaseLines
}

// flush logs how many messages about leases were not passed on since the last flush.
func (h *leases) flush() {
	h.mu.Lock()
	seen := h.seen
	h.seen = map[string]int{}
	h.mu.Unlock()
	for _, message := range []string{leaseTaken, leaseEnded} {
		if more := seen[message] - leaseLines; more > 0 {
			slog.New(h.root).Info("and further leases; --verbose logs each", "message", message, "shards", more)
		}
	}
}

// WithAttrs implements slog.Handler.
func (h *leases) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &leases{h.Handler.WithAttrs(attrs), h.leaseCounts}
}

// WithGroup implements slog.Handler.
func (h *leases) WithGroup(name string) slog.Handler {
	return &leases{h.Handler.WithGroup(name), h.leaseCounts}
}
