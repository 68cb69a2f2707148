package dynamo_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/dynamostore"
)

// meter adds up what the requests of a client cost, as the server says.
type meter struct {
	mu  sync.Mutex
	sum cost
}

// cost is in capacity units.
type cost struct {
	writes, reads float64
	requests      int
}

func (m *meter) options(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("meter", m.handle), middleware.Before)
	})
}

func (m *meter) handle(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	out middleware.InitializeOutput, metadata middleware.Metadata, err error,
) {
	switch p := in.Parameters.(type) {
	case *dynamodb.GetItemInput:
		p.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	case *dynamodb.BatchGetItemInput:
		p.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	case *dynamodb.QueryInput:
		p.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	case *dynamodb.UpdateItemInput:
		p.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	case *dynamodb.PutItemInput:
		p.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	case *dynamodb.DeleteItemInput:
		p.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	}
	out, metadata, err = next.HandleInitialize(ctx, in)
	if err != nil {
		return out, metadata, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sum.requests++
	units := func(c *types.ConsumedCapacity) float64 {
		if c == nil {
			return 0
		}
		return aws.ToFloat64(c.CapacityUnits)
	}
	switch r := out.Result.(type) {
	case *dynamodb.GetItemOutput:
		m.sum.reads += units(r.ConsumedCapacity)
	case *dynamodb.BatchGetItemOutput:
		for _, c := range r.ConsumedCapacity {
			m.sum.reads += units(&c)
		}
	case *dynamodb.QueryOutput:
		m.sum.reads += units(r.ConsumedCapacity)
	case *dynamodb.UpdateItemOutput:
		m.sum.writes += units(r.ConsumedCapacity)
	case *dynamodb.PutItemOutput:
		m.sum.writes += units(r.ConsumedCapacity)
	case *dynamodb.DeleteItemOutput:
		m.sum.writes += units(r.ConsumedCapacity)
	}
	return out, metadata, nil
}

// of is what do costs.
func (m *meter) of(do func()) cost {
	m.mu.Lock()
	m.sum = cost{}
	m.mu.Unlock()
	do()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sum
}

// TestWhatItCosts prints capacity units among 1,000 leases of 20 workers, and holds the idle beat to its promise: one write
// and the two rows that say who leads, whatever the number of leases.
func TestWhatItCosts(t *testing.T) {
	const leases, workers = 1000, 20
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			s := kind.start(t)
			open(t, s, "costs")
			m := &meter{}
			store := dynamostore.New(s.DynamoDB(m.options), dynamostore.Options{Table: "costs"})
			ctx := t.Context()
			session := func(i int) string { return fmt.Sprintf("worker-with-a-usual-name-%02d.01J9ZQ5V8K7X3M2N4P6R8T0W", i) }
			report := func(i int, p ...lease.Progress) lease.Report {
				return lease.Report{Session: session(i), Name: fmt.Sprintf("worker-with-a-usual-name-%02d", i), Holds: 1 << 63, Progress: p}
			}
			beat := func(r lease.Report) lease.Orders {
				o, err := store.Beat(ctx, "billing", r)
				if err != nil {
					t.Fatal(err)
				}
				return o
			}
			apply := func(actions []lease.Action) {
				if done, err := store.Apply(ctx, "billing", actions); err != nil || !done[0] {
					t.Fatal(done, err)
				}
			}
			show := func(what string, c cost) {
				t.Logf("%-46s %7.1f write units %7.1f read units in %4d requests", what, c.writes, c.reads, c.requests)
			}

			var create, assign []lease.Action
			for i := range leases {
				k := lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", i)}
				p, err := shard.After(fmt.Sprintf("495903382714902564308300%032d", i))
				if err != nil {
					t.Fatal(err)
				}
				create = append(create, lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: k, Epoch: 1, Position: p, Range: shard.HashRange{End: shard.MaxHashKey}}})
				assign = append(assign, lease.Action{Kind: lease.Assign, Key: k, Epoch: 1, Session: session(i % workers)})
			}
			show("first beats of 20 workers", m.of(func() {
				for i := range workers {
					r := report(i)
					r.First = true
					beat(r)
				}
			}))
			show("create 1,000 leases", m.of(func() { apply(create) }))
			show("assign 1,000 leases to 20 workers", m.of(func() { apply(assign) }))
			if ok, err := store.Lead(ctx, "billing", session(0), 0); err != nil || !ok {
				t.Fatal(ok, err)
			}
			var o lease.Orders
			show("beat that reads 50 of 1,000 leases", m.of(func() { o = beat(report(1)) }))
			if len(o.Held) != leases/workers {
				t.Fatalf("held %d leases", len(o.Held))
			}
			beat(report(0))

			idle := m.of(func() { beat(report(1)) })
			show("idle beat of a worker with 50 leases", idle)
			if idle.writes != 1 || idle.reads > 2 || idle.requests > 2 {
				t.Errorf("an idle beat costs %v writes and %v reads in %d requests", idle.writes, idle.reads, idle.requests)
			}
			leader := m.of(func() { beat(report(0)) })
			show("idle beat of the leader", leader)
			if leader.writes != 1 || leader.reads > 1 {
				t.Errorf("an idle beat of the leader costs %v writes and %v reads", leader.writes, leader.reads)
			}
			moved, err := shard.After("495903382714902564308309" + fmt.Sprintf("%032d", 1))
			if err != nil {
				t.Fatal(err)
			}
			one := m.of(func() { beat(report(1, lease.Progress{Key: o.Held[0].Key, Epoch: o.Held[0].Epoch, Position: moved})) })
			show("beat with one checkpoint", one)
			if one.writes != 2 || one.reads > 2 {
				t.Errorf("a beat with one checkpoint costs %v writes and %v reads", one.writes, one.reads)
			}
			back := m.of(func() {
				beat(report(1, lease.Progress{Key: o.Held[0].Key, Epoch: o.Held[0].Epoch, Release: true}))
			})
			show("beat that releases one lease", back)
			if back.writes > 3 || back.reads > 4 {
				t.Errorf("a beat that releases one lease costs %v writes and %v reads", back.writes, back.reads)
			}
			fresh := func(n int) (a []lease.Action) {
				for i := range n {
					a = append(a, lease.Action{Kind: lease.Handoff, Key: o.Held[10+i].Key, Epoch: o.Held[10+i].Epoch, Session: session(2)})
				}
				return a
			}
			show("one lease wanted elsewhere", m.of(func() { apply(fresh(1)) }))
			heard := m.of(func() { o = beat(report(1)) })
			show("the next beat of its owner", heard)
			if heard.writes != 1 || heard.reads > 3 || o.Held[9].Heir != session(2) {
				t.Errorf("a beat that hears of one lease costs %v writes and %v reads; it is %v", heard.writes, heard.reads, o.Held[9])
			}
			apply(fresh(8))
			show("the next beat after eight are", m.of(func() { o = beat(report(1)) }))
			apply(fresh(9))
			all := m.of(func() { beat(report(1)) })
			show("the next beat after nine are", all)
			if all.reads < 100 {
				t.Errorf("a beat that hears of nine leases costs %v reads", all.reads)
			}
			worst := report(1)
			for i := range lease.MaxTroubles {
				worst.Troubles = append(worst.Troubles, lease.Trouble{Key: o.Held[i].Key, State: "stalled", Why: strings.Repeat("y", lease.MaxWhyBytes)})
			}
			trouble := m.of(func() { beat(worst) })
			show("beat with as many troubles as there may be", trouble)
			if trouble.writes > 4 {
				t.Errorf("a beat with troubles costs %v writes", trouble.writes)
			}
			beat(report(1)) // and takes them away
			if well := m.of(func() { beat(report(1)) }); well.writes != 1 {
				t.Errorf("an idle beat after troubles costs %v writes", well.writes)
			}

			var v lease.View
			view := func() {
				if v, err = store.View(ctx, "billing", v.Revision); err != nil {
					t.Fatal(err)
				}
			}
			show("view in full", m.of(view))
			same := m.of(view)
			show("view when nothing changed", same)
			if !v.Same || same.writes != 0 || same.requests != 1 {
				t.Errorf("a view when nothing changed costs %v reads in %d requests, same=%t", same.reads, same.requests, v.Same)
			}
			perHour := idle.writes * 3600 * workers
			t.Logf("idle, 1,000 leases, 20 workers, a beat each second: %.0f writes per hour", perHour)
		})
	}
}
