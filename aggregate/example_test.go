package aggregate_test

import (
	"errors"
	"fmt"

	"github.com/weir-go/weir/aggregate"
)

// A reader parses the payload of each record of a stream, whether or not it is aggregated.
func ExampleAggregate_Parse() {
	var b aggregate.Builder
	_ = b.Add("JFK", "", []byte("takes off"))
	_ = b.Add("JFK", "", []byte("lands"))
	container := b.Append(nil)
	damaged := append(b.Append(nil), 0)

	var a aggregate.Aggregate // reused for each payload
	for _, payload := range [][]byte{container, []byte("a plain record"), damaged} {
		ok, err := a.Parse(payload)
		switch {
		case ok:
			for r := range a.All() {
				fmt.Printf("sub-record %d of key %s: %s\n", r.Sub(), r.PartitionKey(), r.Data())
			}
		case err != nil:
			fmt.Println("plain, and worth counting:", err)
		default:
			fmt.Printf("plain: %s\n", payload)
		}
	}
	// Output:
	// sub-record 0 of key JFK: takes off
	// sub-record 1 of key JFK: lands
	// plain: a plain record
	// plain, and worth counting: aggregate: the payload starts like an aggregate but its checksum does not match
}

// A container was packed for a shard that was split afterwards. The child drops the sub-records of
// its sibling.
func ExampleAggregate_Keep() {
	var b aggregate.Builder
	_ = b.Add("a", "", []byte("hashes to the lower half"))
	_ = b.Add("b", "", []byte("hashes to the upper half"))
	_ = b.Add("b", "0", []byte("is sent to the lower half"))

	var a aggregate.Aggregate
	if ok, err := a.Parse(b.Append(nil)); !ok {
		fmt.Println("not an aggregate:", err)
		return
	}
	child := aggregate.HashRange{End: aggregate.HashKey{Hi: 1<<63 - 1, Lo: 1<<64 - 1}}
	fmt.Println("dropped:", a.Keep(child))
	for r := range a.All() {
		fmt.Printf("%d %s\n", r.Sub(), r.Data())
	}
	// Output:
	// dropped: 1
	// 0 hashes to the lower half
	// 2 is sent to the lower half
}

// A producer fills one container after the other with the records of one key.
func ExampleBuilder() {
	b := aggregate.Builder{Limit: 60}
	put := func() {
		if b.Len() > 0 {
			fmt.Printf("put %d records in %d bytes\n", b.Len(), len(b.Append(nil)))
		}
		b.Reset()
	}
	for _, data := range []string{"one", "two", "three", "four", "a record that is larger than the limit alone", "five"} {
		err := b.Add("key", "", []byte(data))
		if errors.Is(err, aggregate.ErrFull) {
			put()
			err = b.Add("key", "", []byte(data))
		}
		if errors.Is(err, aggregate.ErrFull) {
			fmt.Printf("put a plain record of %d bytes\n", len(data))
		} else if err != nil {
			fmt.Println(err)
		}
	}
	put()
	// Output:
	// put 3 records in 54 bytes
	// put 1 records in 4 bytes
	// put a plain record of 44 bytes
	// put 1 records in 4 bytes
}
