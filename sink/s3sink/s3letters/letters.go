// Package s3letters keeps dead letters in S3, with one object for each letter.
package s3letters

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/guard"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/sink/s3sink/internal/bucket"
)

// Box is a [deadletter.Box] in a bucket. Its methods may be called concurrently. Applications may
// share a prefix, even if they read the same stream. The key of a dead letter is the prefix and the
// letter's ID, which begins with the application:
//
//	PREFIX/billing/orders/shardId-000000000007/4959….json
//
// If the key would be longer than S3 allows, it is PREFIX/%HASH.json with the SHA-256 of the ID.
// Dead letters of earlier versions have no application in their key. The box reads them too.
//
// An object contains the letter's JSON. The state of the dead letter is in the members "state",
// "since" and "marked_by". A dead letter replaces an existing dead letter with the same ID. A dead
// letter that is put again becomes Kept again, even if it was handled or dropped before. A worker
// waits until its dead letters are written.
//
// Two processes cannot handle the same dead letter without noticing it. A Box marks a dead letter
// that it has yielded only if the dead letter has not changed since then. If two processes list the
// same dead letters and handle them, the second mark of a dead letter fails with
// [deadletter.ErrChanged].
//
// The box remembers the dead letters that it has yielded, with about 80 bytes for each. It forgets
// a dead letter if the next complete listing does not contain it. It does not remember dead letters
// that it only puts.
type Box struct {
	bucket bucket.Bucket
	prefix string
	by     string // distinguishes the marks of this Box from those of others

	mu   sync.Mutex
	seen versions // guarded by mu
}

// New returns a box. It makes no call. If the prefix does not end in a slash, New appends one. The
// prefix "" means the whole bucket. Only objects whose keys end in .json are letters.
func New(client *s3.Client, bucketName, prefix string) (*Box, error) {
	prefix, ok := bucket.CheckPrefix(prefix)
	switch {
	case client == nil:
		return nil, errors.New("s3letters: the client is nil")
	case bucketName == "":
		return nil, errors.New("s3letters: no bucket is named")
	case !ok:
		return nil, fmt.Errorf("s3letters: the prefix %.300q must be UTF-8 of at most 256 bytes, without a slash at its beginning or two in a row", prefix)
	}
	return &Box{
		bucket: bucket.Bucket{Client: client, Name: bucketName, Who: "s3letters"}, prefix: prefix,
		by: strconv.FormatUint(rand.Uint64(), 36),
	}, nil
}

const (
	ending  = ".json"
	atOnce  = 8
	mostKey = 1024
	mostID  = 2048 // bytes of an ID; an application of 255 bytes takes up to 765 of them
	// mostLetter is the maximum size of a letter: a record of 10 MiB in base64, and its
	// description.
	mostLetter = 16 << 20
)

// content is the content of an object.
type content struct {
	deadletter.Item
	By string `json:"marked_by,omitempty"`
}

// key returns the key of a letter. The keys of a shard sort like the positions in the shard.
func (b *Box) key(id string) (string, error) {
	parts := strings.Split(id, "/")
	last := &parts[len(parts)-1]
	name := ""
	if p, err := shard.Parse(*last); err == nil && p.Kind() == shard.Sequence {
		name = p.SequenceNumber()
		if p.Done() != shard.Whole {
			name += fmt.Sprintf("+%010d", p.Done())
		}
		parts = parts[:len(parts)-1]
	}
	for i := range parts {
		parts[i] = escape(parts[i])
	}
	if name != "" {
		parts = append(parts, name)
	}
	key := b.prefix + strings.Join(parts, "/") + ending
	if len(key) > mostKey { // the name of an application can be that long
		sum := sha256.Sum256([]byte(id))
		key = b.prefix + "%" + hex.EncodeToString(sum[:]) + ending
	}
	if id == "" || len(id) > mostID {
		return "", fmt.Errorf("s3letters: the letter's ID %.300q cannot be part of a key in S3", id)
	}
	return key, nil
}

// escape encodes bytes as % and two hexadecimal digits. It leaves letters, digits, - and _
// unchanged, and dots except at the start.
func escape(s string) string {
	var e strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			e.WriteByte(c)
		default:
			fmt.Fprintf(&e, "%%%02X", c)
		}
	}
	if s == "" {
		return "%"
	}
	return e.String()
}

// Put writes dead letters, several at a time. See [deadletter.Destination].
func (b *Box) Put(ctx context.Context, letters []deadletter.Letter) error {
	return inParallel(len(letters), func(i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		key, err := b.key(letters[i].ID)
		if err != nil {
			return err
		}
		text, err := json.Marshal(letters[i])
		if err != nil {
			return fmt.Errorf("s3letters: letter %s: %w", letters[i].ID, err)
		}
		_, _, err = b.bucket.Put(ctx, key, text, nil, bucket.Condition{})
		return err
	})
}

// Mark sets the state of letters. If this box has yielded a dead letter and the dead letter has
// changed since then, Mark returns [deadletter.ErrChanged] for it. It still marks the other
// letters. See [deadletter.Box].
func (b *Box) Mark(ctx context.Context, to deadletter.State, ids ...string) error {
	switch to {
	case deadletter.Kept, deadletter.Begun, deadletter.Done, deadletter.Dropped:
	default:
		return fmt.Errorf("s3letters: %q is not a valid state of a dead letter", to)
	}
	return inParallel(len(ids), func(i int) error { return b.mark(ctx, to, ids[i]) })
}

func (b *Box) mark(ctx context.Context, to deadletter.State, id string) error {
	key, err := b.key(id)
	if err != nil {
		return err
	}
	var written []byte
	for {
		now, etag, err := b.read(ctx, key)
		if err != nil {
			return err
		}
		if written != nil && now.By == b.by { // the answer to this box's own write was lost
			if text, err := json.Marshal(now); err == nil && bytes.Equal(text, written) {
				b.know(key, etag)
				return nil
			}
		}
		if b.changed(key, etag) {
			return fmt.Errorf("%w: %s, which is %s now", deadletter.ErrChanged, id, now.State)
		}
		now.State, now.Since, now.By = to, time.Now().UTC(), b.by
		if to == deadletter.Kept {
			now.Since = time.Time{}
		}
		if written, err = json.Marshal(now); err != nil {
			return err
		}
		made, held, err := b.bucket.Put(ctx, key, written, nil, bucket.Condition{ETag: etag})
		if err != nil {
			return err
		}
		if held {
			b.know(key, made)
			return nil
		}
	}
}

// read returns the content of a dead letter, which must exist.
func (b *Box) read(ctx context.Context, key string) (content, string, error) {
	text, etag, err := b.bucket.Get(ctx, key, mostLetter)
	if err == nil && text == nil {
		err = fmt.Errorf("s3letters: there is no dead letter %s", key)
	}
	if err != nil {
		return content{}, "", err
	}
	c, err := b.parse(key, text)
	return c, etag, err
}

// parse decodes a dead letter, and checks that its ID belongs to the key.
func (b *Box) parse(key string, text []byte) (content, error) {
	l, err := deadletter.Parse(text)
	var c content
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	c.Letter = l
	of, keyErr := b.key(l.ID)
	switch {
	case err != nil:
	case keyErr != nil || of != key:
		err = fmt.Errorf("its ID is %.300q", c.ID)
	case c.State == "":
		c.State = deadletter.Kept
	case !slices.Contains([]deadletter.State{deadletter.Kept, deadletter.Begun, deadletter.Done, deadletter.Dropped}, c.State):
		err = fmt.Errorf("its state is %.30q", c.State)
	}
	if err != nil {
		return content{}, fmt.Errorf("s3letters: %s is not a dead letter: %w", key, err)
	}
	return c, nil
}

// Items yields all dead letters, one shard after the other. The dead letters of a shard are in the
// order of their records. Items lists a thousand keys at a time, and reads each letter. See
// [deadletter.Box].
func (b *Box) Items(ctx context.Context) iter.Seq2[deadletter.Item, error] {
	return func(yield func(deadletter.Item, error) bool) {
		after := ""
		b.mu.Lock()
		pass := b.seen.Begin()
		b.mu.Unlock()
		for {
			keys, err := b.bucket.List(ctx, b.prefix, after, 1000)
			if err != nil {
				yield(deadletter.Item{}, err)
				return
			}
			if len(keys) == 0 {
				b.mu.Lock()
				b.seen.End(pass)
				b.mu.Unlock()
				return
			}
			after = keys[len(keys)-1]
			keys = slices.DeleteFunc(keys, func(k string) bool { return !strings.HasSuffix(k, ending) })
			for some := range slices.Chunk(keys, atOnce) {
				if !b.yield(ctx, some, yield) {
					return
				}
			}
		}
	}
}

// yield reads several dead letters at a time, and yields them in order.
func (b *Box) yield(ctx context.Context, keys []string, yield func(deadletter.Item, error) bool) bool {
	items, etags, errs := make([]content, len(keys)), make([]string, len(keys)), make([]error, len(keys))
	_ = inParallel(len(keys), func(i int) error {
		items[i], etags[i], errs[i] = b.read(ctx, keys[i])
		return nil
	})
	for i, key := range keys {
		if ctx.Err() != nil {
			yield(deadletter.Item{}, context.Cause(ctx))
			return false
		}
		b.know(key, etags[i]) // if the dead letter could not be read, this records only that it exists
		if !yield(items[i].Item, errs[i]) {
			return false
		}
	}
	return true
}

// know records which version of a dead letter the box has seen.
func (b *Box) know(key, etag string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen.note(key, etag)
}

// changed reports whether the box has seen another version of a letter.
func (b *Box) changed(key, etag string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen.other(key, etag)
}

// inParallel calls f with the numbers from 0 to n-1, several at a time, and joins the first errors.
func inParallel(n int, f func(int) error) error {
	const most = 3 // an outage causes the same error for every dead letter
	var mu sync.Mutex
	var errs []error
	failed := 0
	turns := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range n {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			err := guard.Call(func() error { return f(i) })
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				return
			}
			if failed++; failed <= most {
				errs = append(errs, err)
			}
		})
	}
	all.Wait()
	if failed > most {
		errs = append(errs, fmt.Errorf("s3letters: … and %d more of %d dead letters", failed-most, n))
	}
	return errors.Join(errs...)
}
