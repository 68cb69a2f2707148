package dynamostore

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestWhatARowSaysOfLeasesThatChanged(t *testing.T) {
	key := func(i int) lease.Key { return lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", i)} }
	var eight []lease.Key
	for i := range mostNews {
		eight = append(eight, key(i))
	}
	long := lease.Key{Stream: strings.Repeat("s", 200), Shard: "1"}
	for name, c := range map[string]struct {
		keys []lease.Key
		want int
	}{
		"none": {nil, 0}, "one": {eight[:1], 1}, "twice the same": {[]lease.Key{key(1), key(1)}, 1}, "as many as may be": {eight, mostNews},
		"too many": {append(slices.Clone(eight), key(99)), 0}, "a long name": {[]lease.Key{long}, 1}, "too long": {[]lease.Key{long, {Stream: long.Stream, Shard: "2"}}, 0},
	} {
		got := rows(c.keys)
		if len(got) != c.want || !slices.IsSorted(got) {
			t.Errorf("%s: %q", name, got)
		}
		for _, row := range got {
			if k, err := parseLeaseRow(row); err != nil || !slices.Contains(c.keys, k) {
				t.Errorf("%s: %q is %v, %v", name, row, k, err)
			}
		}
	}
	n := news{}
	n.add("", key(1))
	n.add("a", key(1))
	n.add("a", key(2))
	n["b"] = nil
	n.add("b", key(1))
	if want := (news{"a": {key(1), key(2)}, "b": nil}); !reflect.DeepEqual(n, want) {
		t.Errorf("%v, want %v", n, want)
	}
}

// A session whose cached orders lack exactly one note reads only the leases in that note.
func TestASessionCatchesUp(t *testing.T) {
	here := map[string]lease.Lease{}
	add := func(id, owner string, epoch uint64) lease.Lease {
		l := lease.Lease{Key: lease.Key{Stream: "s", Shard: id}, Epoch: epoch, Owner: owner, Position: shard.Oldest, Range: shard.HashRange{End: shard.MaxHashKey}}
		here[leaseRow(l.Key)] = l
		return l
	}
	kept, wished, lost := add("1", "a", 2), add("2", "a", 2), add("3", "b", 4)
	got := add("4", "a", 7)
	wished.Heir = "b"
	here[leaseRow(wished.Key)] = wished
	var asked atomic.Int32 // rows are read in parallel
	s := server(func(_ context.Context, operation string, body map[string]any) (int, string) {
		asked.Add(1)
		row := body["Key"].(map[string]any)["row"].(map[string]any)["S"].(string)
		l, there := here[row]
		if operation != "GetItem" || body["ConsistentRead"] != true {
			t.Errorf("%s: %v", operation, body)
		}
		if !there {
			return 200, `{}`
		}
		return 200, fmt.Sprintf(`{"Item":{"app":{"S":"app"},"row":{"S":%q},"epoch":{"N":"%d"},"owner":{"S":%q},"heir":{"S":%q},"position":{"S":"oldest"},`+
			`%q:{"S":%q},%q:{"S":%q},%q:{"S":%q}}}`, row, l.Epoch, l.Owner, l.Heir, attrPositionKey, l.Position.SortKey(),
			attrRangeStart, l.Range.Start.String(), attrRangeEnd, l.Range.End.String())
	}).store("weir")
	k := orderKey{"app", "a"}
	before := []lease.Lease{kept, {Key: wished.Key, Epoch: 2, Owner: "a"}, {Key: lost.Key, Epoch: 3, Owner: "a"}, {Key: lease.Key{Stream: "s", Shard: "5"}, Epoch: 1, Owner: "a"}}
	all := []string{leaseRow(wished.Key), leaseRow(lost.Key), leaseRow(got.Key), "lease/s/5"}
	for name, c := range map[string]struct {
		row  workerRow
		want []lease.Lease // nil if all leases must be read
	}{
		"one note":               {workerRow{told: 8, newsAfter: 7, news: all}, []lease.Lease{kept, wished, got}},
		"a note without leases":  {workerRow{told: 8, newsAfter: 7}, nil},
		"another note before it": {workerRow{told: 9, newsAfter: 8, news: all}, nil},
		"another note after it":  {workerRow{told: 9, newsAfter: 7, news: all}, nil},
		"an old note":            {workerRow{told: 8, newsAfter: 5, news: all}, nil},
	} {
		s.remember(k, 7, before)
		asked.Store(0)
		held, ok, err := s.catchUp(within(t, time.Minute), "app", k, c.row)
		if err != nil || ok != (c.want != nil) || (asked.Load() > 0) != ok {
			t.Errorf("%s: %t, %v, asked %d times", name, ok, err, asked.Load())
		}
		if !ok {
			continue
		}
		if !reflect.DeepEqual(held, c.want) {
			t.Errorf("%s: %v, want %v", name, held, c.want)
		}
		if again, known := s.known(k, 8); !known || !reflect.DeepEqual(again, c.want) {
			t.Errorf("%s: it remembers %v, %t", name, again, known)
		}
	}
	if _, ok, err := s.catchUp(within(t, time.Minute), "app", orderKey{"app", "b"}, workerRow{told: 8, newsAfter: 7, news: all}); ok || err != nil {
		t.Errorf("a session that remembers nothing: %t, %v", ok, err)
	}
	s.remember(k, 7, before)
	if _, ok, err := s.catchUp(within(t, time.Minute), "app", k, workerRow{told: 8, newsAfter: 7, news: []string{"group/leader"}}); ok || err == nil {
		t.Error("a row that is no lease's is read")
	}
}

// The list of changed leases is removed from a session's row after a while. After a failed
// announcement, the notes of that application contain no leases.
func TestNewsAreOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last string
		s := server(func(_ context.Context, _ string, body map[string]any) (int, string) {
			last = fmt.Sprint(body["UpdateExpression"], body["ExpressionAttributeNames"])
			return 200, `{}`
		}).store("weir")
		k := orderKey{"app", "a"}
		s.saw(k, workerRow{news: []string{"lease/s/1"}})
		time.Sleep(keepNews - 1)
		s.saw(k, workerRow{news: []string{"lease/s/1"}})
		if s.stale(k) {
			t.Error("news are stale at once")
		}
		time.Sleep(time.Nanosecond)
		if !s.stale(k) {
			t.Error("news stay")
		}
		if _, _ = s.touch(t.Context(), "app", lease.Report{Session: "a", Weight: 1}); !strings.Contains(last, attrNewsAfter) || !strings.Contains(last, "REMOVE") {
			t.Errorf("a beat leaves stale news: %s", last)
		}
		s.saw(k, workerRow{})
		if s.stale(k) {
			t.Error("news are stale that are gone")
		}
		n := news{"a": {{Stream: "s", Shard: "1"}}}
		says := func() bool {
			if err := s.tell(t.Context(), "app", n); err != nil {
				t.Fatal(err)
			}
			return !strings.Contains(last, "REMOVE")
		}
		if !says() {
			t.Errorf("a note names nothing: %s", last)
		}
		s.doubt["app"] = time.Since(s.born)
		time.Sleep(readInFull - 1)
		if says() {
			t.Errorf("a note after a lost one names leases: %s", last)
		}
		time.Sleep(time.Nanosecond)
		if !says() {
			t.Errorf("a note names nothing long after: %s", last)
		}
	})
}
