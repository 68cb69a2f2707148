// Package follow reads all shards of a stream without stored progress. It reads shards
// concurrently, but children after their parents. It can end at the tip of the stream.
package follow

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/weir-go/weir/internal/fanout"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/shard"
)

// Stream reads a stream once. The goroutine that calls [Stream.Run] owns it. Run takes pages in
// turn from the shards that have pages. Polled shards have no goroutine. Each shard that is read by
// fan-out has one.
type Stream struct {
	Setup     *source.Setup
	Budget    *memory.Budget
	Consumers *fanout.Consumers // nil if shards are polled
	// UntilTip makes Run end when all shards have been read to their tips.
	UntilTip bool
	// FanOut is called when a shard loses fan-out, with the reason. It is called with nil when the
	// shard has fan-out again.
	FanOut func(shardID string, why error)

	ctx       context.Context // ends with Run
	scheduler polling.Scheduler
	known     map[string]*Shard
	active    int
	ready     readyShards
	running   sync.WaitGroup
	lost      waitQueue // shards that have left the stream and whose children are unknown
}

// Place is the position where reading of a shard begins.
type Place struct {
	shard.Shard
	At   shard.Position
	Done bool // the shard is not read, and its children do not wait for it
}

// Read is one result of reading a shard: a page or an error.
type Read struct {
	*Shard
	Page source.Page
	Err  error
	Last bool // the last result of the shard

	// over is closed when the caller no longer needs the page. The goroutine that read the page
	// then releases it. If over is nil, done releases the page.
	over chan struct{}
}

// done reports that the page is no longer needed.
func (got *Read) done() {
	if got.over != nil {
		close(got.over)
	} else {
		got.Page.Release()
	}
}

var errLeft = errors.New("weir: the reader was left")

// Run calls hand with each result of the shards. It ends when hand returns false, when there is
// nothing more to read, or when ctx ends. In the last case it returns the cause of ctx. The
// argument of hand is valid until hand returns. All goroutines of Run have ended when it returns.
func (r *Stream) Run(ctx context.Context, places []Place, hand func(*Read) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	r.ctx, r.known, r.ready.poke = ctx, map[string]*Shard{}, make(chan struct{}, 1)
	defer r.close()
	defer cancel(errLeft)
	for _, p := range places {
		r.known[p.ID] = &Shard{Shard: p.Shard, in: r, At: p.At, done: p.Done}
	}
	r.start()
	for r.active > 0 {
		got, err := r.next()
		if err != nil {
			return err
		}
		more := hand(&got)
		// An expired shard counts as finished, so its children do not wait for it.
		if more && (got.Page.End || errors.Is(got.Err, streams.ErrNoShard)) {
			r.end(&got)
		}
		got.done()
		if !more {
			return nil
		}
		if got.Last {
			r.active--
			got.stop()
		} else {
			r.ready.push(got.Shard)
		}
	}
	return nil
}

// close returns when every goroutine has ended. ctx must have ended before.
func (r *Stream) close() {
	r.running.Wait()
	for _, s := range r.known {
		s.stop()
	}
	r.scheduler.Close()
}

// start begins to read every shard whose parents are done.
func (r *Stream) start() {
	for _, s := range r.known {
		waits := slices.ContainsFunc(s.Parents, func(p string) bool { return r.known[p] != nil && !r.known[p].done })
		if s.started || s.done || waits {
			continue
		}
		s.started = true
		r.active++
		poll := polling.Poll{Setup: r.Setup, Shard: s.ID, From: s.At, Limit: 10000}
		if r.Consumers != nil {
			r.running.Go(func() { r.subscribe(s, poll) })
			continue
		}
		s.feed = polling.NewFeed(s, poll, &r.scheduler, r.Budget)
		s.feed.Tips = r.UntilTip
		r.ready.push(s)
	}
}

// next waits for the next result. It returns the cause of ctx if ctx ends.
func (r *Stream) next() (Read, error) {
	for {
		if r.ctx.Err() != nil {
			return Read{}, context.Cause(r.ctx)
		}
		s, told := r.ready.pop()
		switch {
		case s == nil:
			select {
			case <-r.ready.poke:
			case <-r.ctx.Done():
			}
		case told != nil:
			return *told, nil
		case s.feed != nil:
			if got, some := r.take(s); some {
				return got, nil
			}
		}
	}
}

// take returns the next result of a polled shard. It does not wait.
func (r *Stream) take(s *Shard) (got Read, some bool) {
	got.Shard = s
	page, err := s.feed.Next(r.ctx)
	switch {
	case err == nil:
		got.Page, got.Last = page, r.over(page)
		return got, true
	case errors.Is(err, source.ErrEmpty): // the feed wakes the shard later
	case errors.Is(err, streams.ErrNoShard):
		r.lose(s, err)
	case r.ctx.Err() == nil:
		got.Err, got.Last = err, true
		return got, true
	}
	return got, false
}

// over reports whether reading of a shard ends with a page. Only an empty page is the tip, because
// a closed shard may report its end on the page after its last records.
func (r *Stream) over(page source.Page) bool {
	return page.End || (r.UntilTip && page.Behind <= 0 && len(page.Records) == 0)
}

// end notes that a shard was read to its end or has left the stream. It adds the shard's children.
// They are read from now on, unless they wait for another parent.
func (r *Stream) end(got *Read) {
	got.Shard.done = true
	for _, c := range got.Page.Children {
		if r.known[c.ID] == nil {
			r.known[c.ID] = &Shard{Shard: c, in: r, At: shard.Oldest}
		}
	}
	r.start()
}

// lose looks up the children of a shard that has left the stream.
func (r *Stream) lose(s *Shard, err error) {
	s.stop()
	s.lost = err
	r.lost.add(r, s, r.heirs)
}

// heirs finds the descendants of shards that left the stream before their children were known. It
// lists the stream. For each lost shard, it reports as children all listed shards whose hash ranges
// overlap the range of the lost shard. end then adds only the children that were not known before.
// These are descendants, because the earlier shards with these keys have left the stream.
func (r *Stream) heirs(lost []*Shard) {
	for failures := 0; ; {
		listed, _, err := streams.List(r.ctx, r.Setup.Client, r.Setup.Stream)
		if err == nil || errors.Is(err, streams.ErrNoStream) {
			for _, s := range lost {
				got := Read{Err: err, Last: true}
				if err == nil {
					got.Err = s.lost
				}
				for _, heir := range listed {
					if heir.Range.End.Compare(s.Range.Start) >= 0 && s.Range.End.Compare(heir.Range.Start) >= 0 {
						got.Page.Children = append(got.Page.Children, heir)
					}
				}
				r.ready.tell(s, got)
			}
			return
		}
		if failures++; failures%lasting == 0 {
			r.ready.tell(lost[0], Read{Err: err})
		}
		if retry.Wait(r.ctx, r.Setup.Idle) != nil {
			return
		}
	}
}
