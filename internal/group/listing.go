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

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// ErrNoStream is wrapped by the error of Host.List for a stream that does not exist.
var ErrNoStream = errors.New("the stream does not exist")

// Listing is the complete list of a stream's shards.
type Listing struct {
	Shards []shard.Shard
	// Begin maps shards to the positions where the application begins. It is set only for a listing
	// with a start. Descendants of these shards are read from their beginning. Ancestors are not
	// read. With a nil map, every shard is read from [shard.Oldest].
	Begin map[string]shard.Position
	// Born is the creation time of the stream in Unix milliseconds, or 0 if it is unknown. Leases
	// with an earlier Born belong to a deleted stream of the same name.
	Born int64
}

// pin returns the time at which a listing with a start begins. It is zero if the shards do not all
// begin at the same time.
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

// listings holds the listings of the streams that a leader or a deputy lists, including listings in
// progress. Only the goroutine of that leader or deputy uses it.
type listings struct {
	named   []string
	streams map[string]*listed
	gone    map[lease.Key]bool // parents that have left their streams
	unknown map[lease.Key]time.Time
	known   map[string]bool // streams with leases
	// beginnings contains streams with leases that the application has not begun to read, see
	// begins.
	beginnings map[string]*beginning
	news       bool // a listing has arrived since begin last ran
	deputy     bool // a deputy owns the listings, and it lacks the leader's facts
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
	fresh   bool // the latest listing was made with a start
	// making is set while leases that the latest listing requires may be missing.
	making bool
	// pin is the start time of a fresh listing. The next fresh listing uses the same time. It is
	// zero for other listings and for a listing without a single start time.
	pin shard.Position
	// claimed is the start time of the stream once it is certain, and zero before. It is certain if
	// the latest listing was requested for this time, or if the store has created this leader's
	// claim.
	claimed     shard.Position
	absent      map[string]absence // finished shards that the latest listing does not contain
	loggedBirth int64              // the last Born value that was logged
	checked     bool               // whether the chosen shards exist
	// again requests a listing that began after this time. The deletion of an old lease can make
	// room for a lease of a new shard with the same name.
	again time.Time
	// outdated counts the latest listings in a row that were of a deleted stream.
	outdated int
}

// relist requests another listing, because the latest one is of a deleted stream. The first such
// listing is usually just an old one. If later listings are also of a deleted stream, the workers
// read different streams with the same name, for example in two accounts.
func (l *listed) relist(name string, cfg Config) {
	if l.again.After(l.began) {
		return // it is requested
	}
	l.again = l.began.Add(1)
	l.retry = time.Now().Add(min(cfg.Times.Heartbeat<<min(l.outdated, 5), cfg.ListInterval))
	if l.outdated++; l.outdated == 3 {
		cfg.Log.Error("the leases belong to a newer stream with the same name as the stream that this worker lists, so this worker does not assign shards of its stream; check that all workers use the same account and region",
			"stream", name, "created", time.UnixMilli(l.latest.Born).UTC())
	}
}

// absence describes a finished lease whose shard is missing from the listings.
type absence struct {
	seen time.Time
	// first is the start of the first listing after seen that lacks the shard. It is zero before
	// that listing.
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

// parallel is the maximum number of concurrent listings.
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

// begin starts the listings that are due. A listing is due if the stream was never listed or was
// listed too long ago. It is also due if a lease has a parent that became unknown after the last
// listing began, if listed.again requests it, or if a listing with a start is needed. begin reports
// whether an input of actions or of a plan has changed.
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
	s.doubt(v.Workers, now, due)
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
			// Leases that are still missing must not begin later than the existing ones.
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

// know updates the set of streams that have leases, and the parents that have no lease.
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

// forgetGone drops departed parents whose children have also left, because no lease refers to them
// any more. Otherwise splits and merges would accumulate for years.
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
		for _, sh := range l.latest.Shards { // these shards may get their leases only now
			for _, p := range sh.Parents {
				named[lease.Key{Stream: stream, Shard: p}] = true
			}
		}
	}
	maps.DeleteFunc(s.gone, func(parent lease.Key, _ bool) bool { return !named[parent] })
}

// take evaluates the result of a listing. It returns an error if Run must end because a configured
// stream does not exist and was never read.
func (s *listings) take(r result, cfg Config) error {
	l := s.streams[r.stream]
	if l == nil {
		return nil // the stream is no longer read
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
		l.retry = time.Now().Add(l.pause(r.err, cfg))
		switch unread := !s.known[r.stream]; {
		case unread && (l.errors == 1 || l.errors > 5): // repeated with the longest pause
			cfg.Log.Error("listing the shards of a new stream fails, so the stream is not read; weir retries", "stream", r.stream, "err", r.err)
		case l.errors == 1:
			cfg.Log.Warn("listing the shards of a stream failed; its known shards are read as before", "stream", r.stream, "err", r.err)
		}
		cfg.Host.CallFailed(event.OpList, fmt.Errorf("stream %s: %w", r.stream, r.err), time.Now())
		return nil
	}
	l.errors, l.retry = 0, time.Time{}
	s.news = true
	if l.latest != nil && l.latest.Born != 0 && l.latest.Born < r.Born {
		// The new stream may have shards with the same names as departed parents of the deleted
		// stream.
		maps.DeleteFunc(s.gone, func(k lease.Key, _ bool) bool { return k.Stream == r.stream })
	}
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
	// A parent cannot appear later than its child. If a listing contains a child but not its
	// parent, the parent has left the stream. A parent has also left if it is missing from a
	// listing that began after its child was seen.
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

// actions returns the actions that the latest listings require. They create, renew and delete
// leases, and set births. Streams that this worker does not read get no actions.
func (s *listings) actions(v lease.View, f lease.Facts, cfg Config) []lease.Action {
	byStream := map[string][]lease.Lease{}
	// Leases are usually grouped by stream. Slicing each group avoids copying thousands of leases.
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
			continue // the leases were deleted meanwhile, so a fresh listing must come first
		}
		if l.fresh && len(l.latest.Shards) > 0 && !s.beginnings[name].agrees(l.claimed) {
			// Another leader's claim came first, or it is unknown whose claim came first.
			l.again = l.began.Add(1)
			continue
		}
		listing := *l.latest
		if outdated(listing, byStream[name]) {
			l.relist(name, cfg)
			continue
		}
		l.outdated = 0
		read := cfg.chosen(listing, byStream[name])
		renewed, anew := Renew(read, byStream[name], v.Workers, f.Ripe)
		if s.deputy {
			renewed = atOnce(renewed, byStream[name], read)
		}
		if anew {
			// Shards that exist only in the new stream are also read from their beginning.
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
		// If a shard without parents has no lease, and the listing is not fresh, wait for a fresh
		// listing, which contains the position where that shard begins.
		if anew || l.fresh || !rootless(name, listing, byStream[name]) {
			missing := NewLeases(name, listing, byStream[name], l.fresh)
			if !l.checked {
				l.checked = true
				cfg.checkChosen(name, listing, byStream[name])
			}
			l.making = l.fresh && len(missing) > 0
			wanted, unwanted := divide(missing, read)
			first := s.beginnings[name].first(wanted, listing.pin(), len(byStream[name]) > 0)
			if len(first) == len(wanted) {
				first = append(first, unwanted...)
			}
			for _, made := range first {
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

// made notes that the store has created a lease for this leader. If the lease has the leader's
// start time, the leader's claim has succeeded.
func (s *listings) made(of lease.Lease) {
	if l := s.streams[of.Stream]; l != nil && of.Position == l.pin {
		l.claimed = l.pin
	}
}

// tombstones returns actions that delete leases of finished shards. A lease is deleted when two
// consecutive listings lack its shard, and both began after the lease was seen. An older listing
// could create a deleted lease again. Leases of a deleted stream are left to [Renew], because they
// may still be valid for a session.
func (l *listed) tombstones(leases []lease.Lease) []lease.Action {
	var actions []lease.Action
	here := make(map[string]bool, len(l.latest.Shards))
	for _, sh := range l.latest.Shards {
		here[sh.ID] = true
	}
	unnamed := map[string]bool{}
	for _, old := range leases {
		if here[old.Shard] || !old.Finished() || l.latest.stale(old) {
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
	// This also drops shards whose leases are deleted.
	maps.DeleteFunc(l.absent, func(id string, _ absence) bool { return !unnamed[id] })
	return actions
}

// NewLeases returns the leases that a listing requires and that do not exist. fresh is set if the
// listing was made with a start, so that listing.Begin decides where shards begin. In a known
// stream every new shard descends from a known one and is read from its beginning.
func NewLeases(stream string, listing Listing, existing []lease.Lease, fresh bool) []lease.Lease {
	have := make(map[string]bool, len(existing))
	for _, l := range existing {
		have[l.Shard] = true
	}
	if !slices.ContainsFunc(listing.Shards, func(s shard.Shard) bool { return !have[s.ID] }) {
		return nil // the usual case
	}
	// followed contains shards that are read or were read. Their children are read from their
	// beginning.
	followed, pin := map[string]bool{}, listing.pin()
	// earlier contains followed shards that did not begin at this listing's start, and their
	// descendants. Records that arrived since then must not be skipped.
	earlier := map[string]bool{}
	for _, l := range existing {
		_, begins := listing.Begin[l.Shard]
		// If over is true, the shard ended before pin. Its lease has the position pin only because
		// a leader claimed the start with this lease.
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
			// The shard ended before the start. Its lease is a tombstone: no worker reads the
			// shard, and its children do not wait for it.
			at = shard.End
		}
		followed[id] = !at.IsEnd()
		made = append(made, lease.Lease{
			Key: lease.Key{Stream: stream, Shard: id}, Parents: sh.Parents, Range: sh.Range, Epoch: 1, Position: at, Born: listing.Born,
		})
	}
	return made
}

// tombstone reports whether l was created as finished, because its shard ended before the
// application's start.
func tombstone(l lease.Lease) bool { return l.Finished() && l.Epoch == 1 }
