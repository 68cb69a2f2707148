package weir

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/weir-go/weir/internal/batch"
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
	if n := unsafe.Sizeof(Record{}); n > 80 {
		t.Errorf("a record has %d bytes", n)
	}
	from := &source.Origin{Stream: "s"}
	got := whole([]source.Record{{}, {Data: []byte("data"), Key: "key", SequenceNumber: "12", Arrival: 34, Done: shard.Whole, Encrypted: true, Failed: true, From: from}})
	want := Record{Data: []byte("data"), PartitionKey: "key", SequenceNumber: "12", arrival: 34, done: shard.Whole, encrypted: true, failed: true, from: from}
	if len(got) != 2 || !reflect.DeepEqual(got[1], want) {
		t.Errorf("%+v", got)
	}
	if len(whole(nil)) != 0 {
		t.Error("records of nothing")
	}
}

func TestModesOfAggregatesHaveOneValueEach(t *testing.T) {
	for ours, mode := range map[Aggregates]batch.Mode{Unpack: batch.Unpack, UnpackOwn: batch.UnpackOwn, KeepPacked: batch.KeepPacked} {
		if batch.Mode(ours) != mode {
			t.Errorf("%d is %d in package batch", ours, mode)
		}
	}
}
