// Package eventstream writes the frames of an event stream of AWS, content type
// application/vnd.amazon.eventstream: a prelude with two lengths and a checksum,
// headers, a payload, and a checksum over it all.
package eventstream

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// ContentType is the media type of a stream of frames.
const ContentType = "application/vnd.amazon.eventstream"

const (
	preludeLen  = 12 // total length, length of the headers, checksum of both
	checksumLen = 4
	typeString  = 7 // of a header's value
)

// Header is a header of a frame. All that the service sends are strings.
type Header struct{ Name, Value string }

// Open appends to buf what goes before the payload of a frame. The payload is
// to be appended next, and then [Close] called with the length that buf had.
// Headers are written in the order given; what is too long for the format is
// cut.
func Open(buf []byte, headers ...Header) []byte {
	start := len(buf)
	buf = append(buf, make([]byte, preludeLen)...)
	for _, h := range headers {
		name, value := h.Name[:min(len(h.Name), math.MaxUint8)], h.Value[:min(len(h.Value), math.MaxInt16)]
		buf = append(buf, byte(len(name)))
		buf = append(buf, name...)
		buf = append(buf, typeString)
		buf = binary.BigEndian.AppendUint16(buf, uint16(len(value)))
		buf = append(buf, value...)
	}
	binary.BigEndian.PutUint32(buf[start+4:], uint32(len(buf)-start-preludeLen))
	return buf
}

// Close completes the frame that begins at start and reaches to the end of buf
// with its lengths and checksums, and returns the longer buf.
func Close(buf []byte, start int) []byte {
	binary.BigEndian.PutUint32(buf[start:], uint32(len(buf)-start+checksumLen))
	binary.BigEndian.PutUint32(buf[start+8:], crc32.ChecksumIEEE(buf[start:start+8]))
	return binary.BigEndian.AppendUint32(buf, crc32.ChecksumIEEE(buf[start:]))
}
