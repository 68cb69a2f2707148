package sqlstore

import (
	"cmp"
	"slices"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// progress executes the session's report about its leases. The leases that the session owns are
// already loaded.
func (t *tx) progress(r lease.Report) error {
	for _, p := range r.Progress {
		row := t.leases[p.Key]
		if row == nil {
			if !p.Release {
				continue // the session does not own the lease, and there is nothing to acknowledge
			}
			var err error
			if row, err = t.lease(p.Key); err != nil {
				return err
			}
		}
		if !row.progress(r.Session, p) {
			continue
		}
		for _, c := range p.Children {
			k := lease.Key{Stream: p.Stream, Shard: c.ID}
			child, err := t.lease(k)
			if err != nil {
				return err
			}
			child.create(lease.Lease{Key: k, Parents: c.Parents, Range: c.Range, Epoch: 1, Position: shard.Oldest, Born: row.is.Born})
		}
	}
	return nil
}

// apply executes one action and reports whether its condition was true.
func (t *tx) apply(a lease.Action) (bool, error) {
	switch a.Kind {
	case lease.Create:
		row, err := t.lease(a.Lease.Key)
		return err == nil && row.create(a.Lease), err
	case lease.EndSession:
		w, there, err := t.session(a.Session)
		if err != nil || !there || w.Heartbeats != a.Heartbeats || w.Ended {
			return there && w.Heartbeats == a.Heartbeats, err
		}
		_, err = t.exec("UPDATE {sessions} SET ended = 1 WHERE app = ? AND session = ?", t.app, a.Session)
		return err == nil, err
	case lease.Forget:
		w, there, err := t.session(a.Session)
		if err != nil || !there || !w.Ended {
			return false, err
		}
		_, err = t.exec("DELETE FROM {sessions} WHERE app = ? AND session = ?", t.app, a.Session)
		return err == nil, err
	case lease.Tell:
		return true, nil // each Heartbeat reads the leases anyway
	case lease.Drain:
		n, err := t.exec("UPDATE {sessions} SET drain = ? WHERE app = ? AND session = ? AND ended = 0", flag(a.On), t.app, a.Session)
		if err != nil || n > 0 {
			return err == nil, err
		}
		// Some databases do not count a row as affected if the update does not change it.
		w, there, err := t.session(a.Session)
		return err == nil && there && !w.Ended, err
	case lease.Pause:
		top, err := t.application()
		return err == nil && top.pause(a), err
	}
	row, err := t.lease(a.Key)
	return err == nil && row.apply(a), err
}

// progress executes the session's report about the lease. It returns true if the end of the shard
// was accepted.
func (r *row) progress(session string, p lease.Progress) (ended bool) {
	l := r.is
	switch {
	case l == nil:
	case l.Owner == session && l.Epoch == p.Epoch:
		if p.Position.Compare(l.Position) > 0 {
			l.Position = p.Position
		}
		if p.Load != 0 {
			l.Load, l.Rate = p.Load, p.Rate
		}
		l.Deaths, l.Numbers = cmp.Or(p.Deaths, l.Deaths), cmp.Or(p.Numbers, l.Numbers)
		switch {
		case p.Position.IsEnd():
			own(l, "")
			return true
		case p.Release:
			own(l, l.NextOwner())
			if p.Stalled && l.Owner == "" {
				l.Shunned = session
			}
		}
	case l.Revoked == session && p.Release && p.Epoch+1 == l.Epoch:
		l.Revoked = ""
	}
	return false
}

// leave removes a leaving session from the lease.
func (r *row) leave(session string) {
	l := r.is
	if l == nil {
		return
	}
	if l.Owner == session {
		own(l, l.NextOwner())
	}
	if l.Revoked == session {
		l.Revoked = ""
	}
}

// create creates the lease unless it exists.
func (r *row) create(l lease.Lease) bool {
	if r.is != nil {
		return false
	}
	l.Parents = slices.Clone(l.Parents)
	r.is = &l
	return true
}

// apply executes an action whose condition contains the epoch.
func (r *row) apply(a lease.Action) bool {
	l := r.is
	if l == nil || l.Epoch != a.Epoch {
		return false
	}
	switch a.Kind {
	case lease.Assign:
		if l.Finished() {
			return false
		}
		l.Revoked, l.Deaths = "", cmp.Or(a.Deaths, l.Deaths)
		own(l, a.Session)
	case lease.Handoff:
		if l.Owner == "" || l.Owner == a.Session {
			return false
		}
		l.Heir = a.Session
	case lease.Revoke:
		if l.Owner == "" {
			return false
		}
		l.Revoked = l.Owner
		own(l, "")
	case lease.Delete:
		if l.Owner != "" {
			return false
		}
		r.is = nil
	case lease.Move:
		l.Position, l.Deaths, l.Numbers = a.Position, "", ""
		if a.Born != 0 {
			l.Born = a.Born
		}
		if l.Owner != "" {
			l.Revoked = l.Owner
		}
		own(l, "")
	case lease.Replace:
		if l.Owner != "" {
			return false
		}
		*l = a.Lease
		l.Parents = slices.Clone(a.Lease.Parents)
	case lease.Birth:
		if l.Born != 0 {
			return false
		}
		l.Born = a.Born
	default:
		return false
	}
	return true
}

// own makes session the owner and fences the previous owner. If session is "", the lease has no
// owner afterwards.
func own(l *lease.Lease, session string) {
	l.Owner, l.Heir = session, ""
	if session != "" {
		l.Last, l.Shunned = session, ""
	}
	l.Epoch++
}

// follow makes session the leader. If session is "", there is no leader afterwards.
func (a *application) follow(session string) {
	a.leader = session
	a.term++
	a.changed = true
}

// pause adds a stream to the paused streams, or removes it. It returns false if there is no room.
func (a *application) pause(act lease.Action) bool {
	at, there := slices.BinarySearch(a.paused, act.Stream)
	note := a.notes[act.Stream]
	switch {
	case there == act.On && note == act.Note:
		return true
	case !act.On:
		if there {
			a.paused = slices.Delete(a.paused, at, at+1)
		}
		delete(a.notes, act.Stream)
	case !there && len(a.paused) >= lease.MaxPaused:
		return false
	default:
		if !there {
			a.paused = slices.Insert(a.paused, at, act.Stream)
		}
		if delete(a.notes, act.Stream); act.Note != "" {
			if a.notes == nil {
				a.notes = map[string]string{}
			}
			a.notes[act.Stream] = act.Note
		}
	}
	a.changed = true
	return true
}

// leads returns the leader. There is no leader if the leader's session has ended or left.
func (a *application) leads() lease.Leader {
	if a.leader == "" || !a.leaderLives {
		return lease.Leader{Epoch: a.term}
	}
	return lease.Leader{Session: a.leader, Epoch: a.term, Heartbeats: a.leaderBeat}
}
