package kinesistest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/kinesistest"
)

func TestQueueDeliversUntilAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startQueue(t, kinesistest.Config{}, kinesistest.Queue{})
		c.putAll("a", "b", "c")
		first := c.receive()
		if data(first) != "a b c" {
			t.Fatalf("received %s", data(first))
		}
		for _, r := range first {
			if r.ReceiveCount != 1 || r.PartitionKey != string(r.Data) || r.RecordId == "" || r.ApproximateArrivalTimestamp == 0 || r.FirstReceiveTimestamp == 0 {
				t.Errorf("%+v", r)
			}
		}
		if failed := c.entries("AcknowledgeQueueRecords", 0, first[0], first[1]); len(failed) > 0 {
			t.Fatalf("%+v", failed)
		}
		if got := c.receive(); len(got) > 0 {
			t.Errorf("received %s while it is hidden", data(got))
		}
		time.Sleep(30 * time.Second)
		again := c.one()
		if again.RecordId != first[2].RecordId || again.ReceiveCount != 2 || again.ReceiptHandle == first[2].ReceiptHandle || again.FirstReceiveTimestamp != first[2].FirstReceiveTimestamp {
			t.Errorf("first %+v, then %+v", first[2], again)
		}
		c.acknowledge(again)
		time.Sleep(time.Hour)
		if got := c.receive(); len(got) > 0 {
			t.Errorf("received %s after all were acknowledged", data(got))
		}
		c.wantState(kinesistest.QueueState{Acknowledged: 3})
	})
}
