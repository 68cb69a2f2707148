package sqlstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-go/weir/lease"
)

// flush writes the changes.
func (t *tx) flush() error {
	moved := false
	keys := slices.SortedFunc(maps.Keys(t.leases), lease.Key.Compare)
	for _, k := range keys {
		moved = moved || t.leases[k].moved()
	}
	if err := t.writeLeases(keys); err != nil {
		return err
	}
	if moved {
		a, err := t.application()
		if err != nil {
			return err
		}
		a.revision++
		a.changed = true
	}
	if t.top == nil || !t.top.changed {
		return nil
	}
	a := t.top
	paused, err := json.Marshal(append([]string{}, a.paused...))
	if err != nil {
		return err
	}
	var notes any // NULL if there are none
	if len(a.notes) > 0 {
		text, err := json.Marshal(a.notes)
		if err != nil {
			return err
		}
		notes = string(text)
	}
	if a.stored {
		_, err = t.exec("UPDATE {applications} SET leader = ?, term = ?, revision = ?, paused = ?, pause_notes = ? WHERE app = ?",
			a.leader, int64(a.term), int64(a.revision), string(paused), notes, t.app)
		return err
	}
	_, err = t.exec("INSERT INTO {applications} (app, leader, term, revision, token, paused, pause_notes) VALUES (?, ?, ?, ?, ?, ?, ?)",
		t.app, a.leader, int64(a.term), int64(a.revision), a.token, string(paused), notes)
	return err
}

// advanced reports whether the checkpoint, its numbers or the load of an existing lease changed.
func (r *row) advanced() bool {
	return r.was.Position != r.is.Position || r.was.Load != r.is.Load || r.was.Rate != r.is.Rate || r.was.Numbers != r.is.Numbers
}

// moved reports whether anything but the checkpoint, its numbers and the load of the lease changed.
// The next view then contains the leases.
func (r *row) moved() bool {
	if r.was == nil || r.is == nil {
		return r.was != r.is
	}
	a, b := r.was, r.is
	return a.Epoch != b.Epoch || a.Owner != b.Owner || a.Heir != b.Heir || a.Revoked != b.Revoked || a.Last != b.Last ||
		a.Shunned != b.Shunned || a.Deaths != b.Deaths || a.Born != b.Born || a.Range != b.Range || !slices.Equal(a.Parents, b.Parents)
}

func (t *tx) writeLeases(keys []lease.Key) error {
	if t.dialect.server {
		return t.writeAll(keys)
	}
	for _, k := range keys {
		if err := t.writeLease(k, t.leases[k]); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) writeLease(k lease.Key, r *row) error {
	var err error
	switch {
	case r.is == nil && r.was == nil:
	case r.is == nil:
		_, err = t.exec("DELETE FROM {leases} WHERE app = ? AND stream = ? AND shard = ?", t.app, k.Stream, k.Shard)
	case r.was == nil, r.moved(), r.was.Numbers != r.is.Numbers:
		values, bad := encodeLease(*r.is)
		if bad != nil {
			return bad
		}
		if r.was == nil {
			_, err = t.exec("INSERT INTO {leases} ("+leaseColumns+", app) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", append(values, t.app)...)
			break
		}
		_, err = t.exec(`UPDATE {leases} SET parents = ?, range_start = ?, range_end = ?, epoch = ?, owner = ?, heir = ?, revoked = ?,
			last_owner = ?, shunned = ?, position = ?, load_class = ?, born = ?, deaths = ?, rate = ?, numbers = ? WHERE app = ? AND stream = ? AND shard = ?`, append(values[2:], t.app, k.Stream, k.Shard)...)
	case r.advanced():
		position, bad := encodePosition(r.is.Position)
		if bad != nil {
			return fmt.Errorf("sqlstore: lease %s: %w", k, bad)
		}
		_, err = t.exec("UPDATE {leases} SET position = ?, load_class = ?, rate = ? WHERE app = ? AND stream = ? AND shard = ?", position, int64(r.is.Load),
			int64(r.is.Rate), t.app, k.Stream, k.Shard)
	}
	return err
}
