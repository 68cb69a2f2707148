package sqlstore

import (
	"database/sql"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func position(t testing.TB, s string) shard.Position {
	t.Helper()
	p, err := shard.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLeasesAreReadAsTheyWereWritten(t *testing.T) {
	k := lease.Key{Stream: "s", Shard: "shardId-000000000001"}
	for name, l := range map[string]lease.Lease{
		"the least": {Key: k},
		"all of it": {Key: k, Parents: []string{"a", `b"'\`}, Range: shard.HashRange{Start: shard.HashKey{Lo: 7}, End: shard.MaxHashKey}, Epoch: math.MaxInt64,
			Owner: "o", Heir: "h", Revoked: "r", Last: "l", Shunned: "x", Position: position(t, strings.Repeat("9", 129)+"+12"), Load: lease.MaxLoad, Born: math.MaxInt64,
			Deaths: "1/0/0/0/7/", Rate: 7, Numbers: "1:7:abc"},
		"a time": {Key: k, Position: shard.At(time.UnixMilli(-1))},
		"an end": {Key: k, Position: shard.End},
	} {
		t.Run(name, func(t *testing.T) {
			row, err := encodeLease(l)
			if err != nil {
				t.Fatal(err)
			}
			if len(row) != leaseCount {
				t.Fatalf("%d values for %d columns", len(row), leaseCount)
			}
			for _, raw := range []bool{false, true} { // some drivers return texts as bytes
				for i, v := range row {
					if s, ok := v.(string); ok && raw {
						row[i] = []byte(s)
					}
				}
				back, err := decodeLease(row)
				if err != nil || !reflect.DeepEqual(back, l) {
					t.Errorf("decodeLease(%q) = %+v, %v", row, back, err)
				}
			}
		})
	}
}

func TestSessionsAreReadInAllForms(t *testing.T) {
	want := lease.Worker{Session: "a", Name: "alpha", Streams: "1:orders", Heartbeats: 3, Ended: true, Weight: 2, MaxLeases: 5, Holds: math.MaxUint64, Drain: true, Times: lease.Times{Heartbeat: time.Second, Failover: time.Minute, Handoff: 90 * time.Second},
		Troubles: []lease.Trouble{{Key: lease.Key{Stream: "s", Shard: "1"}, State: "stalled", For: time.Second, Why: "w"}}}
	const troubles = `[{"Stream":"s","Shard":"1","State":"stalled","For":1000000000,"Why":"w"}]`
	for _, row := range [][]any{
		{"a", "alpha", int64(3), int64(1), int64(0), 2.0, int64(5), int64(-1), int64(1), troubles, "1s/1m0s/1m30s", "1:orders"},
		{[]byte("a"), []byte("alpha"), []byte("3"), true, false, []byte("2"), []byte("5"), []byte("-1"), true, []byte(troubles), []byte("1s/1m0s/1m30s"), []byte("1:orders")},
		{"a", "alpha", int64(3), []byte("1"), []byte("0"), int64(2), int64(5), int64(-1), []byte("1"), troubles, "1s/1m0s/1m30s", "1:orders"},
	} {
		got, err := decodeSession(row)
		if err != nil || !reflect.DeepEqual(got, want) || len(row) != sessionCount {
			t.Errorf("decodeSession(%v) = %+v, %v", row, got, err)
		}
	}
}

func TestShortRowsAreErrors(t *testing.T) {
	for n := range leaseCount {
		if l, err := decodeLease(make([]any, n)); err == nil {
			t.Errorf("%d values = %+v", n, l)
		}
	}
	for n := range sessionCount {
		if w, err := decodeSession(make([]any, n)); err == nil {
			t.Errorf("%d values = %+v", n, w)
		}
	}
}

func FuzzDecodeLease(f *testing.F) {
	f.Add("s", "1", `["a","b"]`, "0", "340282366920938463463374607431768211455", int64(3), "o", "h", "r", "l", "x", "17+3", int64(7), int64(1767323045006), "1/0/0/0/7/", int64(99), "1:7:abc")
	f.Add("", "", "", "", "", int64(-1), "", "", "", "", "", "oldest", int64(-1), int64(-1), "", int64(0), "")
	f.Fuzz(func(t *testing.T, stream, id, parents, start, end string, epoch int64, owner, heir, revoked, last, shunned, position string, load, born int64, deaths string, rate int64, numbers string) {
		l, err := decodeLease([]any{stream, id, parents, start, end, epoch, owner, heir, revoked, last, shunned, position, load, born, deaths, rate, numbers})
		if err != nil {
			if l.Key != (lease.Key{}) {
				t.Errorf("an error and a lease: %v", l)
			}
			return
		}
		row, err := encodeLease(l)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if back, err := decodeLease(row); err != nil || !reflect.DeepEqual(back, l) {
			t.Fatalf("%+v became %+v, %v", l, back, err)
		}
	})
}

func TestWhichTablesSuit(t *testing.T) {
	for _, c := range []struct {
		name          string
		tables, known int64
		want          bool
	}{
		{"the same version", 2, 2, true},
		{"a newer one that only adds", 3, 2, true},
		{"the newest one that only adds", 99, 2, true},
		{"one that other programs cannot share", 100, 2, false},
		{"an older one lacks columns", 1, 2, false},
		{"no tables", 0, 1, false},
		{"a later generation has its own", 102, 101, true},
	} {
		if got := suits(c.tables, c.known); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestSchemaSince(t *testing.T) {
	for d, want := range map[Dialect]string{
		SQLite: "ALTER TABLE a_sessions ADD COLUMN times TEXT NOT NULL DEFAULT '';\nALTER TABLE a_leases ADD COLUMN deaths TEXT NOT NULL DEFAULT '';\n" +
			"CREATE TABLE a_history (\n  app TEXT NOT NULL,\n  since INTEGER NOT NULL,    -- a minute\n  session TEXT NOT NULL,\n  data BLOB NOT NULL,\n  PRIMARY KEY (app, since, session)\n) WITHOUT ROWID;\nALTER TABLE a_sessions ADD COLUMN streams TEXT NOT NULL DEFAULT '';\nALTER TABLE a_leases ADD COLUMN rate INTEGER NOT NULL DEFAULT 0;\nALTER TABLE a_applications ADD COLUMN pause_notes TEXT;\nALTER TABLE a_leases ADD COLUMN numbers TEXT NOT NULL DEFAULT '';\nUPDATE a_schema SET version = 7;\n",
		Postgres: "ALTER TABLE \"b\".a_sessions ADD COLUMN IF NOT EXISTS times TEXT NOT NULL DEFAULT '';\nALTER TABLE \"b\".a_leases ADD COLUMN IF NOT EXISTS deaths TEXT NOT NULL DEFAULT '';\n" +
			"CREATE TABLE IF NOT EXISTS \"b\".a_history (\n  app TEXT COLLATE \"C\" NOT NULL,\n  since BIGINT NOT NULL,            -- a minute\n  session TEXT COLLATE \"C\" NOT NULL,\n  data BYTEA NOT NULL,\n  PRIMARY KEY (app, since, session)\n);\nALTER TABLE \"b\".a_sessions ADD COLUMN IF NOT EXISTS streams TEXT NOT NULL DEFAULT '';\nALTER TABLE \"b\".a_leases ADD COLUMN IF NOT EXISTS rate BIGINT NOT NULL DEFAULT 0;\nALTER TABLE \"b\".a_applications ADD COLUMN IF NOT EXISTS pause_notes TEXT;\nALTER TABLE \"b\".a_leases ADD COLUMN IF NOT EXISTS numbers TEXT NOT NULL DEFAULT '';\nUPDATE \"b\".a_schema SET version = 7;\n",
		MySQL: "ALTER TABLE `b`.a_sessions ADD COLUMN times VARBINARY(60) NOT NULL DEFAULT '';\nALTER TABLE `b`.a_leases ADD COLUMN deaths VARBINARY(400) NOT NULL DEFAULT '';\n" +
			"CREATE TABLE IF NOT EXISTS `b`.a_history (\n  app VARBINARY(255) NOT NULL,\n  since BIGINT NOT NULL,          -- a minute\n  session VARBINARY(100) NOT NULL,\n  data BLOB NOT NULL,\n  PRIMARY KEY (app, since, session)\n) ENGINE = InnoDB;\nALTER TABLE `b`.a_sessions ADD COLUMN streams VARBINARY(16384) NOT NULL DEFAULT '';\nALTER TABLE `b`.a_leases ADD COLUMN rate BIGINT NOT NULL DEFAULT 0;\nALTER TABLE `b`.a_applications ADD COLUMN pause_notes MEDIUMBLOB;\nALTER TABLE `b`.a_leases ADD COLUMN numbers VARBINARY(2000) NOT NULL DEFAULT '';\nUPDATE `b`.a_schema SET version = 7;\n",
	} {
		o := Options{Dialect: d, Prefix: "a_"}
		if d != SQLite {
			o.Schema = "b"
		}
		s, err := New(new(sql.DB), o)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.SchemaSince(1); got != want || err != nil {
			t.Errorf("%v: %q, %v", d, got, err)
		}
		for _, version := range []int{-1, 0, 7, 8} {
			if got, err := s.SchemaSince(version); got != "" || err == nil {
				t.Errorf("%v: since %d: %q, %v", d, version, got, err)
			}
		}
	}
}
