package wire

import (
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-go/weir/internal/wire/codec"
)

// putDraft is a PutRecords request that is being written. The head contains a signature of the
// body's hash, so it is written last, into reserved space before the body. Parts of the body are
// hashed as they are written, while they are in the processor's cache.
type putDraft struct {
	buf    []byte
	head   int // bytes before the body
	hash   hash.Hash
	hashed int // bytes of buf that are hashed or reserved for the head
	small  draft

	// With split, large data are not copied to buf. The request is then buf up to first, and parts.
	split bool
	first int // 0 if there are no parts
	parts [][]byte
	since int // bytes of buf that are in first and in parts
	apart int // bytes of data in parts
}

// largeData is the size from which a copy of data costs more than hashing and sending them apart.
const largeData = 4 << 10

var putDrafts = sync.Pool{New: func() any { return &putDraft{hash: sha256.New()} }}

// hashAfter is the number of bytes that are hashed at a time.
const hashAfter = 32 << 10

// reset prepares d for a request. head and body are the sizes to reserve.
func (d *putDraft) reset(head, body int) {
	d.buf = slices.Grow(d.buf[:0], head+body)[:head]
	d.head, d.hashed = head, head
	d.hash.Reset()
	d.first, d.since, d.apart, d.parts = 0, 0, 0, d.parts[:0]
}

// release returns d to the pool.
func (d *putDraft) release() {
	clear(d.parts)
	d.parts = d.parts[:0]
	putDrafts.Put(d)
}

// cut ends the current part, which data follows.
func (d *putDraft) cut(data []byte) {
	d.written(true)
	if d.first == 0 {
		d.first = len(d.buf)
	} else {
		d.parts = append(d.parts, d.buf[d.since:])
	}
	d.since = len(d.buf)
	if data != nil {
		d.hash.Write(data)
		d.parts = append(d.parts, data)
		d.apart += len(data)
	}
}

// written hashes the appended bytes if there are enough of them, or if they are the last ones.
func (d *putDraft) written(last bool) {
	if last || len(d.buf)-d.hashed >= hashAfter {
		d.hash.Write(d.buf[d.hashed:])
		d.hashed = len(d.buf)
	}
}

// putCall returns the PutRecords call in a format.
func putCall(f codec.Format) call {
	if f == codec.JSON {
		return putJSON
	}
	return putCBOR
}

// putMessage returns a signed request with head and body, and the parts that follow it. They are
// valid until the draft is released.
func (ep *endpoint) putMessage(d *putDraft, now time.Time, cred *aws.Credentials, f codec.Format, req *PutRequest) (message []byte, parts [][]byte) {
	at := ep.templates.signedAt(now)
	t, of := ep.templateFor(cred, at), putCall(f)
	const digits = 20 // digits of the body's length
	most := len(t.text[of].head) + len(at) + len(t.authorization) + 2*sha256.Size + len(lengthField) + digits + len("\r\n\r\n")
	d.split = true
	size := req.size(f)
	if f == codec.CBOR {
		size -= req.apart()
	}
	d.reset(most, size)
	req.appendTo(d, f)
	d.cut(nil)

	var sum [sha256.Size]byte
	d.hash.Sum(sum[:0])
	signature := t.signature(&d.small, of, at, sum)
	m := append(append(append(d.small.message[:0], t.text[of].head...), at...), t.authorization...)
	m = append(append(m, signature...), lengthField...)
	m = append(strconv.AppendInt(m, int64(len(d.buf)-d.head+d.apart), 10), "\r\n\r\n"...)
	d.small.message = m
	from := d.head - len(m)
	copy(d.buf[from:], m)
	return d.buf[from:d.first], d.parts
}

// apart returns the size of the data that a split draft does not copy.
func (r *PutRequest) apart() (n int) {
	for i := range r.Entries {
		if e := &r.Entries[i]; e.Packed == nil && len(e.Data) >= largeData {
			n += len(e.Data)
		}
	}
	return n
}

// size returns the maximum size of the body in bytes. It does not include the additional bytes for
// characters that JSON escapes.
func (r *PutRequest) size(f codec.Format) int {
	n := 100 + len(r.StreamName) + len(r.StreamARN)
	for i := range r.Entries {
		e := &r.Entries[i]
		data := e.size()
		if f == codec.JSON {
			data = base64.StdEncoding.EncodedLen(data)
		}
		n += data + len(e.PartitionKey) + len(e.ExplicitHashKey) + 64
	}
	return n
}

func (e *PutEntry) size() int {
	if e.Packed != nil {
		return e.Packed.Size()
	}
	return len(e.Data)
}

// appendTo appends the body of the request.
func (r *PutRequest) appendTo(d *putDraft, f codec.Format) {
	if f == codec.JSON {
		r.appendJSON(d)
		return
	}
	members := 1
	for _, s := range []string{r.StreamName, r.StreamARN} {
		if s != "" {
			members++
		}
	}
	b := codec.AppendMap(d.buf, members)
	if r.StreamName != "" {
		b = codec.AppendText(codec.AppendText(b, "StreamName"), r.StreamName)
	}
	if r.StreamARN != "" {
		b = codec.AppendText(codec.AppendText(b, "StreamARN"), r.StreamARN)
	}
	d.buf = codec.AppendArray(codec.AppendText(b, "Records"), len(r.Entries))
	for i := range r.Entries {
		r.Entries[i].appendCBOR(d)
		d.written(false)
	}
}

func (e *PutEntry) appendCBOR(d *putDraft) {
	members := 1
	if e.PartitionKey != "" {
		members++
	}
	if e.ExplicitHashKey != "" {
		members++
	}
	b := codec.AppendMap(d.buf, members)
	if e.PartitionKey != "" {
		b = codec.AppendText(codec.AppendText(b, "PartitionKey"), e.PartitionKey)
	}
	if e.ExplicitHashKey != "" {
		b = codec.AppendText(codec.AppendText(b, "ExplicitHashKey"), e.ExplicitHashKey)
	}
	b = codec.AppendBytesHead(codec.AppendText(b, "Data"), e.size())
	switch {
	case e.Packed != nil:
		d.buf = e.Packed.AppendContainer(b)
	case d.split && len(e.Data) >= largeData:
		d.buf = b
		d.cut(e.Data)
	default:
		d.buf = append(b, e.Data...)
	}
}

func (r *PutRequest) appendJSON(d *putDraft) {
	b := append(d.buf, '{')
	if r.StreamName != "" {
		b = append(codec.AppendQuoted(append(b, `"StreamName":`...), r.StreamName), ',')
	}
	if r.StreamARN != "" {
		b = append(codec.AppendQuoted(append(b, `"StreamARN":`...), r.StreamARN), ',')
	}
	d.buf = append(b, `"Records":[`...)
	var packed []byte
	for i := range r.Entries {
		e := &r.Entries[i]
		if i > 0 {
			d.buf = append(d.buf, ',')
		}
		b := append(d.buf, '{')
		if e.PartitionKey != "" {
			b = append(codec.AppendQuoted(append(b, `"PartitionKey":`...), e.PartitionKey), ',')
		}
		if e.ExplicitHashKey != "" {
			b = append(codec.AppendQuoted(append(b, `"ExplicitHashKey":`...), e.ExplicitHashKey), ',')
		}
		data := e.Data
		if e.Packed != nil {
			packed = e.Packed.AppendContainer(packed[:0])
			data = packed
		}
		b = base64.StdEncoding.AppendEncode(append(b, `"Data":"`...), data)
		d.buf = append(b, '"', '}')
		d.written(false)
	}
	d.buf = append(d.buf, ']', '}')
}

// readWhole reads a whole body. length is its size, or negative if it is unknown. most is the
// maximum size.
func readWhole(r io.Reader, length int64, most int) ([]byte, error) {
	if length < 0 {
		return readAtMost(r, int64(most))
	}
	if length > int64(most) {
		return nil, codec.ErrTooLarge
	}
	b := make([]byte, length)
	n, err := io.ReadFull(r, b)
	return b[:n], err
}
