package model

import (
	"encoding/binary"
	"errors"
	"sync"
)

// pageCBOR is an answer to GetRecords that can be encoded in CBOR.
type pageCBOR struct {
	records  []Record
	next     string
	behind   int64
	children []*Shard
}

func (p *pageCBOR) encode() []byte {
	size := 256
	for _, r := range p.records {
		size += r.size() + 128
	}
	b := room(size)
	members := 2
	if p.next != "" {
		members++
	}
	if p.children != nil {
		members++
	}
	b = head(b, 5, uint64(members))
	b = head(text(b, "Records"), 4, uint64(len(p.records)))
	for _, r := range p.records {
		b = head(b, 5, 4)
		b = text(text(b, "SequenceNumber"), Number(r.Seq))
		b = head(text(b, "ApproximateArrivalTimestamp"), 6, 1)
		b = head(b, 0, uint64(r.Arrival.UnixMilli()))
		b = text(text(b, "PartitionKey"), r.Key)
		b = append(append(head(text(b, "Data"), 2, uint64(r.size())), r.Data...), r.Rest...)
	}
	b = head(text(b, "MillisBehindLatest"), 0, uint64(p.behind))
	if p.next != "" {
		b = text(text(b, "NextShardIterator"), p.next)
	}
	if p.children != nil {
		b = head(text(b, "ChildShards"), 4, uint64(len(p.children)))
		for _, c := range p.children {
			b = head(b, 5, 3)
			b = text(text(b, "ShardId"), c.ID)
			b = head(text(b, "ParentShards"), 4, uint64(len(c.Parents)))
			for _, parent := range c.Parents {
				b = text(b, parent.ID)
			}
			b = head(text(b, "HashKeyRange"), 5, 2)
			b = text(text(b, "StartingHashKey"), c.hashes.StartingHashKey)
			b = text(text(b, "EndingHashKey"), c.hashes.EndingHashKey)
		}
	}
	return b
}

// rooms contains the memory of large answers that have been read. Allocating such memory costs as
// much as filling it.
var rooms sync.Pool

const largeRoom = 32 << 10

func room(size int) []byte {
	if size < largeRoom {
		return make([]byte, 0, size)
	}
	if b, ok := rooms.Get().(*[]byte); ok && cap(*b) >= size {
		return (*b)[:0]
	}
	return make([]byte, 0, size)
}

// Release frees the memory of the answer's body.
func (a *Answer) Release() {
	if b := a.Body; a.CBOR && cap(b) >= largeRoom {
		rooms.Put(&b)
	}
	a.Body = nil
}

func head(b []byte, major byte, n uint64) []byte {
	major <<= 5
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n < 1<<8:
		return append(b, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, major|27), n)
}

func text(b []byte, s string) []byte { return append(head(b, 3, uint64(len(s))), s...) }

var errCBOR = errors.New("not the CBOR of a request")

// readCBOR reads a map of texts and numbers, and calls field for each entry. That is sufficient for
// requests for records. The texts alias b.
func readCBOR(b []byte, field func(name, text []byte, n uint64)) error {
	next := func() (major byte, n uint64, ok bool) {
		if len(b) == 0 {
			return 0, 0, false
		}
		major, n = b[0]>>5, uint64(b[0]&31)
		b = b[1:]
		if n < 24 {
			return major, n, true
		}
		size := 1 << (n - 24)
		if n > 27 || len(b) < size {
			return 0, 0, false
		}
		n = 0
		for _, x := range b[:size] {
			n = n<<8 | uint64(x)
		}
		b = b[size:]
		return major, n, true
	}
	value := func() (text []byte, n uint64, ok bool) {
		major, n, ok := next()
		switch {
		case !ok:
			return nil, 0, false
		case major == 0:
			return nil, n, true
		case major != 3 || uint64(len(b)) < n:
			return nil, 0, false
		}
		text, b = b[:n], b[n:]
		return text, 0, true
	}
	major, n, ok := next()
	if !ok || major != 5 {
		return errCBOR
	}
	for range n {
		name, _, ok1 := value()
		text, n, ok2 := value()
		if !ok1 || !ok2 {
			return errCBOR
		}
		field(name, text, n)
	}
	return nil
}
