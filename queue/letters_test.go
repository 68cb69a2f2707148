package queue

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/deadletter"
)

// A program passes the records of dead letters to its handler again. They are the records that the
// handler rejected, also if they were in an aggregate.
func TestRecordsOfDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(1, func(int) string { return "key" }, []byte("plain"))
		var b aggregate.Builder
		for _, part := range []string{"one", "two"} {
			if err := b.Add(part, "", []byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		q.put(1, nil, b.Append(nil))
		var (
			mu      sync.Mutex // guards letters, because calls are concurrent
			letters []deadletter.Letter
		)
		to := deadletter.Func(func(_ context.Context, l []deadletter.Letter) error {
			mu.Lock()
			defer mu.Unlock()
			letters = append(letters, l...)
			return nil
		})
		c := q.consumer(t, Options{App: "shop", OnFailure: FailurePolicy{Destination: to}, Concurrency: 1})
		var rejected []Record
		_, err := runFor(t, c, time.Minute, RecordFunc(func(_ context.Context, r Record) error {
			if string(r.Data) == "two" {
				return nil
			}
			rejected = append(rejected, r)
			return weir.Reject(errors.New("no"))
		}))
		if err != nil || len(letters) != 2 || len(rejected) != 2 {
			t.Fatalf("%v, %d letters, %d rejected", err, len(letters), len(rejected))
		}
		slices.SortFunc(letters, func(a, b deadletter.Letter) int { return strings.Compare(a.ID, b.ID) })
		slices.SortFunc(rejected, func(a, b Record) int { return strings.Compare(a.Key(), b.Key()) })
		for i := range letters {
			got, ok := FromLetter(&letters[i])
			want := rejected[i]
			if !ok || got.Key() != want.Key() || got.Queue != testARN || want.Queue != testARN || string(got.Data) != string(want.Data) ||
				got.PartitionKey != want.PartitionKey || !got.Arrived.Equal(want.Arrived) {
				t.Errorf("%+v, %t\nwant\n%+v", got, ok, want)
			}
			if id := "shop/" + testARN + "/queue/" + want.Key(); letters[i].ID != id {
				t.Errorf("the ID is %s, want %s", letters[i].ID, id)
			}
		}
		if _, ok := FromLetter(&deadletter.Letter{Stream: "s", Shard: "shardId-000000000000", Position: "1"}); ok {
			t.Error("a dead letter of a shard is a record of a queue")
		}
	})
}
