package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Messages of application/vnd.amazon.eventstream, big-endian:
//
//	4 bytes  length of all of it
//	4        length of the headers
//	4        CRC-32 of these eight bytes
//	n        headers: length of the name (1), name, type (1), value
//	m        payload
//	4        CRC-32 of all before

// ErrFrame is wrapped by errors about an event stream that is not in the form of one.
var ErrFrame = errors.New("the event stream is broken")

const (
	preludeLength = 12
	frameOverhead = preludeLength + checksumLength
	// checksumLength is what follows a payload, which is read together with it.
	checksumLength = 4
	// mostHeaders bounds the headers of a message. The service sends some 120 bytes; the format
	// allows for 128 KiB.
	mostHeaders = 128 << 10
	// keptHeaders is how large a buffer for headers is kept from one message to the next.
	keptHeaders = 4 << 10
	// frameBuffer is for the small parts of messages. Payloads that are larger are read past it.
	frameBuffer = 1 << 10
)

// frame is the head of a message, as far as it matters. It is valid until the next one is read;
// what has no value is nil.
type frame struct {
	kind      []byte // :message-type
	event     []byte // :event-type
	exception []byte // :exception-type
	code      []byte // :error-code
	message   []byte // :error-message
	content   []byte // :content-type
	payload   int    // bytes
}

// frameReader takes an event stream apart. A head is followed by its payload, which has to be read
// or skipped before the next head. After an error it must not be used any more.
type frameReader struct {
	r    *bufio.Reader
	most int // bytes of a payload
	sum  uint32
	head []byte // what a frame refers to
}

func newFrameReader(r io.Reader, most int) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, frameBuffer), most: most, head: make([]byte, 0, 256)}
}

// next reads the head of a message into f. It returns io.EOF where the stream ends between two
// messages.
func (fr *frameReader) next(f *frame) error {
	*f = frame{}
	prelude, err := fr.r.Peek(preludeLength)
	switch {
	case errors.Is(err, io.EOF) && len(prelude) == 0:
		return io.EOF
	case err != nil:
		return brokeOff(err)
	}
	total, headers := binary.BigEndian.Uint32(prelude), binary.BigEndian.Uint32(prelude[4:])
	if crc32.ChecksumIEEE(prelude[:8]) != binary.BigEndian.Uint32(prelude[8:]) {
		return fmt.Errorf("%w: %q is no beginning of a message", ErrFrame, prelude)
	}
	switch {
	case headers > mostHeaders:
		return fmt.Errorf("%w: a message with %d bytes of headers, at most %d are read", ErrFrame, headers, mostHeaders)
	case total < frameOverhead+headers:
		return fmt.Errorf("%w: a message of %d bytes with %d bytes of headers", ErrFrame, total, headers)
	case uint64(total-headers-frameOverhead) > uint64(fr.most):
		return fmt.Errorf("%w: an event of %d bytes, at most %d are read", ErrTooLarge, total-headers-frameOverhead, fr.most)
	}
	f.payload = int(total - headers - frameOverhead)
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

// payload reads what follows the head of f into b, which has room for the payload and
// checksumLength bytes more.
func (fr *frameReader) payload(f *frame, b []byte) ([]byte, error) {
	b = b[:f.payload+checksumLength]
	if _, err := io.ReadFull(fr.r, b); err != nil {
		return nil, brokeOff(err)
	}
	b, sum := b[:f.payload:f.payload], b[f.payload:]
	if crc32.Update(fr.sum, crc32.IEEETable, b) != binary.BigEndian.Uint32(sum) {
		return nil, errChecksum
	}
	return b, nil
}

// skip reads the payload of f and drops it.
func (fr *frameReader) skip(f *frame) error {
	for left := f.payload; left > 0; {
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
	sum, err := fr.r.Peek(checksumLength)
	if err != nil {
		return brokeOff(err)
	}
	if fr.sum != binary.BigEndian.Uint32(sum) {
		return errChecksum
	}
	_, err = fr.r.Discard(checksumLength)
	return err
}

var errChecksum = fmt.Errorf("%w: the checksum of a message is wrong", ErrFrame)

// brokeOff is the error about a stream that ends in the middle of a message.
func brokeOff(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the event stream broke off: %w", err)
}

// headerString is the type of headers that are strings.
const headerString = 7

// headerSizes are those of values whose size depends on their type alone; -1 for those that say how
// long they are.
// true, false, integers, bytes, string, time, UUID
var headerSizes = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

// parse reads a block of headers. Values that are no strings count as absent; of two headers of one
// name the last counts.
func (f *frame) parse(b []byte) error {
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

var errHeaders = fmt.Errorf("%w: headers that are cut short", ErrFrame)

func (f *frame) set(name, value []byte) {
	switch string(name) {
	case ":message-type":
		f.kind = value
	case ":event-type":
		f.event = value
	case ":exception-type":
		f.exception = value
	case ":error-code":
		f.code = value
	case ":error-message":
		f.message = value
	case ":content-type":
		f.content = value
	}
}
