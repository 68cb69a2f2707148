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

// DefaultLimit is the default maximum size in bytes of a payload that a [Builder] fills. It is the
// default of the KPL (AggregationMaxSize).
const DefaultLimit = 51_200

// ErrFull is returned by [Builder.Add] if the record would make the payload exceed the limit.
var ErrFull = errors.New("aggregate: the record does not fit into the aggregate any more")

const maxKey = 256 // maximum number of Unicode characters of a partition key

// Builder packs records into the payload of one container. The zero value is ready to use. Reuse a
// Builder after Reset, because it keeps its buffers. It must not be used concurrently.
type Builder struct {
	// Limit is the maximum size of the payload in bytes. 0 means [DefaultLimit]. It does not
	// include the container's partition key. The service counts that key as well: the payload and
	// its key together must not exceed the stream's maximum record size. Set Limit while the
	// builder is empty.
	Limit int

	keys, hashes table
	records      []byte // encoded
	count        int
	last         int  // length of the last record's data
	tagged       bool // at least one record has tags
	numbers      numbers
}

// table contains strings. Records refer to them by their row.
type table struct {
	rows    map[string]int
	encoded []byte
}

// Len returns the number of added records.
func (b *Builder) Len() int { return b.count }

// Size returns the exact number of bytes that [Builder.AppendContainer] appends. It returns 0 if no
// record was added.
func (b *Builder) Size() int {
	if b.count == 0 {
		return 0
	}
	return len(magic) + len(b.keys.encoded) + len(b.hashes.encoded) + len(b.records) + b.numbers.size() + md5.Size
}

// Fits reports whether a record could be added without exceeding the limit. size is the size of its
// data. The limit applies to the size of the container. It applies even if the record is the only
// one, although [Builder.Append] does not pack a single record into a container.
func (b *Builder) Fits(partitionKey, explicitHashKey string, size int) bool {
	return b.fits(partitionKey, explicitHashKey, size, 0, Number{})
}

// fits is like Fits, for a record with a number and tags of the given size.
func (b *Builder) fits(partitionKey, explicitHashKey string, size, tags int, n Number) bool {
	limit := b.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	room := min(limit, maxSize) - max(b.Size(), len(magic)+md5.Size)
	if size < 0 || size > room || tags > room {
		return false // avoids an overflow below for an invalid size
	}
	row, more := b.keys.find(partitionKey)
	more += b.numbers.sizeWith(n, b.count) - b.numbers.size()
	inner := 1 + varintSize(row) + chunkSize(size) + tags
	if explicitHashKey != "" {
		row, grown := b.hashes.find(explicitHashKey)
		inner += 1 + varintSize(row)
		more += grown
	}
	return more+chunkSize(inner) <= room
}

// Add adds a record. Records with the same partition key or explicit hash key share one copy of
// that key. Data is copied. The keys are retained until Reset, so they must not refer to a buffer
// that is reused before.
//
// partitionKey is UTF-8 of at most 256 characters. explicitHashKey is a decimal number from 0 to
// 2^128−1 without leading zeros, or "" for none. The error is [ErrFull], or names the invalid key.
// After an error the builder is unchanged.
func (b *Builder) Add(partitionKey, explicitHashKey string, data []byte) error {
	return b.add(partitionKey, explicitHashKey, data, Tags{}, Number{})
}

// AddTagged is like [Builder.Add], but stores tags with the record inside the container.
func (b *Builder) AddTagged(partitionKey, explicitHashKey string, data []byte, tags Tags) error {
	return b.add(partitionKey, explicitHashKey, data, tags, Number{})
}

func (b *Builder) add(partitionKey, explicitHashKey string, data []byte, tags Tags, n Number) error {
	if err := checkKeys(partitionKey, explicitHashKey); err != nil {
		return err
	}
	if !b.fits(partitionKey, explicitHashKey, len(data), len(tags.encoded), n) {
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
	b.numbers.add(n, b.count)
	b.count, b.last, b.tagged = b.count+1, len(data), b.tagged || !tags.IsZero()
	return nil
}

func checkKeys(partitionKey, explicitHashKey string) error {
	if !utf8.ValidString(partitionKey) {
		return fmt.Errorf("aggregate: partition key %.50q is not valid UTF-8", partitionKey)
	}
	if len(partitionKey) > maxKey { // in bytes, so there may be fewer characters
		if n := utf8.RuneCountInString(partitionKey); n > maxKey {
			return fmt.Errorf("aggregate: partition key %.50q... has %d characters, at most %d are allowed", partitionKey, n, maxKey)
		}
	}
	if explicitHashKey == "" {
		return nil
	}
	if _, ok := parseHashKey(explicitHashKey); !ok || len(explicitHashKey) > 1 && explicitHashKey[0] == '0' {
		return fmt.Errorf("aggregate: explicit hash key %.50q is not a decimal number from 0 to 2^128-1 without leading zeros", explicitHashKey)
	}
	return nil
}

// Append appends the payload of the record to put, and returns the extended buffer. Several records
// make a container. A single record without tags and number needs no container: its payload is its
// own data, to be put with its own keys. Without records Append appends nothing.
func (b *Builder) Append(dst []byte) []byte {
	if b.count == 1 && !b.tagged && b.numbers.last.count == 0 {
		return append(dst, b.records[len(b.records)-b.last:]...)
	}
	return b.AppendContainer(dst)
}

// AppendContainer is like [Builder.Append], but also packs a single record into a container. Use it
// for data that readers would otherwise treat as an aggregate, or if the put record must have
// another key than the packed record.
func (b *Builder) AppendContainer(dst []byte) []byte {
	if b.count == 0 {
		return dst
	}
	dst = append(slices.Grow(dst, b.Size()), magic...)
	start := len(dst)
	dst = append(dst, b.keys.encoded...)
	dst = append(dst, b.hashes.encoded...)
	dst = b.numbers.appendTo(append(dst, b.records...))
	sum := md5.Sum(dst[start:])
	return append(dst, sum[:]...)
}

// Reset removes all records from b. It keeps the limit.
func (b *Builder) Reset() {
	b.keys.reset()
	b.hashes.reset()
	b.numbers.reset()
	b.records, b.count, b.last, b.tagged = b.records[:0], 0, 0, false
}

// find returns the row of s. If the table does not contain s, find returns the row that s would
// get, and the number of bytes by which the table would grow.
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

// chunkSize returns the encoded size of n bytes including their tag and length.
func chunkSize(n int) int { return 1 + varintSize(n) + n }
