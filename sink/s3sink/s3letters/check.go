package s3letters

import (
	"context"
	"fmt"

	"github.com/weir-go/weir/sink/s3sink/internal/bucket"
)

const trialKey = "_weir/letters"

var trial = []byte("weir looks here whether letters can be written.\n")

// Readable returns why dead letters cannot be listed, so that the problem is found before they are
// needed.
func (b *Box) Readable(ctx context.Context) error {
	_, err := b.bucket.List(ctx, b.prefix, "", 1)
	return err
}

// Writable returns why dead letters cannot be written, listed or marked, so that the problem is
// found before a record is at stake. It leaves a small object, PREFIX/_weir/letters. It returns an
// error for a server that does not honour the condition of a write, because two processes could
// handle one letter again there.
func (b *Box) Writable(ctx context.Context) error {
	if err := b.Readable(ctx); err != nil {
		return err
	}
	key := b.prefix + trialKey
	if _, _, err := b.bucket.Put(ctx, key, trial, nil, bucket.Condition{}); err != nil {
		return err
	}
	_, held, err := b.bucket.Put(ctx, key, trial, nil, bucket.Condition{ETag: `"of-another"`})
	if err == nil && held {
		err = fmt.Errorf("s3letters: bucket %s overwrites an object although the request forbids it (If-Match): "+
			"two processes could handle one letter again; use S3, or a store that keeps this condition", b.bucket.Name)
	}
	return err
}
