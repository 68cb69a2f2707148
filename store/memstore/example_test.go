package memstore_test

import (
	"fmt"
	"log"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// The workers of one process share the store. Its contents are lost when the process ends.
func ExampleNew() {
	srv, err := kinesistest.Start(kinesistest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	store := memstore.New()
	for _, worker := range []string{"w1", "w2"} {
		c, err := weir.New(srv.Client(), store, weir.Options{Streams: []string{"orders"}, App: "billing", Worker: worker})
		fmt.Println(c != nil, err)
	}
	// Output:
	// true <nil>
	// true <nil>
}
