package codec

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/shard"
)

// Record is one record of a page. Data, Key and SequenceNumber refer to the page's body, and are
// only valid as long as the page. Data has no spare capacity, so append copies it.
type Record struct {
	Data           []byte
	Key            string // the partition key; may be empty
	SequenceNumber string
	Arrival        int64  // Unix milliseconds; 0 if unknown
	Done           uint32 // shard.Whole; code that unpacks aggregates stores its count here
	Encrypted      bool   // Kinesis encrypted the record with a KMS key
	Failed         bool   // the handler must not get it; filters set this in a copy
	From           *Origin
}

// After returns the position after a record. The position does not refer to the page's memory. It
// is zero if the sequence number is not a number.
func (r *Record) After() shard.Position {
	p, err := shard.Part(strings.Clone(r.SequenceNumber), r.Done)
	if err != nil {
		return shard.Position{}
	}
	return p
}

// Origin is the shard from which a record was read. The code that delivers records sets it. All
// records of a shard share one Origin, except records with tags, which have their own.
type Origin struct {
	Stream, Shard string

	// Number and Done identify the record to which Tags belong. Tags have their own memory.
	Tags   aggregate.Tags
	Number string
	Done   uint32
}

// Same reports whether both origins are the same shard.
func (o *Origin) Same(as *Origin) bool { return o.Stream == as.Stream && o.Shard == as.Shard }

// TagsOf returns the tags of a record. It returns no tags if the origin belongs to another record.
// This can happen because records are reused, and because a handler may have modified a record.
func (o *Origin) TagsOf(number string, done uint32) aggregate.Tags {
	if o.Done != done || o.Number != number {
		return aggregate.Tags{}
	}
	return o.Tags
}

// Page is one answer to GetRecords, or one event of a subscription. The zero Page is ready to use.
// A page may be reused for the next call, which overwrites the slice Records. Release the page
// first to return its memory. A Page is not safe for concurrent use.
type Page struct {
	// Records are the records in the order of the shard. With [Bodies.Reuse] their contents are
	// valid until Release. Without reuse they are valid as long as they are referenced.
	Records []Record
	// Bytes is the size of data and keys of all records.
	Bytes int
	// Misplaced is the index of the first record whose number is not higher than the previous
	// record's. 0 means that there is no such record.
	Misplaced int
	// Marked is set if at least one record begins like an aggregate.
	Marked bool
	// Last is set if the page is a whole answer, or the last of its [Parts]. Next, Behind and
	// Children are only valid if Last is set.
	Last bool
	// Next is the next iterator, or the continuation of a subscription. It is empty if the answer
	// contained none. The shard has ended if Next is empty and Children is not. Next does not refer
	// to the page's memory.
	Next string
	// Behind is the distance from the tip. It is negative if the service did not send it.
	Behind time.Duration
	// Children are the children of a shard that has ended. They do not refer to the page's memory.
	Children []types.ChildShard
	// Text is set if data arrived as base64 text and not as bytes.
	Text bool
	// RequestID is the service's ID of the call. It may be empty.
	RequestID string
	// Memory provides the bytes for an answer before the page allocates memory for it. Release,
	// Reset and the next call return these bytes. If Memory does not provide them, the call fails
	// with a [*NoMemoryError]. Calls do not change this field. It may be nil.
	Memory Memory

	memory *memory // returned by Release; nil if the garbage collector frees it
	lent   uint64  // identifies the loan of memory to this page
	held   int     // bytes taken from Memory
}

// begin empties the page for the next answer, and keeps the slice Records. The caller must pass the
// result to finish.
func (p *Page) begin() (stale []Record) {
	stale = p.Records
	*p = Page{Records: p.Records[:0], Behind: -1, Memory: p.Memory, memory: p.memory, lent: p.lent, held: p.held}
	return stale
}

// finish clears records of the previous answer that this answer did not overwrite. Otherwise they
// would keep another body in memory.
func (p *Page) finish(stale []Record) {
	if n := len(p.Records); n < len(stale) {
		clear(stale[n:])
	}
}

// usualRecords is the maximum number of records in an answer of Kinesis. It limits the initial
// capacity.
const usualRecords = 10_000

// slot appends a record for the caller to fill. The record may contain old values. The caller must
// call added afterwards. left is the number of bytes that remain of the answer.
func (p *Page) slot(left int) *Record {
	n := len(p.Records)
	if n == cap(p.Records) {
		// Estimate how many more records follow, if they are like the previous ones. Bytes does not
		// include sequence numbers, times and names of members.
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

// added counts the last record and checks it while it is in the processor's cache.
func (p *Page) added(r *Record) {
	p.Bytes += len(r.Data) + len(r.Key)
	if aggregate.Marked(r.Data) {
		p.Marked = true
	}
	if i := len(p.Records) - 1; i > 0 && p.Misplaced == 0 && !ascending(p.Records[i-1].SequenceNumber, r.SequenceNumber) {
		p.Misplaced = i
	}
}

// ascending reports whether b is higher than a. It has the same result as [shard.CompareSequence],
// but is faster for numbers with a common beginning.
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

// reserve makes room for n records in total.
func (p *Page) reserve(n int) {
	if n > cap(p.Records) {
		p.Records = append(make([]Record, 0, n), p.Records...)
	}
}

// Held returns the number of bytes that the page has taken from Memory.
func (p *Page) Held() int { return p.held }
