package aggregate

import (
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// DefaultLimit is the default size in bytes up to which a [Builder] fills a payload. It is that of
// the KPL (AggregationMaxSize).
const DefaultLimit = 51_200

// ErrFull is returned by [Builder.Add] for a record that would make the payload exceed the limit.
var ErrFull = errors.New("aggregate: the record does not fit into the aggregate any more")

const maxKey = 256 // Unicode characters of a partition key

// Builder packs records into the payload of one container. The zero value is ready to use. Reuse it
// after Reset, since it keeps its buffers. It must not be used concurrently.
type Builder struct {
	// Limit is the largest payload in bytes; 0 means [DefaultLimit]. It does not include the
	// container's partition key, which the service counts: a payload and its key share the stream's
	// largest record size. Set it while the builder is empty.
	Limit int

	keys, hashes table
	records      []byte // encoded
	count        int
	last         int  // length of the last record's data
	tagged       bool // some record has tags
}

// table holds strings that records refer to by their row.
type table struct {
	rows    map[string]int
	encoded []byte
}

// Len returns the number of records added.
func (b *Builder) Len() int { return b.count }

// Size returns the exact length of what [Builder.AppendContainer] appends, 0 if no record was
// added.
func (b *Builder) Size() int {
	if b.count == 0 {
		return 0
	}
	return len(magic) + len(b.keys.encoded) + len(b.hashes.encoded) + len(b.records) + md5.Size
}

// Fits reports whether a record of size bytes of data with these keys could be added without
// exceeding the limit. The limit is that of a container, even for a first record that is put
// unwrapped unless another follows.
func (b *Builder) Fits(partitionKey, explicitHashKey string, size int) bool {
	return b.fits(partitionKey, explicitHashKey, size, 0)
}

// fits is like Fits, for a record with a number of bytes of tags.
func (b *Builder) fits(partitionKey, explicitHashKey string, size, tags int) bool {
	limit := b.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	room := min(limit, maxSize) - max(b.Size(), len(magic)+md5.Size)
	if size < 0 || size > room || tags > room {
		return false // avoids an overflow below for an invalid size
	}
	row, more := b.keys.find(partitionKey)
	inner := 1 + varintSize(row) + chunkSize(size) + tags
	if explicitHashKey != "" {
		row, grown := b.hashes.find(explicitHashKey)
		inner += 1 + varintSize(row)
		more += grown
	}
	return more+chunkSize(inner) <= room
}

// Add adds a record. Records with the same key, or the same explicit hash key, share one copy of
// it. Data is copied. The strings are retained until Reset, so they must not alias a buffer that is
// reused before.
//
// explicitHashKey is a decimal number from 0 to 2^128−1 without leading zeros, or "" for none.
// partitionKey is UTF-8 of at most 256 characters. The error is [ErrFull], or names the invalid
// key. After an error the builder is unchanged.
func (b *Builder) Add(partitionKey, explicitHashKey string, data []byte) error {
	return b.AddTagged(partitionKey, explicitHashKey, data, Tags{})
}

// AddTagged is like [Builder.Add], with tags that are stored with the record inside the container.
func (b *Builder) AddTagged(partitionKey, explicitHashKey string, data []byte, tags Tags) error {
	if err := checkKeys(partitionKey, explicitHashKey); err != nil {
		return err
	}
	if !b.fits(partitionKey, explicitHashKey, len(data), len(tags.encoded)) {
		return ErrFull
	}
	key, hash := b.keys.add(keyTableTag, partitionKey), 0
	inner := 1 + varintSize(key) + chunkSize(len(data)) + len(tags.encoded)
	if explicitHashKey != "" {
		hash = b.hashes.add(hashTableTag, explicitHashKey)
		inner += 1 + varintSize(hash)
	}
	b.records = appendVarint(append(b.records, recordsTag), inner)
	b.records = appendVarint(append(b.records, keyIndexTag), key)
	if explicitHashKey != "" {
		b.records = appendVarint(append(b.records, hashIndexTag), hash)
	}
	b.records = appendVarint(append(b.records, dataTag), len(data))
	b.records = append(b.records, data...)
	b.records = append(b.records, tags.encoded...)
	b.count, b.last, b.tagged = b.count+1, len(data), b.tagged || !tags.IsZero()
	return nil
}

func checkKeys(partitionKey, explicitHashKey string) error {
	if !utf8.ValidString(partitionKey) {
		return fmt.Errorf("aggregate: partition key %.50q is not valid UTF-8", partitionKey)
	}
	if n := utf8.RuneCountInString(partitionKey); n > maxKey {
		return fmt.Errorf("aggregate: partition key %.50q... has %d characters, at most %d are allowed", partitionKey, n, maxKey)
	}
	if explicitHashKey == "" {
		return nil
	}
	if _, ok := parseHashKey(explicitHashKey); !ok || len(explicitHashKey) > 1 && explicitHashKey[0] == '0' {
		return fmt.Errorf("aggregate: explicit hash key %.50q is not a decimal number from 0 to 2^128-1 without leading zeros", explicitHashKey)
	}
	return nil
}

// Append appends the payload of the record to be put, and returns the extended buffer. Several
// records make a container. A single record gains nothing from a container, unless it has tags: its
// payload is its own data, to be put with its own keys. Without records it appends nothing.
func (b *Builder) Append(dst []byte) []byte {
	if b.count == 1 && !b.tagged {
		return append(dst, b.records[len(b.records)-b.last:]...)
	}
	return b.AppendContainer(dst)
}

// AppendContainer is like [Builder.Append], but also wraps a single record. Use it for data that
// would itself be taken for an aggregate, or if the container must not have the record's key.
func (b *Builder) AppendContainer(dst []byte) []byte {
	if b.count == 0 {
		return dst
	}
	dst = append(slices.Grow(dst, b.Size()), magic...)
	start := len(dst)
	dst = append(dst, b.keys.encoded...)
	dst = append(dst, b.hashes.encoded...)
	dst = append(dst, b.records...)
	sum := md5.Sum(dst[start:])
	return append(dst, sum[:]...)
}

// Reset makes b empty. Its limit stays.
func (b *Builder) Reset() {
	b.keys.reset()
	b.hashes.reset()
	b.records, b.count, b.last, b.tagged = b.records[:0], 0, 0, false
}

// find returns the row of s, or the row that it would get and the number of bytes by which the
// table would grow.
func (t *table) find(s string) (row, grows int) {
	if row, ok := t.rows[s]; ok {
		return row, 0
	}
	return len(t.rows), chunkSize(len(s))
}

func (t *table) add(tag byte, s string) (row int) {
	row, grows := t.find(s)
	if grows == 0 {
		return row
	}
	if t.rows == nil {
		t.rows = make(map[string]int)
	}
	t.rows[s] = row
	t.encoded = append(appendVarint(append(t.encoded, tag), len(s)), s...)
	return row
}

func (t *table) reset() {
	clear(t.rows)
	t.encoded = t.encoded[:0]
}

func appendVarint(dst []byte, n int) []byte { return binary.AppendUvarint(dst, uint64(n)) }

func varintSize(n int) int { return (bits.Len(uint(n)|1) + 6) / 7 }

// chunkSize returns the encoded size of n bytes with their tag and length.
func chunkSize(n int) int { return 1 + varintSize(n) + n }
