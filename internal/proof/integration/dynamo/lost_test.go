package dynamo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/dynamostore"
	"github.com/weir-go/weir/store/memstore"
)

// lossy loses the first answer to every request. The server has carried out the request, and the
// client must repeat it.
type lossy struct {
	to   aws.HTTPClient
	mu   sync.Mutex
	seen map[string]bool
	lost int
}

func (l *lossy) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := l.to.Do(r)
	if err != nil {
		return nil, err
	}
	var sorted any // the SDK orders fields differently each time
	if err := json.Unmarshal(body, &sorted); err != nil {
		return nil, err
	}
	if body, err = json.Marshal(sorted); err != nil {
		return nil, err
	}
	key := r.Header.Get("X-Amz-Target") + string(body)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[key] {
		// A later request may be equal. Its first answer is lost too.
		delete(l.seen, key)
		return resp, nil
	}
	l.seen[key] = true
	l.lost++
	_ = resp.Body.Close()
	return nil, errors.New("read: connection reset by peer")
}

// TestWritesWhoseAnswersAreLost makes the same calls on a connection that loses each answer once,
// and on a store in memory. Results and final states must be the same. Each write that took effect
// must be recognized, and must have taken effect once.
func TestWritesWhoseAnswersAreLost(t *testing.T) {
	k := func(id string) lease.Key { return lease.Key{Stream: "orders", Shard: id} }
	create := func(id string) lease.Action {
		return lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: k(id), Epoch: 1, Position: shard.Oldest}}
	}
	act := func(kind lease.Kind, id string, epoch uint64, session string) lease.Action {
		return lease.Action{Kind: kind, Key: k(id), Epoch: epoch, Session: session}
	}
	seq := func(s string) shard.Position {
		p, err := shard.After(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	apply := func(actions ...lease.Action) func(lease.Store) (any, error) {
		return func(s lease.Store) (any, error) { return s.Apply(t.Context(), "app", actions) }
	}
	beat := func(session string, progress ...lease.Progress) func(lease.Store) (any, error) {
		return func(s lease.Store) (any, error) {
			o, err := s.Heartbeat(t.Context(), "app", lease.Report{Session: session, First: len(progress) == 0, Progress: progress})
			var keys []string
			for _, l := range o.Held {
				keys = append(keys, fmt.Sprintf("%s@%d", l.Key, l.Epoch))
			}
			return fmt.Sprint(keys, o.Leader.Session, o.Leader.Epoch), err
		}
	}
	lead := func(session string, term uint64) func(lease.Store) (any, error) {
		return func(s lease.Store) (any, error) { return s.Lead(t.Context(), "app", session, term) }
	}
	leave := func(session string, progress ...lease.Progress) func(lease.Store) (any, error) {
		return func(s lease.Store) (any, error) {
			return nil, s.Leave(t.Context(), "app", lease.Report{Session: session, Progress: progress})
		}
	}
	story := []struct {
		name string
		do   func(lease.Store) (any, error)
	}{
		{"a starts", beat("a")},
		{"b starts", beat("b")},
		{"a leads", lead("a", 0)},
		{"a leads again", lead("a", 0)},
		{"create", apply(create("1"), create("2"), create("3"), create("4"), create("5"), create("1"))},
		{"assign", apply(act(lease.Assign, "1", 1, "a"), act(lease.Assign, "2", 1, "a"), act(lease.Assign, "3", 1, "b"), act(lease.Assign, "1", 1, "b"))},
		{"a sees them", beat("a")},
		{"hand-off", apply(act(lease.Handoff, "1", 2, "b"), act(lease.Handoff, "2", 9, "b"))},
		{"a checkpoints and hands over", beat("a", lease.Progress{Key: k("2"), Epoch: 2, Position: seq("5")},
			lease.Progress{Key: k("1"), Epoch: 2, Position: seq("7"), Release: true})},
		{"b got it", beat("b")},
		{"revoke", apply(act(lease.Revoke, "1", 3, ""), act(lease.Revoke, "4", 1, ""))},
		{"b acknowledges", beat("b", lease.Progress{Key: k("1"), Epoch: 3, Release: true})},
		{"move", apply(lease.Action{Kind: lease.Move, Key: k("2"), Epoch: 2, Position: seq("3")},
			lease.Action{Kind: lease.Move, Key: k("1"), Epoch: 4, Position: shard.Oldest})},
		{"b finishes", beat("b", lease.Progress{Key: k("3"), Epoch: 2, Position: shard.End, Children: []shard.Shard{{ID: "31", Parents: []string{"3"}}}})},
		{"a leaves", leave("a")},
		{"b leads", lead("b", 2)},
		{"assign what is left", apply(act(lease.Assign, "2", 3, "b"), act(lease.Assign, "31", 1, "b"))},
		{"b sees it", beat("b")},
		{"b resigns", lead("", 3)},
		{"b leaves", leave("b", lease.Progress{Key: k("2"), Epoch: 4, Position: seq("8")})},
	}
	rows := func(s lease.Store) string {
		v, err := s.View(t.Context(), "app", "")
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(v.Leases, func(a, b lease.Lease) int { return a.Key.Compare(b.Key) })
		lines := []string{fmt.Sprintf("leader %q %d", v.Leader.Session, v.Leader.Epoch)}
		for _, l := range v.Leases {
			lines = append(lines, l.String()+" last="+l.Last)
		}
		for _, w := range v.Workers {
			lines = append(lines, w.Session)
		}
		return strings.Join(lines, "\n")
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			s := kind.start(t)
			open(t, s, "lost")
			wire := &lossy{to: s.Config().HTTPClient, seen: map[string]bool{}}
			store := dynamostore.New(s.DynamoDB(func(o *dynamodb.Options) { o.HTTPClient = wire }), dynamostore.Options{Table: "lost"})
			model := memstore.New()
			for _, step := range story {
				got, err := step.do(store)
				want, wantErr := step.do(model)
				if err != nil || wantErr != nil {
					t.Fatalf("%s: %v, in memory %v", step.name, err, wantErr)
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: %v, want %v", step.name, got, want)
				}
				if got, want := rows(store), rows(model); got != want {
					t.Errorf("after %s:\n got\n%s\nwant\n%s", step.name, got, want)
				}
			}
			t.Logf("%d answers were lost", wire.lost)
			if wire.lost < 2*len(story) {
				t.Errorf("only %d answers were lost", wire.lost)
			}
		})
	}
}
