package weir

import (
	"testing"

	"github.com/weir-go/weir/internal/source"
)

// What it costs to keep the records of a batch, for 10,000 of them.
func BenchmarkKeep(b *testing.B) {
	body := make([]byte, 10000*200)
	run := make([]source.Record, 10000)
	for i := range run {
		p := i * 200
		run[i] = source.Record{Data: body[p+60 : p+160], Key: string(body[p : p+8]), SequenceNumber: string(body[p+8 : p+60]), Arrival: 1, Done: 3}
	}
	from := &origin{}
	for b.Loop() {
		k, _ := keepCopy(run, from)
		k.release()
	}
}
