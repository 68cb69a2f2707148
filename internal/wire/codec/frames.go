package codec

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Messages of application/vnd.amazon.eventstream have this form. Numbers are big-endian.
//
//	4 bytes  length of the whole message
//	4        length of the headers
//	4        CRC-32 of these eight bytes
//	n        headers: length of the name (1), name, type (1), value
//	m        payload
//	4        CRC-32 of all bytes before it

// ErrFrame is wrapped by errors about a malformed event stream.
var ErrFrame = errors.New("the event stream is broken")

const (
	preludeLength = 12
	frameOverhead = preludeLength + ChecksumLength
	// ChecksumLength is the length of the checksum after a payload. Payload reads both together.
	ChecksumLength = 4
	// mostHeaders is the maximum size of the headers of a message. Kinesis sends about 120 bytes.
	// The format allows 128 KiB.
	mostHeaders = 128 << 10
	// keptHeaders is the maximum size of a headers buffer that is kept between messages.
	keptHeaders = 4 << 10
	// frameBuffer is the size of the buffer for small parts of messages. Larger payloads bypass it.
	frameBuffer = 1 << 10
)

// Frame is the head of a message with the headers that this package uses. Absent headers are nil. A
// Frame is valid until the next head is read.
type Frame struct {
	Kind      []byte // :message-type
	Event     []byte // :event-type
	Exception []byte // :exception-type
	Code      []byte // :error-code
	Message   []byte // :error-message
	Content   []byte // :content-type
	Payload   int    // length of the payload in bytes
}

// FrameReader splits an event stream into messages. The caller must read or skip the payload of a
// message before it reads the next head. After an error the reader must not be used any more.
type FrameReader struct {
	r    *bufio.Reader
	most int // maximum size of a payload
	sum  uint32
	head []byte // memory for a frame's fields
}

// NewFrameReader returns a reader of the stream r. It rejects payloads of more than most bytes.
func NewFrameReader(r io.Reader, most int) *FrameReader {
	return &FrameReader{r: bufio.NewReaderSize(r, frameBuffer), most: most, head: make([]byte, 0, 256)}
}

// Next reads the head of the next message into f. It returns io.EOF if the stream ends between two
// messages.
func (fr *FrameReader) Next(f *Frame) error {
	*f = Frame{}
	prelude, err := fr.r.Peek(preludeLength)
	switch {
	case errors.Is(err, io.EOF) && len(prelude) == 0:
		return io.EOF
	case err != nil:
		return brokeOff(err)
	}
	total, headers := binary.BigEndian.Uint32(prelude), binary.BigEndian.Uint32(prelude[4:])
	if crc32.ChecksumIEEE(prelude[:8]) != binary.BigEndian.Uint32(prelude[8:]) {
		return fmt.Errorf("%w: %q is not the beginning of a message", ErrFrame, prelude)
	}
	switch {
	case headers > mostHeaders:
		return fmt.Errorf("%w: a message with %d bytes of headers, at most %d are read", ErrFrame, headers, mostHeaders)
	case total < frameOverhead+headers:
		return fmt.Errorf("%w: a message of %d bytes with %d bytes of headers", ErrFrame, total, headers)
	case uint64(total-headers-frameOverhead) > uint64(fr.most):
		return fmt.Errorf("%w: an event of %d bytes, at most %d are read", ErrTooLarge, total-headers-frameOverhead, fr.most)
	}
	f.Payload = int(total - headers - frameOverhead)
	fr.sum = crc32.ChecksumIEEE(prelude)
	if _, err := fr.r.Discard(preludeLength); err != nil {
		return brokeOff(err)
	}
	if cap(fr.head) < int(headers) || cap(fr.head) > keptHeaders {
		fr.head = make([]byte, 0, max(int(headers), 256))
	}
	fr.head = fr.head[:headers]
	if _, err := io.ReadFull(fr.r, fr.head); err != nil {
		return brokeOff(err)
	}
	fr.sum = crc32.Update(fr.sum, crc32.IEEETable, fr.head)
	return f.parse(fr.head)
}

// Payload reads the payload of f into b. The capacity of b must exceed the payload by at least
// ChecksumLength bytes.
func (fr *FrameReader) Payload(f *Frame, b []byte) ([]byte, error) {
	b = b[:f.Payload+ChecksumLength]
	if _, err := io.ReadFull(fr.r, b); err != nil {
		return nil, brokeOff(err)
	}
	b, sum := b[:f.Payload:f.Payload], b[f.Payload:]
	if crc32.Update(fr.sum, crc32.IEEETable, b) != binary.BigEndian.Uint32(sum) {
		return nil, errChecksum
	}
	return b, nil
}

// Skip reads and drops the payload of f.
func (fr *FrameReader) Skip(f *Frame) error {
	for left := f.Payload; left > 0; {
		b, err := fr.r.Peek(min(left, frameBuffer))
		if err != nil {
			return brokeOff(err)
		}
		fr.sum = crc32.Update(fr.sum, crc32.IEEETable, b)
		left -= len(b)
		if _, err := fr.r.Discard(len(b)); err != nil {
			return brokeOff(err)
		}
	}
	sum, err := fr.r.Peek(ChecksumLength)
	if err != nil {
		return brokeOff(err)
	}
	if fr.sum != binary.BigEndian.Uint32(sum) {
		return errChecksum
	}
	_, err = fr.r.Discard(ChecksumLength)
	return err
}

var errChecksum = fmt.Errorf("%w: the checksum of a message is wrong", ErrFrame)

// brokeOff returns the error for a stream that ends within a message.
func brokeOff(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the event stream broke off: %w", err)
}

// headerString is the type code of string headers.
const headerString = 7

// headerSizes contains the size of header values by type. -1 means that the length precedes the
// value. The types are true, false, four sizes of integers, bytes, string, time and UUID.
var headerSizes = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

// parse reads a block of headers. Values that are not strings count as absent. If a name is
// repeated, the last header counts.
func (f *Frame) parse(b []byte) error {
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n+1 {
			return errHeaders
		}
		name, kind := b[1:1+n], b[1+n]
		b = b[1+n+1:]
		if int(kind) >= len(headerSizes) {
			return fmt.Errorf("%w: a header of the unknown type %d", ErrFrame, kind)
		}
		size := headerSizes[kind]
		if size < 0 {
			if len(b) < 2 {
				return errHeaders
			}
			size = int(binary.BigEndian.Uint16(b))
			b = b[2:]
		}
		if len(b) < size {
			return errHeaders
		}
		value := b[:size:size]
		b = b[size:]
		if kind != headerString {
			value = nil
		}
		f.set(name, value)
	}
	return nil
}

var errHeaders = fmt.Errorf("%w: the headers are truncated", ErrFrame)

func (f *Frame) set(name, value []byte) {
	switch string(name) {
	case ":message-type":
		f.Kind = value
	case ":event-type":
		f.Event = value
	case ":exception-type":
		f.Exception = value
	case ":error-code":
		f.Code = value
	case ":error-message":
		f.Message = value
	case ":content-type":
		f.Content = value
	}
}
