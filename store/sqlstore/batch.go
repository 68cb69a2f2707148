package sqlstore

import (
	"slices"
	"strings"

	"github.com/weir-go/weir/lease"
)

// rowsAtOnce is the maximum number of rows in the parameters of one statement.
const rowsAtOnce = 200

// preload reads the leases with these keys in a few statements, and records which of them do not
// exist. It does nothing if the database is local, where a statement takes no round trip.
func (t *tx) preload(keys []lease.Key) error {
	if !t.dialect.server {
		return nil
	}
	keys = slices.DeleteFunc(keys, func(k lease.Key) bool { return t.leases[k] != nil })
	slices.SortFunc(keys, lease.Key.Compare)
	keys = slices.Compact(keys)
	for some := range slices.Chunk(keys, rowsAtOnce) {
		args := make([]any, 0, 2*len(some))
		for _, k := range some {
			args = append(args, k.Stream, k.Shard)
		}
		if err := t.load(" WHERE app = ? AND (stream, shard) IN ("+list("(?, ?)", len(some))+")", args...); err != nil {
			return err
		}
		for _, k := range some {
			if t.leases[k] == nil {
				t.leases[k] = &row{}
			}
		}
	}
	return nil
}

// keysOf returns the keys of the leases in actions.
func keysOf(actions []lease.Action) []lease.Key {
	var keys []lease.Key
	for _, a := range actions {
		switch a.Kind {
		case lease.Create:
			keys = append(keys, a.Lease.Key)
		case lease.Assign, lease.Handoff, lease.Revoke, lease.Delete, lease.Move, lease.Replace, lease.Birth:
			keys = append(keys, a.Key)
		}
	}
	return keys
}

// list repeats what n times, separated by commas.
func list(what string, n int) string { return strings.TrimSuffix(strings.Repeat(what+", ", n), ", ") }

// writeAll writes the changed leases, many at a time. The leases are locked. If a new row already
// exists, another transaction created it, and this transaction must start again.
func (t *tx) writeAll(keys []lease.Key) error {
	var made, changed, gone [][]any
	for _, k := range keys {
		r := t.leases[k]
		switch {
		case r.is == nil && r.was == nil:
		case r.is == nil:
			gone = append(gone, []any{k.Stream, k.Shard})
		case r.was == nil, r.moved(), r.advanced():
			values, err := encodeLease(*r.is)
			if err != nil {
				return err
			}
			values = append(values, t.app, r.is.Position.SortKey())
			if r.was == nil {
				made = append(made, values)
			} else {
				changed = append(changed, values)
			}
		}
	}
	const columns = leaseColumns + ", app, place"
	names := strings.Split(columns, ", ")
	insert := func(rows [][]any, rest string) error {
		for some := range slices.Chunk(rows, rowsAtOnce) {
			one := "(" + list("?", len(names)) + ")"
			if _, err := t.exec("INSERT INTO {leases} ("+columns+") VALUES "+list(one, len(some))+rest, slices.Concat(some...)...); err != nil {
				return err
			}
		}
		return nil
	}
	if err := insert(made, ""); err != nil {
		return err
	}
	replaced := slices.DeleteFunc(slices.Clone(names), func(c string) bool { return c == "app" || c == "stream" || c == "shard" })
	if err := insert(changed, t.dialect.replacing(replaced)); err != nil {
		return err
	}
	for some := range slices.Chunk(gone, rowsAtOnce) {
		_, err := t.exec("DELETE FROM {leases} WHERE app = ? AND (stream, shard) IN ("+list("(?, ?)", len(some))+")",
			append([]any{t.app}, slices.Concat(some...)...)...)
		if err != nil {
			return err
		}
	}
	return nil
}
