package redisstore

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
)

// answered is a script's answer as the client gives it: texts, integers, lists and nil.
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
	return true // no type that Redis has
}

// FuzzAnswers takes whole answers of scripts apart, which rows that somebody else wrote are part of: what is read is in order and can be true, or
// there is an error, which says whose it is.
func FuzzAnswers(f *testing.F) {
	const (
		fixed   = `"s\u00001","{\"f\":\"{\\\"start\\\":\\\"0\\\",\\\"end\\\":\\\"7\\\"}\",\"e\":\"3\",\"o\":\"a\",\"p\":\"oldest\",\"k\":\"1\",\"w\":\"3\",\"b\":\"0\"}"`
		session = `"b","{\"b\":\"1\",\"e\":\"0\",\"d\":\"1\",\"t\":\"1s/5s/30s\",\"x\":\"{\\\"weight\\\":2}\"}"`
	)
	for _, s := range []string{
		`["5",0,"a","1","2",["x","y"],[` + fixed + `],[` + session + `,"a","{\"b\":\"9\",\"e\":\"1\",\"d\":\"0\",\"x\":\"{}\"}"]]`, `["5",1,"","0","0",[],[],[]]`, `["5",1,"","0","0",[],["s\u00001"],["a"]]`,
		`["5",1,"","-1","0",[5],[null],[[]]]`, `["a","1","2",` + fixed + `]`, `["over"]`, `[1,0,1,null]`, `[]`, `["r",0,"a","1","2",[],[],["a",5,"b"]]`, `["r",0,"a","1","2",[],[],["a","{\"b\":\"1\"}"]]`,
	} {
		f.Add([]byte(s))
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
				if !(w.Weight > 0) || w.MaxLeases < 0 || w.Times != (lease.Times{}) && w.Times.Failover < w.Times.Beat {
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
