package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/dynamostore"
)

// mortal forwards requests until a write of a lease has been answered. Then it fails all requests,
// as if the process had died at that moment.
type mortal struct {
	to   aws.HTTPClient
	dead atomic.Bool
	calm atomic.Bool // do not die at a write
}

func (m *mortal) Do(r *http.Request) (*http.Response, error) {
	if m.dead.Load() {
		return nil, errors.New("connection reset by the death of the process")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := m.to.Do(r)
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if operation == "UpdateItem" && bytes.Contains(body, []byte(`"lease/`)) && !m.calm.Load() {
		m.dead.Store(true)
	}
	return resp, err
}

// dying returns a store on s whose process dies after it has changed a lease and before it
// announces the change.
func dying(s *servers.Server, table string) (*dynamostore.Store, *mortal) {
	m := &mortal{to: s.Config().HTTPClient}
	return dynamostore.New(s.DynamoDB(func(o *dynamodb.Options) { o.HTTPClient = m }), dynamostore.Options{Table: table}), m
}

// TestAProcessThatDiesBeforeItAnnouncesAChange kills a leader and a worker between the write of a
// lease and the announcement.
func TestAProcessThatDiesBeforeItAnnouncesAChange(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			s := kind.start(t)
			ctx := t.Context()
			short := func() context.Context {
				ctx, cancel := context.WithTimeout(ctx, 700*time.Millisecond)
				t.Cleanup(cancel)
				return ctx
			}
			worker, leader := open(t, s, "crash"), open(t, s, "crash")
			k := lease.Key{Stream: "orders", Shard: "1"}
			beat := func(session string, first bool) lease.Orders {
				t.Helper()
				o, err := worker.Heartbeat(ctx, "app", lease.Report{Session: session, First: first})
				if err != nil {
					t.Fatal(err)
				}
				return o
			}
			apply := func(actions ...lease.Action) {
				t.Helper()
				if _, err := leader.Apply(ctx, "app", actions); err != nil {
					t.Fatal(err)
				}
			}
			beat("a", true)
			beat("b", true)
			apply(lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: k, Epoch: 1, Position: shard.Oldest}},
				lease.Action{Kind: lease.Assign, Key: k, Epoch: 1, Session: "a"})
			if o := beat("a", false); len(o.Held) != 1 {
				t.Fatalf("a holds %v", o.Held)
			}

			// A leader dies after it has revoked the lease. The next leader sees the revocation,
			// notifies the session, and waits only from then on.
			first, _ := dying(s, "crash")
			revoke := lease.Action{Kind: lease.Revoke, Key: k, Epoch: 2}
			if _, err := first.Apply(short(), "app", []lease.Action{revoke}); err == nil {
				t.Fatal("the leader did not die")
			}
			v, err := open(t, s, "crash").View(ctx, "app", "")
			if err != nil || len(v.Leases) != 1 || v.Leases[0].Revoked != "a" {
				t.Fatalf("the next leader sees %v, %v", v.Leases, err)
			}
			apply(lease.Action{Kind: lease.Tell, Session: "a"})
			if o := beat("a", false); len(o.Held) != 0 {
				t.Errorf("a was told and still holds %v", o.Held)
			}

			// A leader that is alive repeats the call if its announcement failed.
			apply(lease.Action{Kind: lease.Assign, Key: k, Epoch: 3, Session: "a"})
			beat("a", false)
			second, wire := dying(s, "crash")
			known, err := second.View(ctx, "app", "")
			if err != nil {
				t.Fatal(err)
			}
			revoke.Epoch = 4
			if _, err := second.Apply(short(), "app", []lease.Action{revoke}); err == nil {
				t.Fatal("the announcement did not fail")
			}
			wire.calm.Store(true)
			wire.dead.Store(false)
			if v, err := second.View(ctx, "app", known.Revision); err != nil || v.Same {
				t.Errorf("a leader whose call failed is shown the same view: %v, %v", v, err)
			}
			if done, err := second.Apply(ctx, "app", []lease.Action{revoke}); err != nil || done[0] {
				t.Errorf("the repeated call: %v, %v", done, err)
			}
			if o := beat("a", false); len(o.Held) != 0 {
				t.Errorf("after the repeated call a still holds %v", o.Held)
			}

			// A worker dies after it has released the lease. Every leader detects that immediately.
			apply(lease.Action{Kind: lease.Assign, Key: k, Epoch: 5, Session: "b"})
			before, err := leader.View(ctx, "app", "")
			if err != nil {
				t.Fatal(err)
			}
			if v, err := leader.View(ctx, "app", before.Revision); err != nil || !v.Same {
				t.Fatalf("nothing happened, but the view is another: %v", err)
			}
			dead, _ := dying(s, "crash")
			release := lease.Report{Session: "b", Progress: []lease.Progress{{Key: k, Epoch: 6, Release: true}}}
			if _, err := dead.Heartbeat(short(), "app", release); err == nil {
				t.Fatal("the worker did not die")
			}
			after, err := leader.View(ctx, "app", before.Revision)
			if err != nil || after.Same || after.Leases[0].Owner != "" {
				t.Errorf("the leader does not see what the dead worker released: %+v, %v", after, err)
			}
			// If the worker is still alive, its next heartbeat announces the release.
			beat("b", false)
			settled, err := leader.View(ctx, "app", "")
			if err != nil {
				t.Fatal(err)
			}
			if v, err := leader.View(ctx, "app", settled.Revision); err != nil || !v.Same {
				t.Errorf("the view does not settle: %v", err)
			}
		})
	}
}
