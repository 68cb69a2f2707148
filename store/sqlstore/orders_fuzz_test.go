package sqlstore

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
)

// FuzzReadOrders reads rows of a heartbeat's answer that another program may have written. The
// result is valid orders, or an error that names the row.
func FuzzReadOrders(f *testing.F) {
	f.Add("me", int64(3), "me", int64(1), int64(2), int64(0), "s", "1", `["a"]`, "17+3", int64(4), uint8(0))
	f.Add("me", int64(3), "other", int64(1), int64(2), int64(1), "s", "1", `[]`, "oldest", int64(4), uint8(1))
	f.Add("me", int64(-3), "me", int64(-1), int64(-2), int64(2), "s", "1", `{`, "x", int64(-4), uint8(2))
	// The following row has an invalid value.
	f.Add("me", int64(-3), "me", int64(1), int64(2), int64(0), "s", "1", `[]`, "oldest", int64(4), uint8(0))
	f.Add("me", int64(3), "gone", int64(1), int64(2), int64(0), "s", "1", `[]`, "oldest", int64(4), uint8(4))
	f.Add("me", int64(0), "", int64(0), int64(0), int64(0), "", "", "", "", int64(0), uint8(3))
	f.Add("me", int64(5), "you", int64(7), int64(1), int64(0), "s", "2", "null", "", int64(1), uint8(4))
	f.Fuzz(func(t *testing.T, session string, mine int64, leader string, term, beat, ended int64, stream, id, parents, position string, epoch int64, form uint8) {
		values := []any{mine, leader, term, beat, ended, stream, id, parents, "0", "7", epoch, session, "", "", "", "", position, int64(0), int64(0)}
		switch form % 6 {
		case 1: // with the types of MySQL
			for i, v := range values {
				if text, ok := v.(string); ok {
					values[i] = []byte(text)
				}
			}
		case 2: // no application
			clear(values[1:5])
		case 3: // no lease
			clear(values[5:])
		case 4: // the leader has no row
			clear(values[3:5])
		case 5:
			values[int(uint64(epoch)%uint64(len(values)))] = nil
		}
		given := slices.Clone(values)
		var o lease.Orders
		err := readOrders(&o, session, values)
		_, bad := decodeLease(given[5:])
		led := given[1] == nil || term >= 0 && (given[3] == nil || beat >= 0 && (ended == 0 || ended == 1))
		if err != nil {
			if form%6 != 5 && led && mine >= 0 && (bad == nil || given[5] == nil) {
				t.Errorf("%v can be true: %v", given, err)
			}
			if !strings.HasPrefix(err.Error(), "sqlstore: the row of ") || len(err.Error()) > 2000+4*(len(parents)+len(position)) {
				t.Errorf("%v", err)
			}
			return
		}
		if given[1] == nil && o.Leader != (lease.Leader{}) || (given[5] != nil) != (len(o.Held) == 1) {
			t.Fatalf("%v is read as %+v", given, o)
		}
		if given[1] == nil || form%6 == 5 {
			return
		}
		want := lease.Leader{Epoch: uint64(term)}
		if given[3] != nil && ended == 0 {
			want.Session, want.Heartbeats = leader, uint64(beat)
			if leader == session {
				want.Heartbeats = uint64(mine)
			}
		}
		if o.Leader.Epoch != want.Epoch || o.Leader.Session != want.Session || want.Session != "" && o.Leader.Heartbeats != want.Heartbeats || term < 0 || mine < 0 && leader == session && ended == 0 && given[3] != nil {
			t.Fatalf("%v is read as %+v, want the leader %+v", given, o, want)
		}
	})
}

// FuzzApplicationRow reads an application's row, which may include the row of the leader's session.
func FuzzApplicationRow(f *testing.F) {
	f.Add("leader", int64(1), int64(2), "token", `["b","a","a"]`, int64(3), int64(0), uint8(0), `{"a":"1 x"}`)
	f.Add("leader", int64(1), int64(2), "token", `[]`, int64(3), int64(1), uint8(1), `{}`)
	f.Add("", int64(-1), int64(0), "", `{"a":1}`, int64(0), int64(0), uint8(2), ``)
	f.Add("", int64(0), int64(-1), "", `null`, int64(-5), int64(7), uint8(3), `null`)
	f.Add("x", int64(0), int64(0), "", `["a",5]`, int64(0), int64(0), uint8(4), `[]`)
	f.Fuzz(func(t *testing.T, leader string, term, revision int64, token, paused string, beat, ended int64, form uint8, notes string) {
		values := []any{leader, term, revision, token, paused, beat, ended, notes}
		switch form % 5 {
		case 1:
			values[0], values[3], values[4] = []byte(leader), []byte(token), []byte(paused)
		case 2:
			values[5], values[6] = nil, nil
		case 3:
			values[6] = ended > 0
		case 4:
			values[int(uint64(beat)%8)] = nil
		}
		a, err := readApplication("app", values)
		if err != nil {
			if !strings.HasPrefix(err.Error(), `sqlstore: the row of application "app"`) && !strings.HasPrefix(err.Error(), "sqlstore: the row of session ") {
				t.Errorf("%v", err)
			}
			if a.stored {
				t.Errorf("an error and a row: %+v", a)
			}
			return
		}
		if !a.stored || a.leader != leader || a.token != token || term < 0 || revision < 0 || a.term != uint64(term) || a.revision != uint64(revision) {
			t.Fatalf("%v is read as %+v", values, a)
		}
		if !slices.IsSorted(a.paused) || len(slices.Compact(slices.Clone(a.paused))) != len(a.paused) {
			t.Fatalf("%s is read as %q", paused, a.paused)
		}
		if form%5 == 2 && (a.leaderLives || a.leaderBeat != 0) || form%5 < 2 && (a.leaderLives != (ended == 0) || a.leaderBeat != uint64(beat)) {
			t.Fatalf("%v is read as %+v", values, a)
		}
	})
}
