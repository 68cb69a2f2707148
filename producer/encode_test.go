package producer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/payload"
)

// Encoded records are packed like others, and decode to the data that were put.
func TestEncodedRecords(t *testing.T) {
	for _, plain := range []bool{false, true} {
		o := Options{NoAggregation: plain, Encode: payload.Gzip{}.Encode}
		inBubble(t, 2, o, func(t *testing.T, server *kinesistest.Server, p *Producer) {
			want, longest := map[string]bool{}, 0
			for i := range 200 {
				data := fmt.Sprint(i, strings.Repeat(" an order", 200*(i%2)))
				put(t, p, fmt.Sprint("key", i%7), data)
				want[data] = true
			}
			closed(t, p)
			records, containers := all(t, server)
			if len(records) != 200 || (containers == 0) != plain {
				t.Errorf("%d records, %d containers", len(records), containers)
			}
			for _, r := range records {
				longest = max(longest, len(r.data))
				data, err := payload.Decode(t.Context(), []byte(r.data), payload.Gzip{})
				if err != nil || !want[string(data)] {
					t.Errorf("%.20q, %v", data, err)
				}
				delete(want, string(data))
			}
			if longest > 100 {
				t.Errorf("a payload has %d bytes", longest)
			}
		})
	}
}

// Put and TryPut return the error of Encode, and do not accept the record.
func TestRecordsThatCannotBeEncoded(t *testing.T) {
	broken := errors.New("broken")
	o := Options{Encode: func(context.Context, []byte) ([]byte, error) { return nil, broken }}
	inBubble(t, 1, o, func(t *testing.T, _ *kinesistest.Server, p *Producer) {
		r := Record{PartitionKey: "k", Data: []byte("x"), Done: func(Result, error) { t.Error("Done was called") }}
		if _, err := p.Put(t.Context(), r); !errors.Is(err, broken) || !strings.Contains(err.Error(), "Options.Encode") {
			t.Errorf("Put: %v", err)
		}
		if _, err := p.TryPut(r); !errors.Is(err, broken) {
			t.Errorf("TryPut: %v", err)
		}
		closed(t, p)
		if c := p.Counts(); c.Records != 0 {
			t.Errorf("%+v", c)
		}
	})
}
