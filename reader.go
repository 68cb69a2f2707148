package weir

import (
	"context"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// ReaderOptions say what a [Reader] reads. Stream is required.
type ReaderOptions struct {
	Stream       string        // name or ARN
	Start        Position      // Oldest (the default), Latest or At
	Shards       []string      // only these and their descendants; none is all
	UntilTip     bool          // end when each shard has been read to its tip, instead of following for ever
	IdleInterval time.Duration // see Options
}

// Reader reads a stream without an application: no store, no checkpoints, no sharing.
type Reader struct{}

// NewReader checks the options. It does no I/O.
func NewReader(client *kinesis.Client, opts ReaderOptions) (*Reader, error) { return &Reader{}, nil }

// Records yields the records of all shards, parents before children.
func (r *Reader) Records(ctx context.Context) iter.Seq2[Record, error] { return nil }

// Batches yields the same records by shard and page.
func (r *Reader) Batches(ctx context.Context) iter.Seq2[*Batch, error] { return nil }
