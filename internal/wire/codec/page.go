package codec

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/shard"
)

// Record is one record of a page. Data, Key and SequenceNumber lie in the page's body: they are
// valid for as long as the page is. Data has no spare capacity, so appending to it copies.
type Record struct {
	Data           []byte
	Key            string // the partition key; empty when the producer gave none
	SequenceNumber string
	Arrival        int64  // Unix milliseconds; 0 when the service did not say
	Done           uint32 // shard.Whole; who takes records apart counts here
	Encrypted      bool   // by the service, with a KMS key
	Failed         bool   // it is handed to nobody; who filters records says so of a copy
	From           *Origin
}

// After returns the position after a record. It is a copy: it keeps no page in memory. It is zero
// if the sequence number is not a number.
func (r *Record) After() shard.Position {
	p, err := shard.Part(strings.Clone(r.SequenceNumber), r.Done)
	if err != nil {
		return shard.Position{}
	}
	return p
}

// Origin is the shard that a record was read from. Whoever hands records on fills it in. All of a
// shard share one, except those that were packed with tags, which have one each.
type Origin struct {
	Stream, Shard string

	// With Tags, which lie in memory of their own: the place of the record that they belong to.
	Tags   aggregate.Tags
	Number string
	Done   uint32
}

// Same reports whether both are of one shard.
func (o *Origin) Same(as *Origin) bool { return o.Stream == as.Stream && o.Shard == as.Shard }

// TagsOf returns the tags of the record at a place. It has none if the origin is another record's:
// memory of records is used again, and a handler may have written into it.
func (o *Origin) TagsOf(number string, done uint32) aggregate.Tags {
	if o.Done != done || o.Number != number {
		return aggregate.Tags{}
	}
	return o.Tags
}

// Page is one answer to GetRecords, or one event of a subscription. The zero Page is ready for use.
// A page may be used again for the next call, which overwrites the slice Records; Release it before
// if that is still needed. Not for concurrent use.
type Page struct {
	// Records in the order of the shard. Without [Bodies.Reuse] what they refer to stays valid for
	// as long as something refers to it; with it, until Release.
	Records []Record
	// Bytes of data and keys of all records.
	Bytes int
	// Misplaced is the index of the first record whose number is not higher than that of the one
	// before; 0 when there is none.
	Misplaced int
	// Marked says that a record begins as an aggregate does, so that one of them may be one.
	Marked bool
	// Last says that the page is all of the answer, or the last part of it ([Parts]). Next,
	// Behind and Children of other parts mean nothing yet.
	Last bool
	// Next is the iterator to read on with, or the continuation of a subscription; empty when the
	// answer had none, which together with Children means that the shard has ended. It is a copy.
	Next string
	// Behind is how far the answer was behind the tip; negative when the service did not say.
	Behind time.Duration
	// Children of a shard that has ended. They are copies.
	Children []types.ChildShard
	// Text says that data came as base64 text where bytes were expected.
	Text bool
	// RequestID that the service gave the call; empty when it gave none.
	RequestID string
	// Memory, if not nil, is asked before the page makes room for an answer, and gets it back with
	// Release, Reset or the next call. A call for which it gives nothing fails with a
	// [*NoMemoryError]. Calls leave it in place.
	Memory Memory

	memory *memory // what Release gives back; nil when that is the garbage collector's business
	lent   uint64  // to this page, and to no other with the same number
	held   int     // bytes that Memory gave
}

// begin empties the page for the next answer and keeps the memory of Records. What it returns goes
// to finish.
func (p *Page) begin() (stale []Record) {
	stale = p.Records
	*p = Page{Records: p.Records[:0], Behind: -1, Memory: p.Memory, memory: p.memory, lent: p.lent, held: p.held}
	return stale
}

// finish clears the slots that this answer did not use, so that they do not keep the body of
// another one alive.
func (p *Page) finish(stale []Record) {
	if n := len(p.Records); n < len(stale) {
		clear(stale[n:])
	}
}

// usualRecords is the most that the service returns, and what is made room for at first at most.
const usualRecords = 10_000

// slot appends a record to fill, which may hold what was there before; added has to follow. left is
// how many bytes of the answer follow.
func (p *Page) slot(left int) *Record {
	n := len(p.Records)
	if n == cap(p.Records) {
		// As many more as there may be if they are like those before, whose numbers, times and
		// names of members are not in Bytes.
		more := 1
		if n > 0 {
			per := p.Bytes/n + 128
			more = max(n, min(left/per+1, usualRecords-n))
		}
		p.reserve(n + more)
	}
	p.Records = p.Records[:n+1]
	return &p.Records[n]
}

// added counts the record that was appended last, and looks at it while it is in the processor's
// cache.
func (p *Page) added(r *Record) {
	p.Bytes += len(r.Data) + len(r.Key)
	if aggregate.Marked(r.Data) {
		p.Marked = true
	}
	if i := len(p.Records) - 1; i > 0 && p.Misplaced == 0 && !ascending(p.Records[i-1].SequenceNumber, r.SequenceNumber) {
		p.Misplaced = i
	}
}

// ascending reports whether b is higher than a, as [shard.CompareSequence] does, but faster for
// numbers that begin alike.
func ascending(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	i := 0
	for ; i <= len(a)-8; i += 8 {
		if x, y := word(a, i), word(b, i); x != y {
			return x < y
		}
	}
	return a[i:] < b[i:]
}

// word is eight bytes of s, which compare as they do.
func word(s string, i int) uint64 {
	return uint64(s[i+7]) | uint64(s[i+6])<<8 | uint64(s[i+5])<<16 | uint64(s[i+4])<<24 |
		uint64(s[i+3])<<32 | uint64(s[i+2])<<40 | uint64(s[i+1])<<48 | uint64(s[i])<<56
}

// Append adds a record as if it had been decoded last.
func (p *Page) Append(r Record) {
	p.Records = append(p.Records, r)
	p.added(&r)
}

// reserve makes room for n records in all.
func (p *Page) reserve(n int) {
	if n > cap(p.Records) {
		p.Records = append(make([]Record, 0, n), p.Records...)
	}
}

// Held is how many bytes Memory gave for the page.
func (p *Page) Held() int { return p.held }
