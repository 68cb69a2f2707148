package sqlstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Any program may have written the rows. An invalid value causes an error that names the row.

const leaseColumns = "stream, shard, parents, range_start, range_end, epoch, owner, heir, revoked, last_owner, shunned, position, load_class, born, deaths, rate, numbers"

const sessionColumns = "session, name, beat, ended, leaving, weight, max_leases, holds, drain, troubles, times, streams"

// encodeLease returns the values of leaseColumns. It returns an error if decodeLease would return a
// different lease.
func encodeLease(l lease.Lease) ([]any, error) {
	parents := l.Parents
	if parents == nil {
		parents = []string{}
	}
	text, err := json.Marshal(parents)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: lease %s: %w", l.Key, err)
	}
	if l.Epoch > math.MaxInt64 {
		return nil, fmt.Errorf("sqlstore: lease %s: epoch %d is above 2^63-1", l.Key, l.Epoch)
	}
	position, err := encodePosition(l.Position)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: lease %s: %w", l.Key, err)
	}
	row := []any{l.Stream, l.Shard, string(text), l.Range.Start.String(), l.Range.End.String(), int64(l.Epoch), l.Owner, l.Heir,
		l.Revoked, l.Last, l.Shunned, position, int64(l.Load), l.Born, l.Deaths, int64(l.Rate), l.Numbers}
	back, err := decodeLease(row)
	if err != nil {
		return nil, err
	}
	if len(l.Parents) == 0 {
		l.Parents, back.Parents = nil, nil
	}
	if !reflect.DeepEqual(back, l) {
		return nil, fmt.Errorf("sqlstore: lease %s cannot be stored: it would read %s", l, back)
	}
	return row, nil
}

// encodePosition returns the text of a position. It returns an error if the text could not be
// parsed again.
func encodePosition(p shard.Position) (string, error) {
	s := p.String()
	if back, err := shard.Parse(s); err != nil || back != p {
		return "", fmt.Errorf("position %.60q cannot be stored", s)
	}
	return s, nil
}

// decodeLease reads the values of leaseColumns.
func decodeLease(row []any) (lease.Lease, error) {
	d := decoder{row: row}
	l := lease.Lease{Key: lease.Key{Stream: d.text("stream"), Shard: d.text("shard")}}
	parents, start, end := d.text("parents"), d.text("range_start"), d.text("range_end")
	l.Epoch = d.count("epoch")
	l.Owner, l.Heir, l.Revoked, l.Last = d.text("owner"), d.text("heir"), d.text("revoked"), d.text("last_owner")
	l.Shunned = d.text("shunned")
	position := d.text("position")
	load := d.count("load_class")
	l.Load, l.Born = lease.Load(min(load, uint64(lease.MaxLoad))), int64(d.count("born"))
	l.Deaths, l.Rate = d.text("deaths"), d.count("rate")
	l.Numbers = d.text("numbers")
	if load > uint64(lease.MaxLoad) {
		d.fail("load_class", fmt.Errorf("%d is above %d", load, lease.MaxLoad))
	}
	d.try("parents", func() error { return json.Unmarshal([]byte(parents), &l.Parents) })
	if len(l.Parents) == 0 {
		l.Parents = nil
	}
	d.try("hash range", func() (err error) { l.Range, err = shard.ParseHashRange(start, end); return err })
	d.try("position", func() (err error) { l.Position, err = shard.Parse(position); return err })
	if d.err != nil {
		return lease.Lease{}, badRow("lease", l.Key.String(), d.err)
	}
	return l, nil
}

// decodeSession reads the values of sessionColumns.
func decodeSession(row []any) (lease.Worker, error) {
	d := decoder{row: row}
	w := lease.Worker{Session: d.text("session"), Name: d.text("name"), Heartbeats: d.count("beat"), Ended: d.flag("ended"), Leaving: d.flag("leaving"),
		Weight: d.real("weight"), MaxLeases: int(d.integer("max_leases")), Holds: uint64(d.integer("holds")),
		Drain: d.flag("drain")}
	if !(w.Weight > 0 && w.Weight <= math.MaxFloat64) {
		d.fail("weight", fmt.Errorf("%v is not a positive number", w.Weight))
	}
	if w.MaxLeases < 0 {
		d.fail("max_leases", fmt.Errorf("%d is below zero", w.MaxLeases))
	}
	troubles, times := d.text("troubles"), d.text("times")
	d.try("times", func() (err error) { w.Times, err = lease.ParseTimes(times); return err })
	w.Streams = lease.Streams(d.text("streams"))
	if troubles != "" {
		d.try("troubles", func() error { return json.Unmarshal([]byte(troubles), &w.Troubles) })
	}
	if d.err != nil {
		return lease.Worker{}, badRow("session", w.Session, d.err)
	}
	return w, nil
}

// encodeTroubles returns the text of the troubles of a checked report, or "" if there are none.
func encodeTroubles(troubles []lease.Trouble) (string, error) {
	if len(troubles) == 0 {
		return "", nil
	}
	text, err := json.Marshal(troubles)
	return string(text), err
}

// badRow returns the error for an invalid row.
func badRow(kind, name string, err error) error {
	return fmt.Errorf("sqlstore: the row of %s %.300q is invalid: %w", kind, name, err)
}

// decoder reads the values of one row from left to right and keeps the first error.
type decoder struct {
	row []any
	err error
}

func (d *decoder) fail(column string, err error) {
	if d.err == nil {
		d.err = fmt.Errorf("%s: %w", column, err)
	}
}

func (d *decoder) try(what string, do func() error) {
	if d.err == nil {
		if err := do(); err != nil {
			d.fail(what, err)
		}
	}
}

func (d *decoder) next(column string) any {
	if len(d.row) == 0 {
		d.fail(column, errors.New("missing"))
		return nil
	}
	v := d.row[0]
	d.row = d.row[1:]
	return v
}

func (d *decoder) text(column string) string {
	switch v := d.next(column).(type) {
	case string:
		return v
	case []byte:
		return string(v)
	default:
		d.fail(column, fmt.Errorf("%T is not a text", v))
		return ""
	}
}

func (d *decoder) integer(column string) int64 {
	switch v := d.next(column).(type) {
	case int64:
		return v
	case bool:
		if v {
			return 1
		}
		return 0
	case []byte:
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			d.fail(column, err)
		}
		return n
	default:
		d.fail(column, fmt.Errorf("%T is not an integer", v))
		return 0
	}
}

func (d *decoder) count(column string) uint64 {
	n := d.integer(column)
	if n < 0 {
		d.fail(column, fmt.Errorf("%d is below zero", n))
		return 0
	}
	return uint64(n)
}

func (d *decoder) flag(column string) bool {
	n := d.integer(column)
	if n != 0 && n != 1 {
		d.fail(column, fmt.Errorf("%d is neither 0 nor 1", n))
	}
	return n == 1
}

func (d *decoder) real(column string) float64 {
	switch v := d.next(column).(type) {
	case float64:
		return v
	case int64:
		return float64(v)
	case []byte:
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			d.fail(column, err)
		}
		return f
	default:
		d.fail(column, fmt.Errorf("%T is not a number", v))
		return 0
	}
}
