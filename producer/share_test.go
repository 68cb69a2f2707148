package producer

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
)

// FirstShare sets the rate at the start. The producer still keeps to the limits of a shard.
func TestFirstShare(t *testing.T) {
	for _, c := range []struct {
		share     float64
		low, high time.Duration
	}{
		{1, 600 * time.Millisecond, time.Second},
		{0.25, 1500 * time.Millisecond, 2500 * time.Millisecond},
		{0, 1500 * time.Millisecond, 2500 * time.Millisecond}, // the default
		{0.01, 5 * time.Second, 8 * time.Second},
	} {
		o := Options{FirstShare: c.share, NoAggregation: true}
		inBubble(t, 1, o, func(t *testing.T, _ *kinesistest.Server, p *Producer) {
			began := time.Now()
			for i := range 1000 {
				put(t, p, fmt.Sprint("key", i), "data")
			}
			flushed(t, p)
			counts := p.Counts()
			if took := time.Since(began); took < c.low || took > c.high || counts.Retried > 0 {
				t.Errorf("a share of %v: 1000 records took %v: %+v", c.share, took, counts)
			}
			closed(t, p)
		})
	}
}

func TestFirstShareHasARange(t *testing.T) {
	server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
	for _, share := range []float64{-1, 0.009, 1.01, math.Inf(1), math.NaN()} {
		_, err := New(server.Client(), Options{Stream: "s", FirstShare: share})
		if err == nil || !strings.Contains(err.Error(), "Options.FirstShare") {
			t.Errorf("%v: %v", share, err)
		}
	}
}

// PayloadUnits counts the units of the stream's records. Many small records need many units if they
// are not packed, and few if they are.
func TestPayloadUnits(t *testing.T) {
	for plain, want := range map[bool]uint64{true: 40 + 2, false: 1 + 2} {
		o := Options{NoAggregation: plain}
		inBubble(t, 1, o, func(t *testing.T, _ *kinesistest.Server, p *Producer) {
			for i := range 40 {
				put(t, p, fmt.Sprint("key", i), "data")
			}
			flushed(t, p)
			put(t, p, "key", strings.Repeat("x", 25_000)) // more than one unit, with its key
			flushed(t, p)
			if c := p.Counts(); c.PayloadUnits != want {
				t.Errorf("plain %v: %d units, want %d", plain, c.PayloadUnits, want)
			}
			closed(t, p)
		})
	}
}
