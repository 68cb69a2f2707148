package provision_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/provision"
)

// The second call finds the stream.
func ExampleCreateStream() {
	srv, err := kinesistest.Start(kinesistest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	for range 2 {
		found, err := provision.CreateStream(context.Background(), srv.Client(), provision.Stream{Name: "orders", Shards: 2})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("created:", found.Created)
	}
	// Output:
	// created: true
	// created: false
}
