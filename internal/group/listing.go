package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// ErrNoStream is wrapped by the error of Config.List for a stream that does not exist.
var ErrNoStream = errors.New("the stream does not exist")

// Listing is the complete list of a stream's shards.
type Listing struct {
	Shards []shard.Shard
	// Begin says, for a listing with a start, at which shards the application begins and where in
	// them. Their descendants are read from the beginning, their ancestors not at all. nil means
	// every shard from [shard.Oldest].
	Begin map[string]shard.Position
	// Born is when the stream was created, in Unix milliseconds, 0 if that is unknown. Leases with
	// another Born belong to a deleted stream of the same name.
	Born int64
}

// pin returns the time at which a listing with a start begins. It is zero if there is no single
// time.
func (l *Listing) pin() shard.Position {
	var pin shard.Position
	for _, at := range l.Begin {
		if at.Kind() != shard.Time || !pin.IsZero() && at != pin {
			return shard.Position{}
		}
		pin = at
	}
	return pin
}

// listings is a leader's state about the streams, and the listings under way. Only the goroutine of
// the leadership uses it.
type listings struct {
	named   []string
	streams map[string]*listed
	gone    map[lease.Key]bool // parents that have left their streams
	unknown map[lease.Key]time.Time
	known   map[string]bool // streams that have leases
	// The streams with leases that have not begun. nil if the start does not depend on the time of
	// the first listing.
	beginnings map[string]*beginning
	news       bool // a listing has arrived since the last begin
	deputy     bool // these belong to a deputy, which lacks a leader's facts
	results    chan result
	running    sync.WaitGroup
	slots      chan struct{}
}

type listed struct {
	latest  *Listing
	began   time.Time // start of the latest listing
	running bool
	retry   time.Time // earliest time of the next attempt
	errors  int
	fresh   bool // the latest listing was made for a stream without leases
	// some leases that it requires may not exist yet
	making bool
	// where a fresh listing begins, so that the next one begins there too; zero for other listings
	// and without a single time
	pin shard.Position
	// where the application begins according to the latest listing, if that was made for this time,
	// or if the store let this leader claim it
	claimed     shard.Position
	absent      map[string]absence // finished shards that the latest listing does not name
	loggedBirth int64              // the Born value that was logged
	// list again unless a listing began after this time: a shard may get a lease only now that an
	// old lease of the same name is gone
	again time.Time
}

// absence describes a finished lease whose shard is not listed.
type absence struct {
	seen time.Time
	// when the first listing began that should have named it; zero before that
	first time.Time
}

type result struct {
	stream string
	Listing
	began time.Time
	start shard.Position
	fresh bool
	err   error
}

// parallel is how many streams are listed at once.
const parallel = 8

func newListings(streams []string) *listings {
	s := &listings{
		streams: map[string]*listed{}, gone: map[lease.Key]bool{}, unknown: map[lease.Key]time.Time{},
		results: make(chan result, 1), slots: make(chan struct{}, parallel),
	}
	s.name(streams)
	return s
}

// streams returns the streams that a leader lists.
func (cfg Config) streams() []string {
	if cfg.Named != nil {
		return cfg.Named()
	}
	return cfg.Streams
}

// name updates the set of streams.
func (s *listings) name(streams []string) {
	if slices.Equal(streams, s.named) {
		return
	}
	s.named = streams
	for _, name := range streams {
		if s.streams[name] == nil {
			s.streams[name] = &listed{absent: map[string]absence{}}
		}
	}
	for name := range s.streams {
		if !slices.Contains(streams, name) {
			delete(s.streams, name)
		}
	}
}

func (s *listings) wait() { s.running.Wait() }

// begin starts the listings that are due: of streams that were never listed, were listed too long
// ago, or have leases with parents that are unknown since the last listing began. It reports
// whether an input of the actions or of a plan has changed.
func (s *listings) begin(ctx context.Context, v lease.View, cfg Config) (changed bool) {
	now := time.Now()
	changed, s.news = !v.Same || s.news, false
	if changed {
		s.know(v, now)
		s.beginnings = s.begins(v.Leases, cfg.Start)
	}
	due := map[string]bool{}
	for parent, since := range s.unknown {
		if l := s.streams[parent.Stream]; l != nil && !l.began.After(since) {
			due[parent.Stream] = true
		}
	}
	for name, l := range s.streams {
		if l.running || now.Before(l.retry) {
			continue
		}
		young := s.beginnings[name]
		fresh := !s.known[name] || young != nil || (changed && l.latest != nil && !l.fresh && rootless(name, *l.latest, v.Leases))
		if l.latest != nil && now.Sub(l.began) < cfg.ListInterval && !due[name] && !l.again.After(l.began) && (l.fresh || !fresh) {
			continue
		}
		l.running = true
		start := shard.Position{}
		if fresh {
			// leases that could not be made yet must not begin later
			start = young.start(cmp.Or(l.pin, cfg.Start))
		}
		s.running.Go(func() {
			select {
			case s.slots <- struct{}{}:
				defer func() { <-s.slots }()
			case <-ctx.Done():
				return
			}
			began := time.Now()
			listing, err := cfg.Host.List(ctx, name, start)
			select {
			case s.results <- result{name, listing, began, start, fresh, err}:
			case <-ctx.Done():
			}
		})
	}
	return changed
}

// know updates which streams have leases and which parents have none.
func (s *listings) know(v lease.View, now time.Time) {
	s.known = map[string]bool{}
	for _, l := range v.Leases {
		s.known[l.Stream] = true
	}
	s.forgetGone(v.Leases)
	before := s.unknown
	s.unknown = map[lease.Key]time.Time{}
	for _, parent := range lease.Unknown(v.Leases, s.gone) {
		s.unknown[parent] = now
		if since, ok := before[parent]; ok {
			s.unknown[parent] = since
		}
	}
}

// forgetGone drops departed parents whose children have also left. No lease refers to them any
// more. Over years, splits and merges would otherwise add up without limit.
func (s *listings) forgetGone(leases []lease.Lease) {
	if len(s.gone) == 0 {
		return
	}
	named := map[lease.Key]bool{}
	for i := range leases {
		for _, p := range leases[i].Parents {
			named[lease.Key{Stream: leases[i].Stream, Shard: p}] = true
		}
	}
	for stream, l := range s.streams {
		if l.latest == nil {
			continue
		}
		for _, sh := range l.latest.Shards { // they may get their leases only now
			for _, p := range sh.Parents {
				named[lease.Key{Stream: stream, Shard: p}] = true
			}
		}
	}
	maps.DeleteFunc(s.gone, func(parent lease.Key, _ bool) bool { return !named[parent] })
}

// rootless reports whether the listing names a shard that never had parents and has no lease. That
// means that the leader that first saw the stream died before it had made all leases.
func rootless(stream string, listing Listing, leases []lease.Lease) bool {
	have := map[string]bool{}
	for _, l := range leases {
		if l.Stream == stream {
			have[l.Shard] = true
		}
	}
	return slices.ContainsFunc(listing.Shards, func(s shard.Shard) bool { return len(s.Parents) == 0 && !have[s.ID] })
}

// take evaluates the result of a listing. It returns an error if Run must end: a configured stream
// never existed.
func (s *listings) take(r result, cfg Config) error {
	l := s.streams[r.stream]
	if l == nil {
		return nil // it is no longer in the set
	}
	l.running = false
	if r.err != nil {
		if errors.Is(r.err, context.Canceled) {
			return nil
		}
		if r.fresh && errors.Is(r.err, ErrNoStream) && cfg.Named == nil {
			return r.err
		}
		l.errors++
		l.retry = time.Now().Add(min(cfg.Times.Beat<<min(l.errors, 5), cfg.ListInterval))
		switch {
		case r.fresh && (l.errors == 1 || l.errors > 5): // repeated with the longest pause
			cfg.Log.Error("listing the shards of a new stream fails, so nothing of it is read; weir keeps trying", "stream", r.stream, "err", r.err)
		case l.errors == 1:
			cfg.Log.Warn("listing the shards of a stream failed; its known shards are read as before", "stream", r.stream, "err", r.err)
		}
		cfg.Host.CallFailed("list", fmt.Errorf("stream %s: %w", r.stream, r.err), time.Now())
		return nil
	}
	l.errors, l.retry = 0, time.Time{}
	s.news = true
	l.latest, l.began, l.fresh, l.making, l.pin, l.claimed = &r.Listing, r.began, r.fresh, r.fresh, shard.Position{}, shard.Position{}
	if r.fresh {
		l.pin = r.pin()
	}
	if r.start == l.pin {
		l.claimed = l.pin
	}

	here := make(map[string]bool, len(r.Shards))
	for _, sh := range r.Shards {
		here[sh.ID] = true
	}
	// A parent cannot appear later than its child. A parent that is missing while its child is
	// listed has left the stream. So has a parent that is missing from a listing that began after
	// its child was seen.
	for _, sh := range r.Shards {
		for _, p := range sh.Parents {
			if !here[p] {
				s.gone[lease.Key{Stream: r.stream, Shard: p}] = true
			}
		}
	}
	for parent, since := range s.unknown {
		if parent.Stream == r.stream && r.began.After(since) && !here[parent.Shard] {
			s.gone[parent] = true
		}
	}
	return nil
}

// actions returns the leases to make and the tombstones to remove according to the latest listings.
// It ignores streams that this worker does not read.
func (s *listings) actions(v lease.View, f lease.Facts, cfg Config) []lease.Action {
	byStream := map[string][]lease.Lease{}
	// usually the leases are grouped by stream, and thousands need not be copied
	for rest := v.Leases; len(rest) > 0; {
		stream, n := rest[0].Stream, 1
		for n < len(rest) && rest[n].Stream == stream {
			n++
		}
		if of := byStream[stream]; of != nil {
			byStream[stream] = append(of, rest[:n]...)
		} else {
			byStream[stream] = rest[:n:n]
		}
		rest = rest[n:]
	}
	var actions []lease.Action
	for _, name := range slices.Sorted(maps.Keys(s.streams)) {
		l := s.streams[name]
		if l.latest == nil {
			continue
		}
		if len(byStream[name]) == 0 && !l.fresh {
			continue // the leases were deleted meanwhile: begin with a fresh listing
		}
		if l.fresh && len(l.latest.Shards) > 0 && !s.beginnings[name].agrees(l.claimed) {
			// another leader's claim came first, or it is unknown whose claim did
			l.again = l.began.Add(1)
			continue
		}
		listing := *l.latest
		renewed, anew := Renew(listing, byStream[name], v.Workers, f.Ripe)
		if s.deputy {
			renewed = atOnce(renewed, byStream[name], listing)
		}
		if anew {
			// shards that only the new stream has are read from their beginning too
			listing.Begin = nil
			if l.loggedBirth != l.latest.Born {
				l.loggedBirth = l.latest.Born
				cfg.Log.Error("the stream was deleted and created again; its progress is discarded, and it is read from its beginning",
					"stream", name, "created", time.UnixMilli(l.latest.Born).UTC())
			}
			actions = append(actions, renewed...)
			if slices.ContainsFunc(renewed, func(a lease.Action) bool { return a.Kind == lease.Delete }) {
				l.again = time.Now()
			}
		}
		// otherwise a listing will come that says where it begins
		if anew || l.fresh || !rootless(name, listing, byStream[name]) {
			missing := NewLeases(name, listing, byStream[name], l.fresh)
			l.making = l.fresh && len(missing) > 0
			for _, made := range s.beginnings[name].first(missing, listing.pin(), len(byStream[name]) > 0) {
				actions = append(actions, lease.Action{Kind: lease.Create, Lease: made})
			}
		}
		actions = append(actions, l.tombstones(byStream[name])...)
		if !anew {
			actions = append(actions, Births(listing, byStream[name])...)
		}
	}
	return actions
}

// made handles the store's answer that an action of this leader made a lease. If that is the first
// lease of its stream, the application begins where the leader's listing does.
func (s *listings) made(of lease.Lease) {
	if l := s.streams[of.Stream]; l != nil && of.Position == l.pin {
		l.claimed = l.pin
	}
}

// tombstones returns actions that delete leases of finished shards that two listings in a row did
// not name. Both listings began after the leases were seen. Nothing can refer to such a shard any
// more.
func (l *listed) tombstones(leases []lease.Lease) []lease.Action {
	var actions []lease.Action
	here := make(map[string]bool, len(l.latest.Shards))
	for _, sh := range l.latest.Shards {
		here[sh.ID] = true
	}
	unnamed := map[string]bool{}
	for _, old := range leases {
		if here[old.Shard] || !old.Finished() {
			continue
		}
		unnamed[old.Shard] = true
		a, seen := l.absent[old.Shard]
		switch {
		case !seen:
			l.absent[old.Shard] = absence{seen: time.Now()}
		case !l.began.After(a.seen): // the listing may be older than the shard
		case a.first.IsZero():
			l.absent[old.Shard] = absence{a.seen, l.began}
		case !l.began.Equal(a.first):
			actions = append(actions, lease.Action{Kind: lease.Delete, Key: old.Key, Epoch: old.Epoch})
		}
	}
	// including shards whose leases are deleted
	maps.DeleteFunc(l.absent, func(id string, _ absence) bool { return !unnamed[id] })
	return actions
}

// NewLeases returns the leases that a stream's listing requires and that do not exist. For a stream
// without leases (fresh) the listing says where to begin. In a known stream every new shard is a
// descendant of a known one and is read from its beginning.
func NewLeases(stream string, listing Listing, existing []lease.Lease, fresh bool) []lease.Lease {
	have := make(map[string]bool, len(existing))
	for _, l := range existing {
		have[l.Shard] = true
	}
	if !slices.ContainsFunc(listing.Shards, func(s shard.Shard) bool { return !have[s.ID] }) {
		return nil // the usual case
	}
	// followed shards are read, or were read: their children are read from their beginning
	followed, pin := map[string]bool{}, listing.pin()
	// Followed shards that began elsewhere than this listing would, and their descendants. Records
	// that arrived since then are not skipped.
	earlier := map[string]bool{}
	for _, l := range existing {
		_, begins := listing.Begin[l.Shard]
		// the shard ended before pin, but its lease has that position because the start was claimed
		// with it
		over := !begins && l.Position == pin
		followed[l.Shard] = !tombstone(l) && !over
		earlier[l.Shard] = followed[l.Shard] && (l.Position.Kind() != shard.Time || l.Position != listing.Begin[l.Shard])
	}
	graph := shard.NewGraph(listing.Shards)
	var made []lease.Lease
	for _, id := range graph.Ordered() {
		if have[id] {
			continue
		}
		sh, _ := graph.Shard(id)
		begin, begins := listing.Begin[id]
		earlier[id] = slices.ContainsFunc(sh.Parents, func(p string) bool { return earlier[p] })
		descends := slices.ContainsFunc(sh.Parents, func(p string) bool { return followed[p] })
		at := shard.Oldest
		switch {
		case begins && !earlier[id]:
			at = begin
		case fresh && listing.Begin != nil && !descends:
			// it ended before the start: a tombstone, so that no child waits and no worker reads it
			at = shard.End
		}
		followed[id] = !at.IsEnd()
		made = append(made, lease.Lease{
			Key: lease.Key{Stream: stream, Shard: id}, Parents: sh.Parents, Range: sh.Range, Epoch: 1, Position: at, Born: listing.Born,
		})
	}
	return made
}

// tombstone reports whether l was created as finished, for a shard that ended before the
// application's start.
func tombstone(l lease.Lease) bool { return l.Finished() && l.Epoch == 1 }
