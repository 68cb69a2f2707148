package zstdpayload_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/weir-go/weir/payload"
	"github.com/weir-go/weir/payload/zstdpayload"
	"github.com/weir-go/weir/producer"
)

// A producer's option Encode is the method of a codec. A consumer can decode the payloads of
// producers with gzip, with zstd, and without a codec.
func ExampleNew() {
	zstd, err := zstdpayload.New(zstdpayload.Options{})
	if err != nil {
		log.Fatal(err)
	}
	options := producer.Options{Stream: "orders", Encode: zstd.Encode}

	ctx := context.Background()
	stored, err := options.Encode(ctx, []byte(strings.Repeat("coffee ", 100)))
	if err != nil {
		log.Fatal(err)
	}
	old, err := payload.Gzip{}.Encode(ctx, []byte(strings.Repeat("tea ", 100)))
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range [][]byte{stored, old, []byte("milk")} {
		data, err := payload.Decode(ctx, p, zstd, payload.Gzip{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%.7s … %d bytes\n", data, len(data))
	}
	// Output:
	// coffee  … 700 bytes
	// tea tea … 400 bytes
	// milk … 4 bytes
}
