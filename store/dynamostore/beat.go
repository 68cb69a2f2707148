package dynamostore

import (
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

// Beat implements [lease.Store].
//
// Why orders may come from memory. Whoever changes what a session holds writes the lease first and
// then moves told in the session's row, before its call returns. A beat writes the session's row
// first, which answers with told, and reads the leases after that, so what is remembered under a
// value of told was read after told had that value. When a later beat is answered with the same
// value, every change whose note had moved told by then was written before the remembered read
// began. A change whose note comes later may be missing from both; its call had not returned when
// the beat began, and the next beat reads. What the report itself gives back moves told as well,
// before the answer. If nothing else moved it meanwhile, what was remembered less what was given
// back is what a read would find, so it is remembered under the new value. And when told has moved
// by one note that names the leases it is about, reading those is enough; see tell.
func (s *Store) Beat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	r, err := checkReport(r)
	if err != nil {
		return lease.Orders{}, err
	}
	ctx, cancel, err := s.begin(ctx, app)
	if err != nil {
		return lease.Orders{}, err
	}
	defer cancel()
	key := orderKey{app, r.Session}

	// Nothing of a session that is over may take effect, so its row comes first. Who leads does not
	// depend on it, unless it resigns.
	var (
		leader    lease.Leader
		others    []lease.SessionBeat
		leaderErr error
		wg        sync.WaitGroup
	)
	read := func() {
		leaderErr = guard.Call(func() (err error) {
			if r.Resigns != 0 {
				s.resign(ctx, app, r.Session, r.Resigns)
			}
			leader, others, err = s.readBeats(ctx, app, r.Session)
			return err
		})
		if !r.Others {
			others = nil
		}
	}
	if r.First {
		// Nothing is written before the format of what is stored is known. The leader can change
		// before the answer, so it is read again.
		if read(); leaderErr != nil {
			return lease.Orders{}, leaderErr
		}
	}
	if r.Resigns == 0 {
		wg.Go(read)
	}
	row, err := s.touch(ctx, app, r)
	if err == nil {
		if r.Resigns != 0 {
			wg.Go(read)
		}
		s.saw(key, row)
		var p progress
		p, err = s.carryOut(ctx, app, r)
		if r.First || p.refused {
			s.forget(key)
		}
		if err == nil && row.unsettled {
			before := row.told
			if row, err = s.settle(ctx, app, r.Session, p.tell); err == nil && row.told == before+1 && len(p.back) > 0 {
				s.subtract(key, before, p.back)
			}
		}
	}
	if err != nil {
		cancel()
	}
	wg.Wait()
	if err == nil {
		err = leaderErr
	}
	if err != nil {
		// some of the report may have been carried out, and the next one need not repeat it
		s.forget(key)
		return lease.Orders{}, err
	}
	if leader.Session == r.Session {
		leader.Beat, leader.Streams = row.Beat, r.Streams
	}
	if !r.Others {
		leader.Streams = ""
	}

	o := lease.Orders{Leader: leader, Others: others}
	held, ok := s.known(key, row.told)
	if !ok {
		if held, ok, err = s.catchUp(ctx, app, key, row); err != nil {
			return lease.Orders{}, err
		}
	}
	if !ok {
		leases, err := s.readLeases(ctx, app, r.Session)
		if err != nil {
			return lease.Orders{}, err
		}
		held = slices.DeleteFunc(leases, func(l lease.Lease) bool { return l.Owner != r.Session })
		s.remember(key, row.told, held)
	}
	o.Held = held
	return o, nil
}

// checkReport is [lease.Report.Check], and what this store's keys ask for.
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

// givesBack reports whether p can change more than a checkpoint.
func givesBack(p lease.Progress) bool { return p.Release || p.Position.IsEnd() }

// touch is the one write of an idle beat: it counts the beat and records the report. Of a report
// that gives leases back it first says so, in the same write; see settle.
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
		// A row that is made anew under an old name must not repeat values that some Store still
		// remembers orders by.
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
	it, ok, err := s.update(ctx, "beat of session "+r.Session, c, types.ReturnValueAllNew)
	if err != nil {
		return workerRow{}, err
	}
	if !ok {
		return workerRow{}, lease.ErrSessionOver
	}
	return decodeWorker(it)
}

// settle announces what a report gave back, after it was carried out: heirs are told, and freed
// moves, for views. A session whose report was cut short stays unsettled, and no view trusts what
// it knows, until its next beat or its end.
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

// readLeases reads the leases of an application that session owns or has to acknowledge, all for
// "", sorted by key.
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
