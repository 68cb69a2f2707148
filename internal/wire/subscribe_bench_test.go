package wire

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/schemas"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

// BenchmarkEvent reads events from memory. For JSON it prints the factor by which the SDK's decoder
// is slower.
func BenchmarkEvent(b *testing.B) {
	for _, c := range []struct{ records, bytes int }{{1000, 1024}, {10, 1024}, {1000, 100}} {
		b.Run(fmt.Sprintf("%dx%dB", c.records, c.bytes), func(b *testing.B) {
			page := answers.Sample(c.records, c.bytes)
			inJSON := answers.EventMessage(b, "SubscribeToShardEvent", codec.JSONType, string(answers.JSON{Time: "e"}.Encode(page)))
			inCBOR := answers.EventMessage(b, "SubscribeToShardEvent", codec.CBORType, string(answers.CBOR{}.Encode(page)))
			caller := newCaller(b, fakeClient("http://localhost"), Options{Reuse: true})
			own := func(in []byte) func() int {
				var p codec.Page
				r := bytes.NewReader(nil)
				sub := &Subscription{c: caller, resp: &http.Response{}, events: &framedEvents{body: io.NopCloser(r), frames: codec.NewFrameReader(r, codec.MostBody)}}
				sub.ctx, sub.cancel = context.WithCancelCause(b.Context())
				return func() int {
					r.Reset(in)
					if err := sub.Next(time.Hour, &p); err != nil {
						b.Fatal(err)
					}
					defer p.Release()
					return len(p.Records)
				}
			}
			protocol := awsjson.New11(schemas.Kinesis_20131202)
			modes := []struct {
				name string
				read func() int
				took time.Duration
			}{
				{name: "own-JSON", read: own(inJSON)},
				{name: "own-CBOR", read: own(inCBOR)},
				{name: "SDK", read: func() int {
					ev, err := protocol.DeserializeEventMessage(schemas.SubscribeToShardEventStream, kinesis.TypeRegistry, bytes.NewReader(inJSON))
					if err != nil {
						b.Fatal(err)
					}
					return len(ev.(*types.SubscribeToShardEvent).Records)
				}},
			}
			rounds := 0
			for b.Loop() {
				rounds++
				for i := range modes {
					began := time.Now()
					for range 10 {
						if n := modes[i].read(); n != c.records {
							b.Fatal(n)
						}
					}
					modes[i].took += time.Since(began)
				}
			}
			for _, m := range modes {
				b.ReportMetric(float64(m.took.Nanoseconds())/float64(10*rounds*c.records), m.name+"-ns/record")
			}
			b.ReportMetric(float64(modes[2].took)/float64(modes[0].took), "SDK/own-JSON")
			b.ReportMetric(0, "ns/op") // a round is not an operation
		})
	}
}
