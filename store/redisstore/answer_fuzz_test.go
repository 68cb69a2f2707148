package redisstore

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// answered converts a script's answer to the types of the client: texts, integers, lists and nil.
func answered(v any) any {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case []any:
		for i := range v {
			v[i] = answered(v[i])
		}
		return v
	case string, nil:
		return v
	}
	return true // a type that Redis does not have
}

// FuzzAnswers reads whole answers of scripts, which may contain rows that other programs wrote. The
// result is valid and sorted, or an error that names its origin.
func FuzzAnswers(f *testing.F) {
	const session = `{"b":"1","e":"0","d":"1","t":"1s/5s/30s","x":"{\"weight\":2}"}`
	row := func(id string) []any {
		l, err := encodeLease(lease.Lease{Key: lease.Key{Stream: "s", Shard: id}, Epoch: 3, Owner: "b", Position: shard.Oldest, Load: 3})
		if err != nil {
			f.Fatal(err)
		}
		text, err := marshal(l)
		if err != nil {
			f.Fatal(err)
		}
		return []any{"s\x00" + id, text}
	}
	leases, workers := append(row("2"), row("1")...), []any{"b", session, "a", `{"b":"9","e":"1","d":"0","x":"{}"}`}
	for _, answer := range [][]any{
		{"5", 0, "b", "1", "2", []any{"y", "x"}, leases, workers}, append([]any{"b", "1", "2"}, leases...), workers,
		{"5", 1, "", "0", "0", []any{}, []any{}, []any{}}, {"5", 1, "", "0", "0", []any{}, leases[:3], []any{"a"}}, {"5", 1, "", "-1", "0", []any{5}, []any{nil}, []any{[]any{}}},
		{"over"}, {1, 0, 1, nil}, {}, {"r", 0, "a", "1", "2", []any{}, []any{}, []any{"a", 5, "b"}}, {"r", 0, "a", "1", "2", []any{}, []any{}, []any{"a", `{"b":"1"}`}},
	} {
		text, err := json.Marshal(answer)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		read := func(what string, do func(d *decoder) (leases []lease.Lease, workers []lease.Worker, err error)) {
			var list []any
			if json.Unmarshal(answer, &list) != nil {
				return
			}
			list, _ = answered(list).([]any)
			leases, workers, err := do(&decoder{values: list})
			if err != nil {
				if !strings.HasPrefix(err.Error(), "redisstore: ") {
					t.Errorf("%s: %v", what, err)
				}
				return
			}
			if !slices.IsSortedFunc(leases, func(a, b lease.Lease) int { return a.Key.Compare(b.Key) }) ||
				!slices.IsSortedFunc(workers, func(a, b lease.Worker) int { return strings.Compare(a.Session, b.Session) }) {
				t.Errorf("%s: %+v and %+v are out of order", what, leases, workers)
			}
			for _, l := range leases {
				if _, err := encodeLease(l); err != nil || l.Load > lease.MaxLoad {
					t.Errorf("%s: %+v: %v", what, l, err)
				}
			}
			for _, w := range workers {
				if !(w.Weight > 0) || w.MaxLeases < 0 || w.Times != (lease.Times{}) && w.Times.Failover < w.Times.Heartbeat {
					t.Errorf("%s: %+v", what, w)
				}
			}
		}
		read("a view", func(d *decoder) ([]lease.Lease, []lease.Worker, error) {
			d.text()
			d.number()
			d.leader()
			d.texts()
			ofLeases, ofWorkers := d.inner(), d.inner()
			leases, workers := ofLeases.leases(), ofWorkers.workers()
			for _, inner := range []*decoder{ofLeases, ofWorkers} {
				if inner.err == nil && len(inner.values) > 0 {
					t.Errorf("%v is left", inner.values)
				}
				if d.err == nil {
					d.err = inner.err
				}
			}
			return leases, workers, d.err
		})
		read("orders", func(d *decoder) ([]lease.Lease, []lease.Worker, error) {
			d.leader()
			return d.leases(), nil, d.err
		})
		read("workers", func(d *decoder) ([]lease.Lease, []lease.Worker, error) {
			before := len(d.values)
			workers := d.workers()
			if d.err == nil && 2*len(workers) != before {
				t.Errorf("%d workers of %d values", len(workers), before)
			}
			return nil, workers, d.err
		})
		read("numbers", func(d *decoder) ([]lease.Lease, []lease.Worker, error) {
			for len(d.values) > 0 {
				d.number()
			}
			return nil, nil, d.err
		})
	})
}
