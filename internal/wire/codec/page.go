package codec

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/shard"
)

// Record is one record of a page. Data, Key and SequenceNumber refer to the page's body and are
// valid as long as the page is. Data has no spare capacity, so appending to it copies.
type Record struct {
	Data           []byte
	Key            string // the partition key; may be empty
	SequenceNumber string
	Arrival        int64  // Unix milliseconds; 0 if unknown
	Done           uint32 // shard.Whole; code that unpacks records counts here
	Encrypted      bool   // by the service, with a KMS key
	Failed         bool   // it is not handed to a handler; set by filters in a copy
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

// Origin is the shard that a record was read from. The code that delivers records sets it. All
// records of a shard share one, except those with tags, which have their own.
type Origin struct {
	Stream, Shard string

	// The place of the record that Tags belong to. Tags have their own memory.
	Tags   aggregate.Tags
	Number string
	Done   uint32
}

// Same reports whether both are of the same shard.
func (o *Origin) Same(as *Origin) bool { return o.Stream == as.Stream && o.Shard == as.Shard }

// TagsOf returns the tags of the record at a place. It returns none if the origin belongs to
// another record: records are reused, and a handler may have modified one.
func (o *Origin) TagsOf(number string, done uint32) aggregate.Tags {
	if o.Done != done || o.Number != number {
		return aggregate.Tags{}
	}
	return o.Tags
}

// Page is one answer to GetRecords, or one event of a subscription. The zero Page is ready to use.
// A page may be reused for the next call, which overwrites the slice Records. Release it before
// that if its memory should be returned. It is not safe for concurrent use.
type Page struct {
	// Records in the order of the shard. Without [Bodies.Reuse] their contents stay valid as long
	// as they are referenced, and with it until Release.
	Records []Record
	// Bytes of data and keys of all records.
	Bytes int
	// Misplaced is the index of the first record whose number is not higher than that of the
	// previous one; 0 if there is none.
	Misplaced int
	// Marked says that some record begins like an aggregate.
	Marked bool
	// Last says that the page is the whole answer, or its last part ([Parts]). Next, Behind and
	// Children are only valid then.
	Last bool
	// Next is the next iterator, or the continuation of a subscription. It is empty if the answer
	// had none, which together with Children means that the shard has ended. It is a copy.
	Next string
	// Behind is how far the answer was behind the tip; negative if the service did not say.
	Behind time.Duration
	// Children are those of a shard that has ended. They are copies.
	Children []types.ChildShard
	// Text says that data came as base64 text instead of bytes.
	Text bool
	// RequestID is the service's ID of the call; may be empty.
	RequestID string
	// Memory, if not nil, provides the bytes for an answer before the page makes room for it, and
	// gets them back with Release, Reset or the next call. If it does not provide them, the call
	// fails with a [*NoMemoryError]. Calls do not change this field.
	Memory Memory

	memory *memory // returned by Release; nil if the garbage collector frees it
	lent   uint64  // the number with which memory was lent to this page
	held   int     // bytes taken from Memory
}

// begin empties the page for the next answer and keeps the slice Records. Its result must be passed
// to finish.
func (p *Page) begin() (stale []Record) {
	stale = p.Records
	*p = Page{Records: p.Records[:0], Behind: -1, Memory: p.Memory, memory: p.memory, lent: p.lent, held: p.held}
	return stale
}

// finish clears the records that this answer did not use, so that they do not keep another body
// alive.
func (p *Page) finish(stale []Record) {
	if n := len(p.Records); n < len(stale) {
		clear(stale[n:])
	}
}

// usualRecords is the maximum of the service, and of the initial capacity.
const usualRecords = 10_000

// slot appends a record that the caller fills. It may hold old values. The caller must call added
// after that. left is the number of bytes of the answer that follow.
func (p *Page) slot(left int) *Record {
	n := len(p.Records)
	if n == cap(p.Records) {
		// Estimate how many more records follow, if they are like the earlier ones. The sizes of
		// their numbers, times and member names are not in Bytes.
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

// added counts the record that was appended last, and checks it while it is in the processor's
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
// numbers with a common beginning.
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

// word returns eight bytes of s as a number with the same order.
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

// Held returns how many bytes the page has taken from Memory.
func (p *Page) Held() int { return p.held }
