package fanout

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/shard"
)

// errBroken is wrapped by errors about an event with contradictory contents.
var errBroken = errors.New("the service sent a broken event")

// pageOf returns the page of an event and the position where reading continues. It omits records at
// or before from. The last event of a shard has children and no continuation. An event with only
// one of these two properties is broken.
func pageOf(w *codec.Page, from shard.Position) (page source.Page, at shard.Position, continuation string, err error) {
	page, at = source.Page{Records: w.Records, Bytes: w.Bytes, Behind: w.Behind, Marked: w.Marked, Wire: w}, from
	if err := source.Placed(w); err != nil {
		return source.Page{}, from, "", fmt.Errorf("%w: %w", errBroken, err)
	}
	skip := 0
	for skip < len(page.Records) && source.Covers(from, page.Records[skip].SequenceNumber) {
		// The event was sent twice, or the server starts at the position and not after it.
		page.Bytes -= len(page.Records[skip].Data) + len(page.Records[skip].Key)
		skip++
	}
	if page.Records = page.Records[skip:]; len(page.Records) > 0 {
		// Copy the sequence number, because the page's memory may be reused.
		if at, err = shard.After(strings.Clone(page.Records[len(page.Records)-1].SequenceNumber)); err != nil {
			return source.Page{}, from, "", fmt.Errorf("%w: %w", errBroken, err)
		}
	}
	continuation = w.Next
	switch ends := len(w.Children) > 0; {
	case ends && continuation == "":
		if page.Children, err = streams.Children(w.Children); err != nil {
			return source.Page{}, from, "", fmt.Errorf("%w: %w", errBroken, err)
		}
		page.End = true
	case ends:
		return source.Page{}, from, "", fmt.Errorf("%w: it has both children of the shard and a continuation", errBroken)
	case continuation == "":
		return source.Page{}, from, "", fmt.Errorf("%w: it has neither a continuation nor children", errBroken)
	default:
		if _, err := shard.After(continuation); err != nil {
			return source.Page{}, from, "", fmt.Errorf("%w: continuation: %w", errBroken, err)
		}
	}
	return page, at, continuation, nil
}
