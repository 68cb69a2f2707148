package codec

import (
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

// Decode decodes the body of a GetRecords answer into p. It modifies body, which belongs to the
// page afterwards and must not be decoded again. After an error the page is empty. The error is a
// [*MalformedError].
func Decode(f Format, body []byte, p *Page) error { return decode(f, body, p, "NextShardIterator") }

// DecodeEvent is like Decode, for the payload of a SubscribeToShardEvent.
func DecodeEvent(f Format, body []byte, p *Page) error {
	return decode(f, body, p, "ContinuationSequenceNumber")
}

func decode(f Format, body []byte, p *Page, next string) error {
	stale := p.begin()
	d := decodings.Get().(*decoding)
	err := d.page(f, body, p, next)
	d.end()
	if err != nil {
		clear(p.Records)
		p.begin()
	}
	p.Last = err == nil
	p.finish(stale)
	return err
}

// reader parses an answer in either format. The sequence of calls determines the expected types. A
// member with the value null counts as absent.
type reader interface {
	// object calls member for each member. The function must consume the value, for example with
	// skip.
	object(member func(name []byte) error) error
	// array calls element for each element. The function must consume the element unless null is
	// set.
	array(element func(null bool) error) error
	// text returns a string without copying it.
	text() ([]byte, error)
	// integer returns a whole number.
	integer() (int64, error)
	skip() error
	// records appends the list of records to the page.
	records(p *Page) error
	// end checks that the body ends here. In JSON, blanks may follow.
	end() error
	// malformed returns an error for the current position.
	malformed(what string) error
}

func newReader(f Format, body []byte) reader {
	if f == JSON {
		return &jsonReader{b: body}
	}
	return &cborReader{b: body}
}

// decoding is the state for decoding one body. It is reused to save allocations.
type decoding struct {
	cbor   cborReader
	json   jsonReader
	r      reader // cbor or json
	p      *Page
	next   string             // the name of the member for Page.Next
	member func([]byte) error // calls readMember; allocated once
}

var decodings = sync.Pool{New: func() any {
	d := new(decoding)
	d.member = d.readMember
	return d
}}

func (d *decoding) page(f Format, body []byte, p *Page, next string) error {
	d.p, d.next = p, next
	if f == JSON {
		d.json = jsonReader{b: body}
		d.r = &d.json
	} else {
		d.cbor = cborReader{b: body}
		d.r = &d.cbor
	}
	if err := d.r.object(d.member); err != nil {
		return err
	}
	return d.r.end()
}

// end clears d and returns it to the pool.
func (d *decoding) end() {
	*d = decoding{member: d.member}
	decodings.Put(d)
}

func (d *decoding) readMember(name []byte) error {
	if string(name) == "Records" {
		d.p.Records, d.p.Bytes, d.p.Misplaced, d.p.Marked = d.p.Records[:0], 0, 0, false
		return d.r.records(d.p)
	}
	return readMember(d.r, d.p, name, d.next)
}

// readMember reads any member of an answer except its records.
func readMember(r reader, p *Page, name []byte, next string) error {
	switch string(name) {
	case "MillisBehindLatest":
		ms, err := r.integer()
		p.Behind = millis(ms)
		return err
	case "ChildShards":
		return readChildren(r, p)
	case next:
		s, err := r.text()
		if err == nil && len(s) > MaxIterator {
			err = r.malformed(next + " is longer than 64 KiB")
		}
		p.Next = string(s)
		return err
	default:
		return r.skip()
	}
}

// millis converts a distance from the tip to a duration. Values outside the valid range are limited
// to it.
func millis(ms int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(max(ms, 0), most)) * time.Millisecond
}

func readChildren(r reader, p *Page) error {
	p.Children = nil
	return r.array(func(null bool) error {
		if len(p.Children) == maxChildren {
			return r.malformed("too many child shards")
		}
		p.Children = append(p.Children, types.ChildShard{})
		if null {
			return nil
		}
		return readChild(r, &p.Children[len(p.Children)-1])
	})
}

func readChild(r reader, c *types.ChildShard) error {
	return r.object(func(name []byte) error {
		switch string(name) {
		case "ShardId":
			return readString(r, &c.ShardId)
		case "ParentShards":
			c.ParentShards = []string{}
			return r.array(func(null bool) error {
				if len(c.ParentShards) == maxParents {
					return r.malformed("too many parent shards")
				}
				var id []byte
				var err error
				if !null {
					id, err = r.text()
				}
				c.ParentShards = append(c.ParentShards, string(id))
				return err
			})
		case "HashKeyRange":
			c.HashKeyRange = &types.HashKeyRange{}
			return r.object(func(name []byte) error {
				switch string(name) {
				case "StartingHashKey":
					return readString(r, &c.HashKeyRange.StartingHashKey)
				case "EndingHashKey":
					return readString(r, &c.HashKeyRange.EndingHashKey)
				default:
					return r.skip()
				}
			})
		default:
			return r.skip()
		}
	})
}

func readString(r reader, to **string) error {
	s, err := r.text()
	*to = aws.String(string(s))
	return err
}

// field is a member of a record.
type field uint8

const (
	fieldUnknown field = iota
	fieldData
	fieldKey
	fieldSequence
	fieldArrival
	fieldEncryption
)

func fieldOf(name []byte) field {
	switch string(name) {
	case "Data":
		return fieldData
	case "PartitionKey":
		return fieldKey
	case "SequenceNumber":
		return fieldSequence
	case "ApproximateArrivalTimestamp":
		return fieldArrival
	case "EncryptionType":
		return fieldEncryption
	}
	return fieldUnknown
}

// kms is the encryption type of records that Kinesis encrypted.
const kms = "KMS"
