package payload_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/filter"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/payload"
	"github.com/weir-go/weir/producer"
	"github.com/weir-go/weir/store/memstore"
)

// example allows creating a server outside a test.
type example struct{ testing.TB }

func (example) Helper()                           {}
func (example) Cleanup(func())                    {}
func (example) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }
func (example) Fatal(args ...any)                 { log.Fatal(args...) }

// compressing returns the options of a producer that compresses.
func compressing() producer.Options {
	return producer.Options{Stream: "orders", Encode: payload.Gzip{}.Encode}
}

// reading returns the options of a consumer that handles orders only.
func reading() weir.Options {
	orders := filter.MustCompile(`{"data": {"kind": ["order"]}}`)
	return weir.Options{
		Streams: []string{"orders"}, App: "billing",
		Filter: weir.Filter{By: payload.Matching(orders, payload.Gzip{})},
	}
}

// decoding returns a handler that decodes records.
func decoding(next func(data []byte) error) weir.Handler {
	return weir.RecordFunc(func(ctx context.Context, r weir.Record) error {
		data, err := payload.Decode(ctx, r.Data, payload.Gzip{})
		if err != nil {
			return err // the failure policy applies
		}
		return next(data)
	})
}

// A producer compresses, a filter selects by the decoded data, and the handler decodes.
func ExampleGzip() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 1)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	p, err := producer.New(srv.Client(), compressing())
	if err != nil {
		log.Fatal(err)
	}
	for _, kind := range []string{"offer", "order"} {
		data := fmt.Sprintf(`{"kind": %q, "text": %q}`, kind, strings.Repeat("coffee ", 100))
		if _, err := p.Put(ctx, producer.Record{PartitionKey: "k", Data: []byte(data)}); err != nil {
			log.Fatal(err)
		}
	}
	if err := p.Close(ctx); err != nil {
		log.Fatal(err)
	}

	options := reading()
	options.Logger = slog.New(slog.DiscardHandler)
	c, err := weir.New(srv.Client(), memstore.New(), options)
	if err != nil {
		log.Fatal(err)
	}
	err = c.Run(ctx, decoding(func(data []byte) error {
		fmt.Printf("%.17s … %d bytes\n", data, len(data))
		stop()
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// {"kind": "order", … 729 bytes
}

// A producer writes the ID of a schema version into each record. A consumer gets the ID of each
// record, here to count the versions.
func ExampleGlue() {
	version, err := payload.ParseSchemaVersion("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	stored, err := payload.Glue{Version: version, Compress: true}.Encode(ctx, []byte(strings.Repeat("coffee ", 100)))
	if err != nil {
		log.Fatal(err)
	}

	read := payload.Glue{
		Convert: func(_ context.Context, version payload.SchemaVersion, data []byte) ([]byte, error) {
			fmt.Println(version, len(data), "bytes") // a program would look up the schema
			return data, nil
		},
	}
	data, err := payload.Decode(ctx, stored, read)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.7s\n", data)
	// Output:
	// b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63 700 bytes
	// coffee
}

// A chain compresses and then adds the header of a schema.
func ExampleChain() {
	version, err := payload.ParseSchemaVersion("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63")
	if err != nil {
		log.Fatal(err)
	}
	codec := payload.Chain(payload.Gzip{}, payload.Glue{Version: version})
	ctx := context.Background()
	stored, err := codec.Encode(ctx, []byte(strings.Repeat("coffee ", 100)))
	if err != nil {
		log.Fatal(err)
	}
	data, err := payload.Decode(ctx, stored, codec)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(data), "bytes")
	// Output:
	// 700 bytes
}

// A consumer reads what lifion-kinesis compressed with LZ-UTF8.
func ExampleLZUTF8() {
	data, err := payload.Decode(context.Background(), []byte("coffee, \xc7\x08!"), payload.Gzip{}, payload.LZUTF8{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", data)
	// Output:
	// coffee, coffee,!
}
