package answers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"
	"time"

	"github.com/aws/smithy-go/eventstream"
)

// Message encodes a message with the SDK's encoder. headers contains names and values in turn.
func Message(tb testing.TB, payload string, headers ...string) []byte {
	tb.Helper()
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers = append(m.Headers, eventstream.Header{Name: headers[i], Value: eventstream.StringValue(headers[i+1])})
	}
	return EncodeMessage(tb, m)
}

// EncodeMessage encodes m with the SDK's encoder.
func EncodeMessage(tb testing.TB, m eventstream.Message) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// EventMessage encodes an event of the given kind.
func EventMessage(tb testing.TB, kind, contentType, payload string) []byte {
	return Message(tb, payload, ":message-type", "event", ":event-type", kind, ":content-type", contentType)
}

// RawMessage encodes any headers and payload as a message with correct lengths and checksums.
func RawMessage(headers, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// Prelude returns the beginning of a message with the given lengths.
func Prelude(total, headers uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, total)
	b = binary.BigEndian.AppendUint32(b, headers)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// EveryType returns a message that has a header of each type.
func EveryType(tb testing.TB) []byte {
	return EncodeMessage(tb, eventstream.Message{Payload: []byte("{}"), Headers: eventstream.Headers{
		{Name: ":event-type", Value: eventstream.StringValue("Other")},
		{Name: "t", Value: eventstream.BoolValue(true)}, {Name: "f", Value: eventstream.BoolValue(false)},
		{Name: "1", Value: eventstream.Int8Value(-1)}, {Name: "2", Value: eventstream.Int16Value(2)}, {Name: "4", Value: eventstream.Int32Value(4)},
		{Name: "8", Value: eventstream.Int64Value(8)}, {Name: "b", Value: eventstream.BytesValue("bytes")}, {Name: "s", Value: eventstream.StringValue("")},
		{Name: "at", Value: eventstream.TimestampValue(time.UnixMilli(1))}, {Name: "id", Value: eventstream.UUIDValue{1, 2}},
		{Name: ":message-type", Value: eventstream.StringValue("event")}, {Name: ":content-type", Value: eventstream.BytesValue("no string")},
	}})
}

// DecodeMessage decodes a message with the SDK's decoder. A panic of the decoder becomes an error.
func DecodeMessage(d *eventstream.Decoder, r io.Reader) (m eventstream.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the SDK panicked")
		}
	}()
	return d.Decode(r, nil)
}
