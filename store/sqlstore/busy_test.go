package sqlstore

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weir-go/weir/internal/sqltable"
)

// coded is an error in the form of pgx and lib/pq.
type coded string

func (c coded) Error() string    { return "the server's words" }
func (c coded) SQLState() string { return string(c) }

// Only errors that other transactions cause are retried. Serialization failures only occur if the
// server's default isolation level is above READ COMMITTED. Tests against servers therefore do not
// cover them.
func TestCollisionsAreTriedAgain(t *testing.T) {
	for _, c := range []struct {
		d    *dialect
		err  error
		busy bool
	}{
		{postgres, coded("40001"), true},
		{postgres, coded("40P01"), true},
		{postgres, coded("55P03"), true},
		{postgres, fmt.Errorf("wrapped: %w", coded("23505")), true},
		{postgres, coded("42P01"), false},
		{postgres, coded("25P03"), false},
		{postgres, coded("57P01"), false},
		{postgres, errors.New("40001"), false},
		{mysql, errors.New("Error 1213 (40001): Deadlock found when trying to get lock"), true},
		{mysql, errors.New("Error 1205 (HY000): Lock wait timeout exceeded"), true},
		{mysql, errors.New("Error 1020 (HY000): Record has changed since last read"), true},
		{mysql, errors.New("Error 1062 (23000): Duplicate entry"), true},
		{mysql, errors.New("Error 1146 (42S02): Table 'shop.weir_leases' doesn't exist"), false},
		{mysql, errors.New("invalid connection"), false},
		{sqlite, errors.New("database is locked (5) (SQLITE_BUSY)"), true},
		{sqlite, errors.New("database or disk is full (13)"), false},
	} {
		if got := c.d.busy(c.err); got != c.busy {
			t.Errorf("%s: %v (%s) is tried again: %t", c.d.name, c.err, sqltable.SQLState(c.err), got)
		}
	}
}
