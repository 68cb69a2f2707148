package dynamostore

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// maxTries limits how often a call starts again because others changed the rows that it had read.
const maxTries = 20

// progress is the result of executing a report.
type progress struct {
	// refused is set if a part was ignored. The session's cached orders may then be wrong.
	refused bool
	tell    news // leases that sessions received
	// back contains the leases that the session gave back, with the epochs at which it held them.
	back map[lease.Key]uint64
}

// carryOut executes each progress of a report separately. It handles different leases in parallel,
// and entries for one lease one after the other.
func (s *Store) carryOut(ctx context.Context, app string, r lease.Report) (progress, error) {
	var (
		keys  []lease.Key
		byKey = map[lease.Key][]lease.Progress{}
	)
	for _, p := range r.Progress {
		if byKey[p.Key] == nil {
			keys = append(keys, p.Key)
		}
		byKey[p.Key] = append(byKey[p.Key], p)
	}
	var (
		mu  sync.Mutex
		all = progress{tell: news{}, back: map[lease.Key]uint64{}}
	)
	err := parallel(len(keys), func(i int) error {
		for _, p := range byKey[keys[i]] {
			var (
				ok   bool
				heir string
				err  error
			)
			switch {
			case givesBack(p):
				ok, heir, err = s.giveBack(ctx, app, r.Session, p)
			case p.Position.IsZero() && p.Load == 0 && p.Deaths == "" && p.Numbers == "":
				ok = true
			default:
				ok, err = s.checkpoint(ctx, app, r.Session, p)
			}
			if err != nil {
				return err
			}
			mu.Lock()
			all.refused = all.refused || !ok
			if ok && givesBack(p) {
				all.back[p.Key] = p.Epoch
			}
			if heir != r.Session {
				all.tell.add(heir, p.Key)
			}
			mu.Unlock()
		}
		return nil
	})
	return all, err
}

// checkpoint moves a position forward and stores the load, the deaths and the numbers, if session
// owns the lease at the epoch of p.
func (s *Store) checkpoint(ctx context.Context, app, session string, p lease.Progress) (bool, error) {
	save := func(position bool) (bool, error) {
		c := newChange(app, leaseRow(p.Key)).when(attrOwner, "=", text(session)).when(attrEpoch, "=", number(p.Epoch))
		if position {
			c.when(attrPositionKey, "<=", text(p.Position.SortKey()))
			setPosition(c, p.Position)
		}
		setLoad(c, p)
		setNotes(c, p)
		_, ok, err := s.update(ctx, "checkpoint of "+p.Key.String(), c, types.ReturnValueNone)
		return ok, err
	}
	if !p.Position.IsZero() {
		if ok, err := save(true); ok || err != nil || p.Load == 0 && p.Deaths == "" && p.Numbers == "" {
			return ok, err
		}
	}
	return save(false)
}

func setLoad(c *change, p lease.Progress) {
	if p.Load != 0 {
		c.set(attrLoad, number(uint64(p.Load))).set(attrRate, number(p.Rate))
	}
}

// setNotes sets the deaths and the numbers.
func setNotes(c *change, p lease.Progress) {
	setDeaths(c, p.Deaths)
	if p.Numbers != "" {
		c.set(attrNumbers, text(p.Numbers))
	}
}

func setDeaths(c *change, deaths string) {
	if deaths != "" {
		c.set(attrDeaths, text(deaths))
	}
}

func setPosition(c *change, p shard.Position) {
	c.setText(attrPosition, p.String()).set(attrPositionKey, text(p.SortKey()))
}

// outcome is the effect of a progress on a lease.
type outcome uint8

const (
	ignored      outcome = iota
	acknowledged         // Revoked is cleared
	freed                // without an owner
	handedOver           // owned by the heir
	finished             // without an owner, and done
)

// decide returns the effect on l of a progress for which givesBack is true.
func decide(l lease.Lease, session string, p lease.Progress) outcome {
	switch {
	case l.Owner == session && l.Epoch == p.Epoch && p.Position.IsEnd():
		return finished
	case l.Owner == session && l.Epoch == p.Epoch && p.Release && l.NextOwner() != "":
		return handedOver
	case l.Owner == session && l.Epoch == p.Epoch && p.Release:
		return freed
	case l.Revoked == session && p.Release && p.Epoch+1 == l.Epoch:
		return acknowledged
	default:
		return ignored
	}
}

// giveBack releases, finishes or acknowledges a lease. It reads the lease, decides, and writes on
// the condition that the lease has not changed. If the lease has changed, giveBack starts again. It
// reports whether session was entitled to this change, and which session must be notified as the
// new owner. If an earlier attempt took effect and its answer was lost, the row shows the result,
// and the owner is notified again.
func (s *Store) giveBack(ctx context.Context, app, session string, p lease.Progress) (bool, string, error) {
	row, what := leaseRow(p.Key), "give back "+p.Key.String()
	for range maxTries {
		it, err := s.get(ctx, what, app, row)
		if err != nil || it == nil {
			return false, "", err
		}
		l, err := decodeLease(it)
		if err != nil {
			return false, "", err
		}
		does := decide(l, session, p)
		if does == ignored {
			return false, l.Owner, nil
		}
		if does == finished {
			if err := s.makeChildren(ctx, app, p, l.Born); err != nil {
				return false, "", err
			}
		}
		c := asSeen(app, l)
		if does != acknowledged && p.Position.Compare(l.Position) > 0 {
			setPosition(c, p.Position)
		}
		if does != acknowledged {
			setLoad(c, p)
			setNotes(c, p)
		}
		switch does {
		case acknowledged:
			c.remove(attrRevoked)
		case handedOver:
			changeOwner(c, l.Heir)
		default:
			changeOwner(c, "")
			if does == freed && p.Stalled {
				c.set(attrShunned, text(session))
			}
		}
		if _, ok, err := s.update(ctx, what, c, types.ReturnValueNone); err != nil {
			return false, "", err
		} else if !ok {
			continue
		}
		if does == handedOver {
			return true, l.Heir, nil
		}
		return true, "", nil
	}
	return false, "", fmt.Errorf("dynamostore: %s: the row changed under each of %d tries", what, maxTries)
}

// asSeen returns a change on the condition that the owner, heir, revoked session, epoch and
// position of l are unchanged. The position matters because a concurrent checkpoint of the owner
// must not be undone.
func asSeen(app string, l lease.Lease) *change {
	return newChange(app, leaseRow(l.Key)).
		when(attrEpoch, "=", number(l.Epoch)).when(attrPositionKey, "=", text(l.Position.SortKey())).
		whenText(attrOwner, l.Owner).whenText(attrHeir, l.Heir).whenText(attrRevoked, l.Revoked)
}

// changeOwner makes session the owner and fences the previous owner. If session is "", the lease
// has no owner afterwards.
func changeOwner(c *change, session string) {
	c.setText(attrOwner, session).remove(attrHeir).count(attrEpoch)
	if session != "" {
		c.set(attrLast, text(session)).remove(attrShunned)
	}
}

// makeChildren creates a lease for each child that has none. It runs before the parent is finished.
func (s *Store) makeChildren(ctx context.Context, app string, p lease.Progress, born int64) error {
	return parallel(len(p.Children), func(i int) error {
		c := p.Children[i]
		_, err := s.put(ctx, "create the lease of a child of "+p.Key.String(), encodeLease(app, lease.Lease{
			Key: lease.Key{Stream: p.Stream, Shard: c.ID}, Parents: c.Parents, Range: c.Range, Epoch: 1, Position: shard.Oldest,
			Born: born,
		}))
		return err
	})
}

// Leave implements [lease.Store].
func (s *Store) Leave(ctx context.Context, app string, r lease.Report) error {
	r, err := checkReport(r)
	if err != nil {
		return err
	}
	ctx, cancel, err := s.begin(ctx, app)
	if err != nil {
		return err
	}
	defer cancel()
	defer s.forget(orderKey{app, r.Session})

	// Until the row is deleted, attrUnsettled makes every view read the leases.
	row := workerRowKey(r.Session)
	_, lives, err := s.update(ctx, "session "+r.Session+" leaves",
		newChange(app, row).set(attrLeaving, yes()).set(attrUnsettled, yes()).exists(attrRow).absent(attrEnded), types.ReturnValueNone)
	if err != nil {
		return err
	}
	told := news{}
	if lives {
		p, err := s.carryOut(ctx, app, r)
		if err != nil {
			return err
		}
		told = p.tell
	}
	changed, err := s.freeAll(ctx, app, r.Session, told)
	if err != nil {
		return err
	}
	// After this write, or after the same write of an earlier call, this session does not lead.
	_, _, err = s.update(ctx, "give leadership up",
		newChange(app, leaderRowKey).remove(attrSession).count(attrTerm).set(attrWrite, text(rand.Text())).
			when(attrSession, "=", text(r.Session)), types.ReturnValueNone)
	if err != nil {
		return err
	}
	if changed || lives {
		if err := s.announce(ctx, app, told); err != nil {
			return err
		}
	}
	_, err = s.delete(ctx, "remove the row of session "+r.Session, newChange(app, row))
	return err
}

// freeAll removes session as owner and as revoked session from every lease. It repeats this until
// it finds no such lease, because a leader that has not yet noticed that session is leaving may
// still assign leases to it.
func (s *Store) freeAll(ctx context.Context, app, session string, told news) (changed bool, err error) {
	var mu sync.Mutex
	for range maxTries {
		leases, err := s.readLeases(ctx, app, session)
		if err != nil || len(leases) == 0 {
			return changed, err
		}
		err = parallel(len(leases), func(i int) error {
			l := leases[i]
			heir := l.NextOwner()
			if heir == session {
				heir = ""
			}
			c := asSeen(app, l)
			if l.Owner == session {
				changeOwner(c, heir)
			}
			if l.Revoked == session {
				c.remove(attrRevoked)
			}
			_, ok, err := s.update(ctx, "free "+l.Key.String(), c, types.ReturnValueNone)
			mu.Lock()
			defer mu.Unlock()
			changed = true
			if ok && l.Owner == session {
				told.add(heir, l.Key)
			}
			return err
		})
		if err != nil {
			return changed, err
		}
	}
	return changed, fmt.Errorf("dynamostore: session %s still gets leases while it leaves", session)
}
