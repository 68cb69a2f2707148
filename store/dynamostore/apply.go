package dynamostore

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Apply implements [lease.Store]. It executes adjacent actions of one kind on different rows in
// parallel.
func (s *Store) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	ctx, cancel, err := s.begin(ctx, app)
	if err != nil {
		return nil, err
	}
	defer cancel()
	for _, a := range actions {
		if err := checkAction(a); err != nil {
			return nil, err
		}
	}

	var (
		mu      sync.Mutex
		done    = make([]bool, len(actions))
		tell    = news{}
		touched bool // at least one lease changed
	)
	for run := range runs(actions) {
		err = parallel(run.end-run.start, func(i int) error {
			i += run.start
			ok, sessions, err := s.apply(ctx, app, actions[i])
			mu.Lock()
			defer mu.Unlock()
			done[i] = ok
			touched = touched || onLease(actions[i].Kind)
			for _, session := range sessions {
				switch {
				case session == "":
				case onLease(actions[i].Kind):
					tell.add(session, keyOf(actions[i]))
				default:
					tell[session] = nil
				}
			}
			return err
		})
		if err != nil {
			break
		}
	}
	// This also runs after an error: it announces the changes that took effect, if that is still
	// possible.
	var noted error
	if touched {
		noted = s.announce(ctx, app, tell)
	} else {
		noted = s.tell(ctx, app, tell)
	}
	if err == nil {
		err = noted
	}
	if err != nil {
		s.mu.Lock()
		s.doubt[app] = time.Since(s.born)
		s.mu.Unlock()
		return done, err
	}
	return done, nil
}

// announce records that leases changed. It notifies views, and the sessions whose orders contain
// these leases.
func (s *Store) announce(ctx context.Context, app string, told news) error {
	return parallel(2, func(i int) error {
		if i == 0 {
			return s.tell(ctx, app, told)
		}
		_, _, err := s.update(ctx, "announce a change", newChange(app, leaderRowKey).count(attrChanges).setOnce(attrToken, text(rand.Text()[:12])), types.ReturnValueNone)
		return err
	})
}

func onLease(k lease.Kind) bool {
	switch k {
	case lease.Create, lease.Assign, lease.Handoff, lease.Revoke, lease.Delete, lease.Move, lease.Replace, lease.Birth:
		return true
	default:
		return false
	}
}

// checkAction calls [lease.Action.Check] and checks the additional rules for this store's keys.
func checkAction(a lease.Action) error {
	if err := a.Check(); err != nil {
		return err
	}
	return checkRow("lease", target(a))
}

type run struct{ start, end int }

// runs splits actions into runs. The order of actions within a run does not matter, because they
// are of the same kind and on different rows.
func runs(actions []lease.Action) func(yield func(run) bool) {
	return func(yield func(run) bool) {
		var (
			start int
			rows  = map[string]bool{}
		)
		for i, a := range actions {
			row := target(a)
			if i > start && (a.Kind != actions[start].Kind || rows[row]) {
				if !yield(run{start, i}) {
					return
				}
				start = i
				clear(rows)
			}
			rows[row] = true
		}
		if start < len(actions) {
			yield(run{start, len(actions)})
		}
	}
}

// keyOf returns the key of the lease that an action changes.
func keyOf(a lease.Action) lease.Key {
	if a.Kind == lease.Create {
		return a.Lease.Key
	}
	return a.Key
}

// target returns the row that an action changes.
func target(a lease.Action) string {
	switch {
	case onLease(a.Kind):
		return leaseRow(keyOf(a))
	case a.Kind == lease.Pause:
		return leaderRowKey
	default:
		return workerRowKey(a.Session)
	}
}

// apply executes one action. It reports whether the action took effect, and which sessions must
// read their orders again.
func (s *Store) apply(ctx context.Context, app string, a lease.Action) (bool, []string, error) {
	switch a.Kind {
	case lease.Create, lease.Replace:
		return s.putLease(ctx, app, a)
	case lease.Assign, lease.Handoff, lease.Revoke:
		return s.reassign(ctx, app, a)
	case lease.Move:
		return s.move(ctx, app, a)
	case lease.Tell:
		return true, []string{a.Session}, nil
	default:
		ok, err := s.applyAlone(ctx, app, a)
		return ok, nil, err
	}
}

// applyAlone executes an action that does not change the orders of any session. It takes one
// conditional write.
func (s *Store) applyAlone(ctx context.Context, app string, a lease.Action) (bool, error) {
	c := newChange(app, target(a))
	switch a.Kind {
	case lease.Delete:
		return s.delete(ctx, a.String(), c.when(attrEpoch, "=", number(a.Epoch)).absent(attrOwner))
	case lease.Forget:
		return s.delete(ctx, a.String(), c.when(attrEnded, "=", yes()))
	case lease.EndSession:
		c.set(attrEnded, yes()).when(attrBeat, "=", number(a.Heartbeats))
	case lease.Drain:
		c.setFlag(attrDrain, a.On).exists(attrRow).absent(attrEnded)
	case lease.Birth:
		c.when(attrEpoch, "=", number(a.Epoch)).absent(attrBorn)
		c.set(attrBorn, number(uint64(a.Born)))
	case lease.Pause:
		stream := pausedMark + a.Stream
		if a.On {
			c.include(attrPaused, stream).fits(attrPaused, stream, lease.MaxPaused)
		} else {
			c.exclude(attrPaused, stream)
			a.Note = ""
		}
		c.setNote(attrPauseNote+a.Stream, a.Note)
	}
	_, ok, err := s.update(ctx, a.String(), c, types.ReturnValueNone)
	return ok, err
}

// putLease executes a Create or a Replace, which write a whole lease.
func (s *Store) putLease(ctx context.Context, app string, a lease.Action) (bool, []string, error) {
	mark := rand.Text()
	it := encodeLease(app, a.Lease)
	it[attrWrite] = text(mark)
	var ok bool
	var err error
	if a.Kind == lease.Create {
		ok, err = s.put(ctx, a.String(), it)
	} else {
		c := newChange(app, target(a)).when(attrEpoch, "=", number(a.Epoch)).absent(attrOwner)
		ok, err = s.replace(ctx, a.String(), it, c)
	}
	if err != nil || ok {
		return ok, []string{a.Lease.Owner}, err
	}
	return s.afterRefusal(ctx, app, a, mark)
}

// reassign executes an Assign, a Handoff or a Revoke.
func (s *Store) reassign(ctx context.Context, app string, a lease.Action) (bool, []string, error) {
	mark := rand.Text()
	c := newChange(app, target(a)).when(attrEpoch, "=", number(a.Epoch)).set(attrWrite, text(mark))
	var heirs []string
	switch a.Kind {
	case lease.Assign:
		changeOwner(c, a.Session)
		setDeaths(c, a.Deaths)
		c.remove(attrRevoked).when(attrPositionKey, "<>", text(shard.End.SortKey()))
		heirs = []string{a.Session}
	case lease.Handoff:
		c.exists(attrOwner).when(attrOwner, "<>", text(a.Session)).setText(attrHeir, a.Session)
	case lease.Revoke:
		c.exists(attrOwner).copy(attrRevoked, attrOwner)
		changeOwner(c, "")
	}
	before, ok, err := s.update(ctx, a.String(), c, types.ReturnValueAllOld)
	if err != nil {
		return false, nil, err
	}
	if !ok {
		return s.afterRefusal(ctx, app, a, mark)
	}
	r := reader{it: before}
	return true, append(heirs, r.text(attrOwner)), nil
}

// move executes a Move. The write depends on whether the lease has an owner.
func (s *Store) move(ctx context.Context, app string, a lease.Action) (bool, []string, error) {
	mark := rand.Text()
	for _, owned := range [...]bool{true, false} {
		c := newChange(app, leaseRow(a.Key)).when(attrEpoch, "=", number(a.Epoch)).set(attrWrite, text(mark))
		setPosition(c, a.Position)
		c.remove(attrDeaths)
		c.remove(attrNumbers)
		if a.Born != 0 {
			c.set(attrBorn, number(uint64(a.Born)))
		}
		if owned {
			c.exists(attrOwner).copy(attrRevoked, attrOwner)
		} else {
			c.absent(attrOwner)
		}
		changeOwner(c, "")
		before, ok, err := s.update(ctx, a.String(), c, types.ReturnValueAllOld)
		if err != nil {
			return false, nil, err
		}
		if ok {
			r := reader{it: before}
			return true, []string{r.text(attrOwner)}, nil
		}
	}
	return s.afterRefusal(ctx, app, a, mark)
}

// afterRefusal reads the lease of an action after DynamoDB refused the conditional write. The row's
// mark shows whether an earlier attempt of this call wrote it and only the answer was lost. The row
// may also be the result of an earlier call that failed before its announcement. Except for a
// Create, afterRefusal therefore returns the owner and the revoked session, which must be notified.
func (s *Store) afterRefusal(ctx context.Context, app string, a lease.Action, mark string) (bool, []string, error) {
	it, err := s.get(ctx, a.String(), app, target(a))
	if err != nil || it == nil {
		return false, nil, err
	}
	r := reader{it: it}
	ours := r.text(attrWrite) == mark
	if a.Kind == lease.Create {
		return ours, nil, nil
	}
	return ours, []string{r.text(attrOwner), r.text(attrRevoked)}, nil
}
