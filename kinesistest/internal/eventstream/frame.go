// Package eventstream writes the frames of AWS event streams, content type
// application/vnd.amazon.eventstream. A frame has a prelude with two lengths and a checksum, then
// headers, a payload, and a checksum of all bytes before it.
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
	typeString  = 7 // type code of a string in a header
)

// Header is a header of a frame. All of the service's headers are strings.
type Header struct{ Name, Value string }

// Open appends the beginning of a frame to buf. The caller appends the payload next, and then calls
// [Close] with the length that buf had before Open. Headers keep their order. Values that are too
// long for the format are truncated.
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

// Close completes the frame that begins at start and ends at the end of buf. It fills in the
// lengths and checksums and returns the extended buf.
func Close(buf []byte, start int) []byte {
	binary.BigEndian.PutUint32(buf[start:], uint32(len(buf)-start+checksumLen))
	binary.BigEndian.PutUint32(buf[start+8:], crc32.ChecksumIEEE(buf[start:start+8]))
	return binary.BigEndian.AppendUint32(buf, crc32.ChecksumIEEE(buf[start:]))
}
