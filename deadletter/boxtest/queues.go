package boxtest

import (
	"fmt"
	"testing"

	"github.com/weir-go/weir/deadletter"
)

// ofQueue returns a dead letter about a record of a Kinesis queue.
func ofQueue(app, queue, position string) deadletter.Letter {
	l := letter(1)
	l.App, l.Stream, l.Shard = app, "arn:aws:kinesis:eu-west-1:111122223333:queue/"+queue, deadletter.QueueShard
	l.SequenceNumber, l.Position, l.PartitionKey = "", position, ""
	l.ID = deadletter.ID(l.App, l.RecordID())
	return l
}

// A box keeps dead letters about the same record of two queues and of two applications, and about
// two records of an aggregate, apart. They have no sequence number.
func queues(t *testing.T, open func() deadletter.Box) {
	b, want := open(), map[string]deadletter.Letter{}
	var letters []deadletter.Letter
	for _, app := range []string{"one", "two"} {
		for _, queue := range []string{"q-1", "q-2"} {
			for _, position := range []string{"r1", "r1+1", "r1+2", "r12"} {
				l := ofQueue(app, queue, position)
				letters, want[l.ID] = append(letters, l), l
			}
		}
	}
	for range 2 { // a dead letter that is put again replaces the first one
		if err := b.Put(t.Context(), letters); err != nil {
			t.Fatal(err)
		}
	}
	items := all(t, b)
	if len(items) != len(letters) {
		t.Errorf("%d dead letters, want %d", len(items), len(letters))
	}
	for _, i := range items {
		if fmt.Sprintf("%+v", i.Letter) != fmt.Sprintf("%+v", want[i.ID]) {
			t.Errorf("%+v\nwant\n%+v", i.Letter, want[i.ID])
		}
	}
	one := ofQueue("one", "q-1", "r1+1")
	if err := b.Mark(t.Context(), begun, one.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.Mark(t.Context(), done, one.ID); err != nil {
		t.Fatal(err)
	}
	for _, i := range all(t, open()) {
		if state := map[bool]deadletter.State{true: done, false: kept}[i.ID == one.ID]; i.State != state {
			t.Errorf("%s is %s", i.ID, i.State)
		}
	}
}
