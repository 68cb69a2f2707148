package weir

import (
	"reflect"
	"testing"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

func TestARecordIsLaidOutAsItWasRead(t *testing.T) {
	ours, read := reflect.TypeFor[Record](), reflect.TypeFor[source.Record]()
	if ours.Size() != read.Size() || ours.Align() != read.Align() || ours.NumField() != read.NumField() {
		t.Fatalf("%v has %d bytes and %d fields, %v has %d and %d", ours, ours.Size(), ours.NumField(), read, read.Size(), read.NumField())
	}
	for i := range ours.NumField() {
		if o, r := ours.Field(i), read.Field(i); o.Type != r.Type || o.Offset != r.Offset {
			t.Errorf("field %d is %s %v at %d, and %s %v at %d", i, o.Name, o.Type, o.Offset, r.Name, r.Type, r.Offset)
		}
	}
	got := whole([]source.Record{{}, {Data: []byte("data"), Key: "key", SequenceNumber: "12", Arrival: 34, Done: shard.Whole, Encrypted: true}})
	want := Record{Data: []byte("data"), PartitionKey: "key", SequenceNumber: "12", arrival: 34, done: shard.Whole, encrypted: true}
	if len(got) != 2 || !reflect.DeepEqual(got[1], want) {
		t.Errorf("%+v", got)
	}
	if len(whole(nil)) != 0 {
		t.Error("records of nothing")
	}
}
