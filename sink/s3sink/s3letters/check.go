package s3letters

import (
	"context"
	"fmt"

	"github.com/weir-go/weir/sink/s3sink/internal/bucket"
)

const trialKey = "_weir/letters"

var trial = []byte("weir looks here whether dead letters can be written.\n")

// Readable returns an error if dead letters cannot be listed. Call it at the start to find such a
// problem early.
func (b *Box) Readable(ctx context.Context) error {
	_, err := b.bucket.List(ctx, b.prefix, "", 1)
	return err
}

// Writable returns an error if dead letters cannot be written or listed, or if the server ignores
// the condition of a write. With such a server, two processes could handle one dead letter again at
// the same time. Call Writable at the start to find such a problem before a record has to be
// dead-lettered. It leaves a small object, PREFIX/_weir/letters.
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
			"two processes could handle one dead letter again; use S3, or a store that keeps this condition", b.bucket.Name)
	}
	return err
}
