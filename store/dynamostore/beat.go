package dynamostore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/internal/guard"
	"github.com/weir-go/weir/lease"
)

// Heartbeat implements [lease.Store].
//
// Heartbeat may return orders from its cache. This is correct because of the order of writes and
// reads. A process that changes the leases of a session first writes the lease. Then it increases
// attrTold in the session's row, before its call returns. A heartbeat first writes the session's
// row, which returns attrTold, and reads the leases after that. Leases that are cached under a
// value of attrTold were therefore read after attrTold had this value.
//
// If a later heartbeat gets the same value, the cached leases contain every change that was
// announced by then. Changes that are announced later may be missing. The calls that make these
// changes had not returned when the heartbeat began, and the next heartbeat reads the changes.
//
// If the report itself releases leases, attrTold increases as well, before the answer. If nothing
// else has increased attrTold, the cached leases without the released ones are current. They are
// then cached under the new value. If attrTold has increased by one, and a note in the session's
// row lists the changed leases, it is enough to read those; see tell.
func (s *Store) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	r, err := checkReport(r)
	if err != nil {
		return lease.Orders{}, err
	}
	ctx, cancel, err := s.begin(ctx, app)
	if err != nil {
		return lease.Orders{}, err
	}
	defer cancel()
	if r.First {
		// This read checks the format of the stored state before anything is written. The leader is
		// read again below, because the leader can change before this heartbeat is answered.
		if _, err := s.readOthers(ctx, app, r); err != nil {
			return lease.Orders{}, err
		}
	}

	// An ended session must change nothing, so the write of its row comes first. The leader can be
	// read in parallel, unless the session resigns.
	var (
		o       lease.Orders
		readErr error
		wg      sync.WaitGroup
	)
	read := func() { o, readErr = s.readOthers(ctx, app, r) }
	if r.Resigns == 0 {
		wg.Go(read)
	}
	row, err := s.touch(ctx, app, r)
	if err == nil {
		if r.Resigns != 0 {
			wg.Go(read)
		}
		row, err = s.carryOutAndSettle(ctx, app, r, row)
	}
	if err != nil {
		cancel()
	}
	wg.Wait()
	key := orderKey{app, r.Session}
	if err = cmp.Or(err, readErr); err != nil {
		// A part of the report may have taken effect, and the next report may lack that part. The
		// cached orders may then be wrong.
		s.forget(key)
		return lease.Orders{}, err
	}
	if o.Leader.Session == r.Session {
		o.Leader.Heartbeats, o.Leader.Streams = row.Heartbeats, r.Streams
	}
	if !r.Others {
		o.Others, o.Leader.Streams = nil, ""
	}
	if o.Held, err = s.heldBy(ctx, key, row); err != nil {
		return lease.Orders{}, err
	}
	return o, nil
}

// readOthers resigns if r requests it. It returns orders with the leader and the other sessions.
func (s *Store) readOthers(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	var o lease.Orders
	err := guard.Call(func() (err error) {
		if r.Resigns != 0 {
			s.resign(ctx, app, r.Session, r.Resigns)
		}
		o.Leader, o.Others, err = s.readBeats(ctx, app, r.Session)
		return err
	})
	return o, err
}

// carryOutAndSettle executes r after touch returned row, and announces the leases that r released.
// It returns the session's row after that.
func (s *Store) carryOutAndSettle(
	ctx context.Context, app string, r lease.Report, row workerRow,
) (workerRow, error) {
	key := orderKey{app, r.Session}
	s.saw(key, row)
	p, err := s.carryOut(ctx, app, r)
	if r.First || p.refused {
		s.forget(key)
	}
	if err != nil || !row.unsettled {
		return row, err
	}
	before := row.told
	row, err = s.settle(ctx, app, r.Session, p.tell)
	if err == nil && row.told == before+1 && len(p.back) > 0 {
		s.subtract(key, before, p.back)
	}
	return row, err
}

// heldBy returns the leases of a session. row is the session's row. heldBy reads leases only if the
// cached ones are out of date.
func (s *Store) heldBy(ctx context.Context, key orderKey, row workerRow) ([]lease.Lease, error) {
	if held, ok := s.known(key, row.told); ok {
		return held, nil
	}
	if held, ok, err := s.catchUp(ctx, key.app, key, row); ok || err != nil {
		return held, err
	}
	leases, err := s.readLeases(ctx, key.app, key.session)
	if err != nil {
		return nil, err
	}
	held := slices.DeleteFunc(leases, func(l lease.Lease) bool { return l.Owner != key.session })
	s.remember(key, row.told, held)
	return held, nil
}

// checkReport calls [lease.Report.Check] and checks the additional rules for this store's keys.
func checkReport(r lease.Report) (lease.Report, error) {
	r, err := r.Check()
	if err != nil {
		return r, err
	}
	for _, p := range r.Progress {
		if err := checkRow("lease", leaseRow(p.Key)); err != nil {
			return r, err
		}
		for _, c := range p.Children {
			if err := checkRow("lease", leaseRow(lease.Key{Stream: p.Stream, Shard: c.ID})); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// givesBack reports whether p releases, finishes or acknowledges a lease.
func givesBack(p lease.Progress) bool { return p.Release || p.Position.IsEnd() }

// touch makes the only write of an idle heartbeat. It increases the heartbeat count and stores the
// report. If the report releases leases, the same write makes the session unsettled; see settle.
func (s *Store) touch(ctx context.Context, app string, r lease.Report) (workerRow, error) {
	var troubles []byte
	if len(r.Troubles) > 0 {
		var err error
		if troubles, err = json.Marshal(r.Troubles); err != nil {
			return workerRow{}, fmt.Errorf("dynamostore: %w", err)
		}
	}
	c := newChange(app, workerRowKey(r.Session)).count(attrBeat).
		setText(attrName, r.Name).setFlag(attrLeaving, r.Leaving).set(attrWeight, text(strconv.FormatFloat(r.Weight, 'g', -1, 64))).
		set(attrMaxLeases, number(uint64(r.MaxLeases))).set(attrHolds, number(r.Holds)).
		setText(attrTroubles, string(troubles)).setText(attrStreams, string(r.Streams)).absent(attrEnded)
	if r.First {
		// A row may be created again under an old name. Its attrTold must differ from values under
		// which a Store still caches orders.
		c.setOnce(attrTold, number(rand.Uint64N(1<<48)))
		c.setText(attrTimes, r.Times.String())
	} else {
		c.exists(attrRow)
	}
	if slices.ContainsFunc(r.Progress, givesBack) {
		c.set(attrUnsettled, yes())
	}
	if s.stale(orderKey{app, r.Session}) {
		c.remove(attrNews).remove(attrNewsAfter)
	}
	it, ok, err := s.update(ctx, "heartbeat of session "+r.Session, c, types.ReturnValueAllNew)
	if err != nil {
		return workerRow{}, err
	}
	if !ok {
		return workerRow{}, lease.ErrSessionOver
	}
	return decodeWorker(it)
}

// settle announces the released leases of a report after the report was executed. It notifies
// heirs, and increases freed for views. If a report is interrupted, its session stays unsettled
// until its next heartbeat, or until its row is removed. Until then, every view reads the leases.
func (s *Store) settle(ctx context.Context, app, session string, heirs news) (workerRow, error) {
	if err := s.tell(ctx, app, heirs); err != nil {
		return workerRow{}, err
	}
	c := newChange(app, workerRowKey(session)).remove(attrUnsettled).count(attrFreed).count(attrTold).exists(attrRow)
	it, ok, err := s.update(ctx, "settle session "+session, c, types.ReturnValueAllNew)
	if err != nil {
		return workerRow{}, err
	}
	if !ok {
		return workerRow{}, lease.ErrSessionOver
	}
	return decodeWorker(it)
}

// readLeases reads the leases that session owns or must acknowledge, sorted by key. If session is
// "", it reads all leases of the application.
func (s *Store) readLeases(ctx context.Context, app, session string) ([]lease.Lease, error) {
	items, err := s.query(ctx, "read the leases", app, leasePrefix, session)
	if err != nil {
		return nil, err
	}
	leases := make([]lease.Lease, len(items))
	for i, it := range items {
		if leases[i], err = decodeLease(it); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(leases, func(a, b lease.Lease) int { return a.Key.Compare(b.Key) })
	return leases, nil
}
