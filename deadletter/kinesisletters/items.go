package kinesisletters

import (
	"context"
	"fmt"
	"iter"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
)

// Items yields the dead letters that the stream still contains, from the oldest to the tip of every
// shard. Dead letters with the same key are in order. All of them are [deadletter.Kept], even those
// that were handled again. A dead letter that was put twice occurs twice. Items yields an error for
// a record that is not a dead letter. A failure to read is also yielded as an error and ends the
// sequence.
func (s *Stream) Items(ctx context.Context) iter.Seq2[deadletter.Item, error] {
	return func(yield func(deadletter.Item, error) bool) {
		reader, err := weir.NewReader(s.client, weir.ReaderOptions{Stream: s.given, UntilTip: true})
		if err != nil {
			yield(deadletter.Item{}, err)
			return
		}
		for r, err := range reader.Records(ctx) {
			if err != nil {
				yield(deadletter.Item{}, fmt.Errorf("kinesisletters: reading: %w", err))
				return
			}
			i := deadletter.Item{State: deadletter.Kept}
			if i.Letter, err = deadletter.Parse(r.Data); err != nil {
				i, err = deadletter.Item{}, fmt.Errorf("kinesisletters: record %.300s is not a dead letter: %w", r.ID(), err)
			}
			if !yield(i, err) {
				return
			}
		}
	}
}
