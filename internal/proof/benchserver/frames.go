package benchserver

import (
	"encoding/binary"
	"hash/crc32"
)

const eventStreamType = "application/vnd.amazon.eventstream"

// A frame of an event stream has a head with two lengths and a checksum, headers, the payload, and
// a checksum of everything. The code below writes it around the parts of the payload, without
// copying the payload.

// appendFrameHead appends the part of a frame before a payload of the given size.
func appendFrameHead(b []byte, event string, f format, payload int) []byte {
	start := len(b)
	b = append(b, make([]byte, 12)...)
	for _, h := range [...][2]string{{":message-type", "event"}, {":event-type", event}, {":content-type", f.contentType()}} {
		b = append(append(b, byte(len(h[0]))), h[0]...)
		b = binary.BigEndian.AppendUint16(append(b, 7), uint16(len(h[1])))
		b = append(b, h[1]...)
	}
	headers := len(b) - start - 12
	binary.BigEndian.PutUint32(b[start:], uint32(12+headers+payload+4))
	binary.BigEndian.PutUint32(b[start+4:], uint32(headers))
	binary.BigEndian.PutUint32(b[start+8:], crc32.ChecksumIEEE(b[start:start+8]))
	return b
}

// checksum returns the last part of a frame with the given parts.
func checksum(parts ...[]byte) []byte {
	sum := uint32(0)
	for _, p := range parts {
		sum = crc32.Update(sum, crc32.IEEETable, p)
	}
	return binary.BigEndian.AppendUint32(nil, sum)
}
