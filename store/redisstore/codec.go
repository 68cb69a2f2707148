package redisstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Any program may have written the stored state. An invalid value causes an error that names it.

// storedLease is a lease in the form that the scripts use. All values are strings, because Lua's
// numbers are not exact.
type storedLease struct {
	Fixed    string `json:"f"` // a fixedLease, as JSON
	Epoch    string `json:"e"`
	Owner    string `json:"o"`
	Heir     string `json:"h"`
	Revoked  string `json:"r"`
	Last     string `json:"l"`
	Shunned  string `json:"u"`
	Position string `json:"p"`
	SortKey  string `json:"k"`
	Load     string `json:"w"`
	Born     string `json:"b"`
	Deaths   string `json:"d"` // absent in leases that older versions wrote
	Rate     string `json:"n"` // absent in leases that older versions wrote
	Numbers  string `json:"q"` // absent if there are none
}

// fixedLease contains the fields of a lease that only a Replace changes.
type fixedLease struct {
	Parents []string `json:"parents,omitempty"`
	Start   string   `json:"start"`
	End     string   `json:"end"`
}

// storedSession is a session's row.
type storedSession struct {
	Beat  string `json:"b"`
	Ended string `json:"e"`
	Drain string `json:"d"`
	Times string `json:"t"` // in the form of lease.Times; absent if not reported
	// Streams is in the form of lease.Streams. It is absent if not reported. Workers of the
	// previous version keep it when they change the row of another session.
	Streams string `json:"s"`
	Rest    string `json:"x"` // a reportedRow, as JSON
}

// reportedRow contains the fields of a session that its worker reported.
type reportedRow struct {
	Name      string          `json:"name,omitempty"`
	Leaving   bool            `json:"leaving,omitempty"`
	Weight    float64         `json:"weight,omitempty"`
	MaxLeases int             `json:"max,omitempty"`
	Holds     uint64          `json:"holds,omitempty"`
	Troubles  []storedTrouble `json:"troubles,omitempty"`
}

type storedTrouble struct {
	Stream string `json:"stream"`
	Shard  string `json:"shard"`
	State  string `json:"state,omitempty"`
	For    int64  `json:"ms,omitempty"`
	Why    string `json:"why,omitempty"`

	Failing lease.Failing `json:"failing,omitzero"`
}

type storedProgress struct {
	Stream   string        `json:"s"`
	Shard    string        `json:"h"`
	Epoch    string        `json:"e"`
	Position string        `json:"p"`
	SortKey  string        `json:"k"`
	Release  string        `json:"r"`
	Stalled  string        `json:"t"`
	Load     string        `json:"w"`
	Rate     string        `json:"n"`
	Deaths   string        `json:"d"`
	Numbers  string        `json:"q"`
	Children []storedChild `json:"c"`
}

type storedChild struct {
	Shard    string `json:"h"`
	Fixed    string `json:"f"`
	Position string `json:"p"`
	SortKey  string `json:"k"`
}

type storedAction struct {
	Kind     string       `json:"k"`
	Stream   string       `json:"s"`
	Shard    string       `json:"h"`
	Epoch    string       `json:"e"`
	Session  string       `json:"n"`
	Beat     string       `json:"b"` // for Pause: the maximum number of paused streams
	Lease    *storedLease `json:"v,omitempty"`
	Position string       `json:"p"`
	SortKey  string       `json:"o"`
	Born     string       `json:"w"`
	On       string       `json:"y"`
	Deaths   string       `json:"d"`
	Note     string       `json:"m"`
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func count(n uint64) string { return strconv.FormatUint(n, 10) }

func marshal(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("redisstore: %w", err)
	}
	return string(b), nil
}

func encodeReport(r lease.Report) (row, progress string, err error) {
	w := reportedRow{Name: r.Name, Leaving: r.Leaving, Weight: r.Weight, MaxLeases: r.MaxLeases, Holds: r.Holds}
	for _, t := range r.Troubles {
		w.Troubles = append(w.Troubles, storedTrouble{t.Stream, t.Shard, t.State, t.For.Milliseconds(), t.Why, t.Failing})
	}
	list := make([]storedProgress, len(r.Progress))
	for i, p := range r.Progress {
		list[i] = storedProgress{Stream: p.Stream, Shard: p.Shard, Epoch: count(p.Epoch), Position: p.Position.String(), SortKey: p.Position.SortKey(),
			Release: flag(p.Release), Stalled: flag(p.Stalled), Load: count(uint64(p.Load)), Rate: count(p.Rate), Deaths: p.Deaths, Numbers: p.Numbers, Children: []storedChild{}}
		for _, c := range p.Children {
			fixed, err := encodeFixed(c.Parents, c.Range)
			if err != nil {
				return "", "", err
			}
			list[i].Children = append(list[i].Children, storedChild{c.ID, fixed, shard.Oldest.String(), shard.Oldest.SortKey()})
		}
	}
	if row, err = marshal(w); err != nil {
		return "", "", err
	}
	progress, err = marshal(list)
	return row, progress, err
}

func encodeFixed(parents []string, r shard.HashRange) (string, error) {
	return marshal(fixedLease{parents, r.Start.String(), r.End.String()})
}

func encodeLease(l lease.Lease) (*storedLease, error) {
	fixed, err := encodeFixed(l.Parents, l.Range)
	if err != nil {
		return nil, err
	}
	return &storedLease{Fixed: fixed, Epoch: count(l.Epoch), Owner: l.Owner, Heir: l.Heir, Revoked: l.Revoked, Last: l.Last, Shunned: l.Shunned,
		Position: l.Position.String(), SortKey: l.Position.SortKey(), Load: count(uint64(l.Load)), Born: strconv.FormatInt(l.Born, 10), Deaths: l.Deaths,
		Rate: count(l.Rate), Numbers: l.Numbers}, nil
}

// kinds contains the names of the kinds of actions in the scripts.
var kinds = map[lease.Kind]string{lease.Create: "create", lease.Assign: "assign", lease.Handoff: "handoff", lease.Revoke: "revoke",
	lease.Delete: "delete", lease.EndSession: "end_session", lease.Forget: "forget", lease.Tell: "tell", lease.Move: "move",
	lease.Drain: "drain", lease.Pause: "pause", lease.Replace: "replace", lease.Birth: "birth"}

func encodeActions(actions []lease.Action) (string, error) {
	list := make([]storedAction, len(actions))
	for i, a := range actions {
		kind, ok := kinds[a.Kind]
		if !ok {
			return "", fmt.Errorf("redisstore: %s: unknown kind of action", a)
		}
		s := storedAction{Kind: kind, Stream: a.Key.Stream, Shard: a.Key.Shard, Epoch: count(a.Epoch), Session: a.Session, Beat: count(a.Heartbeats),
			Position: a.Position.String(), SortKey: a.Position.SortKey(), Born: strconv.FormatInt(a.Born, 10), On: flag(a.On), Deaths: a.Deaths}
		switch a.Kind {
		case lease.Create:
			l, err := encodeLease(a.Lease)
			if err != nil {
				return "", err
			}
			s.Stream, s.Shard, s.Lease = a.Lease.Stream, a.Lease.Shard, l
		case lease.Replace:
			l, err := encodeLease(a.Lease)
			if err != nil {
				return "", err
			}
			s.Lease = l
		case lease.Pause:
			s.Stream, s.Beat, s.Note = a.Stream, strconv.Itoa(lease.MaxPaused), a.Note
		}
		list[i] = s
	}
	return marshal(list)
}

// decodeLease reads a field of the hash of leases, and its value.
func decodeLease(field, value string) (lease.Lease, error) {
	var l lease.Lease
	var ok bool
	l.Stream, l.Shard, ok = strings.Cut(field, "\x00")
	if !ok {
		return lease.Lease{}, fmt.Errorf("redisstore: the name of lease %.300q is invalid", field)
	}
	var s storedLease
	var f fixedLease
	err := json.Unmarshal([]byte(value), &s)
	if err == nil {
		err = json.Unmarshal([]byte(s.Fixed), &f)
	}
	if err == nil {
		l.Range, err = shard.ParseHashRange(f.Start, f.End)
	}
	if err == nil {
		l.Position, err = shard.Parse(s.Position)
	}
	if err == nil && s.SortKey != l.Position.SortKey() {
		err = fmt.Errorf("the sort key %.60q is not that of position %.60q", s.SortKey, s.Position)
	}
	if err == nil {
		l.Epoch, err = strconv.ParseUint(s.Epoch, 10, 63)
	}
	var load uint64
	if err == nil {
		load, err = strconv.ParseUint(s.Load, 10, 8)
	}
	if err == nil && lease.Load(load) > lease.MaxLoad {
		err = fmt.Errorf("load class %d is above %d", load, lease.MaxLoad)
	}
	if err == nil && s.Rate != "" {
		l.Rate, err = strconv.ParseUint(s.Rate, 10, 63)
	}
	if err == nil {
		l.Born, err = strconv.ParseInt(s.Born, 10, 64)
	}
	if err != nil {
		return lease.Lease{}, fmt.Errorf("redisstore: lease %.300q is invalid: %w", l.Key, err)
	}
	if len(f.Parents) > 0 {
		l.Parents = f.Parents
	}
	l.Owner, l.Heir, l.Revoked, l.Last, l.Shunned, l.Deaths, l.Numbers, l.Load = s.Owner, s.Heir, s.Revoked, s.Last, s.Shunned, s.Deaths, s.Numbers, lease.Load(load)
	return l, nil
}

// decodeSession reads one session's row.
func decodeSession(session, value string) (lease.Worker, error) {
	var s storedSession
	var r reportedRow
	err := json.Unmarshal([]byte(value), &s)
	if err == nil {
		err = json.Unmarshal([]byte(s.Rest), &r)
	}
	var beats uint64
	if err == nil {
		beats, err = strconv.ParseUint(s.Beat, 10, 63)
	}
	if err == nil && (s.Ended != "0" && s.Ended != "1" || s.Drain != "0" && s.Drain != "1") {
		err = fmt.Errorf("ended %.20q and drain %.20q are not 0 or 1", s.Ended, s.Drain)
	}
	if err == nil && (r.Weight < 0 || r.MaxLeases < 0) {
		err = fmt.Errorf("weight %v and max_leases %d are below zero", r.Weight, r.MaxLeases)
	}
	var times lease.Times
	if err == nil {
		times, err = lease.ParseTimes(s.Times)
	}
	if err != nil {
		return lease.Worker{}, fmt.Errorf("redisstore: session %.300q is invalid: %w", session, err)
	}
	w := lease.Worker{Session: session, Times: times, Streams: lease.Streams(s.Streams), Name: r.Name, Heartbeats: beats, Ended: s.Ended == "1", Drain: s.Drain == "1", Leaving: r.Leaving, Weight: r.Weight,
		MaxLeases: r.MaxLeases, Holds: r.Holds}
	if w.Weight == 0 {
		w.Weight = 1
	}
	for _, t := range r.Troubles {
		w.Troubles = append(w.Troubles, lease.Trouble{Key: lease.Key{Stream: t.Stream, Shard: t.Shard}, State: t.State,
			For: time.Duration(t.For) * time.Millisecond, Why: t.Why, Failing: t.Failing})
	}
	return w, nil
}

// decoder reads the values of a script's answer from left to right and keeps the first error.
type decoder struct {
	values []any
	err    error
}

func (d *decoder) next() any {
	if len(d.values) == 0 {
		if d.err == nil {
			d.err = errors.New("redisstore: the script's answer is too short")
		}
		return nil
	}
	v := d.values[0]
	d.values = d.values[1:]
	return v
}

func (d *decoder) text() string {
	v := d.next()
	s, ok := v.(string)
	if !ok && d.err == nil {
		d.err = fmt.Errorf("redisstore: the script's answer has a %T instead of a text", v)
	}
	return s
}

func (d *decoder) number() int64 {
	v := d.next()
	n, ok := v.(int64)
	if !ok && d.err == nil {
		d.err = fmt.Errorf("redisstore: the script's answer has a %T instead of a number", v)
	}
	return n
}

func (d *decoder) inner() *decoder {
	v := d.next()
	list, ok := v.([]any)
	if !ok && d.err == nil {
		d.err = fmt.Errorf("redisstore: the script's answer has a %T instead of a list", v)
	}
	return &decoder{values: list}
}

func (d *decoder) texts() []string {
	list := d.inner()
	var texts []string
	for len(list.values) > 0 {
		texts = append(texts, list.text())
	}
	d.err = errors.Join(d.err, list.err)
	return texts
}

func (d *decoder) leader() lease.Leader {
	l := lease.Leader{Session: d.text()}
	for _, n := range []*uint64{&l.Epoch, &l.Heartbeats} {
		s := d.text()
		var err error
		if *n, err = strconv.ParseUint(s, 10, 63); err != nil && d.err == nil {
			d.err = fmt.Errorf("redisstore: the row of the application is invalid: %w", err)
		}
	}
	return l
}

// leases reads the remaining values as leases.
func (d *decoder) leases() []lease.Lease {
	var some []lease.Lease
	for len(d.values) > 0 && d.err == nil {
		field, value := d.text(), d.text()
		if d.err != nil {
			break
		}
		l, err := decodeLease(field, value)
		some, d.err = append(some, l), err
	}
	slices.SortFunc(some, func(a, b lease.Lease) int { return a.Key.Compare(b.Key) })
	return some
}

// beats reads the remaining values as sessions and their heartbeat counts. It omits an invalid
// count, because the leader reports it.
func (d *decoder) beats() []lease.SessionHeartbeat {
	some := make([]lease.SessionHeartbeat, 0, len(d.values)/2)
	for len(d.values) > 0 && d.err == nil {
		session, value := d.text(), d.text()
		if beat, err := strconv.ParseUint(value, 10, 63); err == nil && d.err == nil {
			some = append(some, lease.SessionHeartbeat{Session: session, Heartbeats: beat})
		}
	}
	slices.SortFunc(some, func(a, b lease.SessionHeartbeat) int { return strings.Compare(a.Session, b.Session) })
	return some
}

// workers reads the remaining values as sessions.
func (d *decoder) workers() []lease.Worker {
	var some []lease.Worker
	for len(d.values) > 0 && d.err == nil {
		session, value := d.text(), d.text()
		if d.err != nil {
			break
		}
		w, err := decodeSession(session, value)
		some, d.err = append(some, w), err
	}
	slices.SortFunc(some, func(a, b lease.Worker) int { return strings.Compare(a.Session, b.Session) })
	return some
}
