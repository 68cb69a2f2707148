package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"github.com/weir-go/weir/lease"
)

// Many workers call a server over a network. By default, every worker sends a heartbeat each
// second. That heartbeat must not be a transaction of many round trips, and must only lock the rows
// that it changes. An ordinary heartbeat, as the package comment defines it, therefore uses a
// faster method.

// heldColumns are the leaseColumns of the table l, for a join.
var heldColumns = "l." + strings.ReplaceAll(leaseColumns, ", ", ", l.")

// othersColumns are the columns of a row of orders for another session. They contain its heartbeat
// count and its name, and NULL for the term. If that session is the leader, the column of the
// lease's stream contains the streams that the leader reads.
var othersColumns = "o.beat, o.session, NULL, NULL, NULL, " + streamsOfLeader + strings.Repeat(", NULL", ordersCount-6)

// ordersCount is the number of columns in a row of orders. The columns are the session's heartbeat
// count, the application's leader and term, the leader's heartbeat count, whether the leader has
// ended, and a lease. The values of an absent application, leader or lease are nil.
var ordersCount = 5 + leaseCount

// step is the progress of a session on one lease.
type step struct {
	Stream   string `json:"stream"`
	Shard    string `json:"shard"`
	Epoch    int64  `json:"epoch"`
	Position string `json:"position"`
	Place    string `json:"place"` // "" leaves the position unchanged
	Load     int64  `json:"load"`  // 0 leaves the load and the rate unchanged
	Rate     int64  `json:"rate"`
}

// quickBeat is a heartbeat whose progress consists only of steps.
type quickBeat struct {
	report   lease.Report
	troubles string
	steps    []step
	orders   func([]any) error // reads a row of orders; there is none if the session is over
	held     *[]lease.Lease    // the leases in the orders that were read so far
}

// effective returns the number of steps that change held leases according to the orders.
func (q quickBeat) effective() int {
	held := make(map[lease.Key]*lease.Lease, len(*q.held))
	for i := range *q.held {
		held[(*q.held)[i].Key] = &(*q.held)[i]
	}
	n := 0
	for _, s := range q.steps {
		l := held[lease.Key{Stream: s.Stream, Shard: s.Shard}]
		if l != nil && int64(l.Epoch) == s.Epoch && (l.Position.SortKey() < s.Place || s.Load > 0 && (s.Load != int64(l.Load) || s.Rate != int64(l.Rate))) {
			n++
		}
	}
	return n
}

func (q quickBeat) json() (string, error) {
	text, err := json.Marshal(q.steps)
	return string(text), err
}

// steps converts the progress of a report. quick is false if the progress contains anything other
// than positions and loads, or contains a lease twice.
func steps(progress []lease.Progress) (all []step, quick bool) {
	seen := make(map[lease.Key]bool, len(progress))
	for _, p := range progress {
		if p.Release || p.Position.IsEnd() || p.Deaths != "" || p.Numbers != "" || seen[p.Key] {
			return nil, false
		}
		seen[p.Key] = true
		s := step{Stream: p.Stream, Shard: p.Shard, Epoch: int64(p.Epoch), Load: int64(p.Load), Rate: int64(p.Rate)}
		if !p.Position.IsZero() {
			position, err := encodePosition(p.Position)
			if err != nil {
				return nil, false // the normal method returns the error
			}
			s.Position, s.Place = position, p.Position.SortKey()
		}
		if s.Place != "" || s.Load != 0 {
			all = append(all, s)
		}
	}
	return all, true
}

// beatQuickly executes an ordinary heartbeat. quick is false if the heartbeat is not ordinary, or
// if the version of the tables must be checked first.
func (s *Store) beatQuickly(ctx context.Context, app string, r lease.Report) (o lease.Orders, quick bool, err error) {
	if s.dialect.quickBeat == nil || r.First || r.Resigns != 0 || !s.isChecked() {
		return lease.Orders{}, false, nil
	}
	q := quickBeat{report: r}
	if q.steps, quick = steps(r.Progress); !quick {
		return lease.Orders{}, false, nil
	}
	if err := lease.CheckApp(app); err != nil {
		return lease.Orders{}, true, err
	}
	if q.troubles, err = encodeTroubles(r.Troubles); err != nil {
		return lease.Orders{}, true, err
	}
	err = s.insist(ctx, func(ctx context.Context) error {
		return s.onConn(ctx, func(c *sql.Conn) error {
			t := &tx{Store: s, ctx: ctx, conn: c, app: app}
			over, streams := true, lease.Streams("")
			o = lease.Orders{}
			if r.Others {
				o.Others = []lease.SessionHeartbeat{}
			}
			q.held = &o.Held
			q.orders = func(values []any) error {
				if values[1] != nil && values[2] == nil {
					o.Others = appendBeat(o.Others, values[:2])
					if d := (decoder{row: values[5:]}); values[5] != nil {
						streams = lease.Streams(d.text("streams"))
					}
					return nil
				}
				over = false
				return readOrders(&o, r.Session, values)
			}
			if err := s.dialect.quickBeat(t, q); err != nil {
				return err
			}
			if over {
				return lease.ErrSessionOver
			}
			switch {
			case !r.Others || o.Leader.Session == "":
			case o.Leader.Session == r.Session:
				o.Leader.Streams = r.Streams
			default:
				o.Leader.Streams = streams
			}
			return nil
		})
	})
	if err != nil {
		return lease.Orders{}, true, err
	}
	sortLeases(o.Held)
	slices.SortFunc(o.Others, func(a, b lease.SessionHeartbeat) int { return strings.Compare(a.Session, b.Session) })
	return o, true, nil
}

// readOrders adds one row to orders.
func readOrders(o *lease.Orders, session string, values []any) error {
	mine := decoder{row: values[:1]}
	if values[1] != nil { // the application exists
		d := decoder{row: values[1:5]}
		leader, term := d.text("leader"), d.count("term")
		o.Leader = lease.Leader{Epoch: term}
		if values[3] != nil { // the leader has a row
			beat, ended := d.count("beat"), d.flag("ended")
			if leader == session {
				beat = mine.count("beat") // this row may contain the previous count
			}
			if !ended {
				o.Leader = lease.Leader{Session: leader, Epoch: term, Heartbeats: beat}
			}
		}
		if d.err != nil {
			return badRow("application or session", leader, d.err)
		}
	}
	if mine.err != nil {
		return badRow("session", session, mine.err)
	}
	if values[5] == nil {
		return nil
	}
	l, err := decodeLease(values[5:])
	o.Held = append(o.Held, l)
	return err
}
