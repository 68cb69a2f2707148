package codec

import (
	"encoding/binary"
	"encoding/json"
)

// AppendMap appends the head of a CBOR map with n members.
func AppendMap(b []byte, n int) []byte { return appendHead(b, cborMap, uint64(n)) }

// AppendArray appends the head of a CBOR array with n elements.
func AppendArray(b []byte, n int) []byte { return appendHead(b, cborArray, uint64(n)) }

// AppendBytesHead appends the head of a CBOR byte string. The caller must append n bytes after it.
func AppendBytesHead(b []byte, n int) []byte { return appendHead(b, cborBytes, uint64(n)) }

// AppendOpenMap appends the head of a CBOR map of unknown length. The caller must end the map with
// [AppendEnd].
func AppendOpenMap(b []byte) []byte { return append(b, cborMap|cborOpen) }

// AppendEnd appends the end of a map that [AppendOpenMap] began.
func AppendEnd(b []byte) []byte { return append(b, cborBreak) }

// AppendText appends a CBOR text.
func AppendText(b []byte, s string) []byte {
	return append(appendHead(b, cborText, uint64(len(s))), s...)
}

// AppendInt appends a CBOR integer.
func AppendInt(b []byte, n int64) []byte {
	if n < 0 {
		return appendHead(b, cborNeg, uint64(-1-n))
	}
	return appendHead(b, cborUint, uint64(n))
}

// AppendBool appends a CBOR boolean.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, cborTrue)
	}
	return append(b, cborFalse)
}

// AppendMillis appends a CBOR time in the form that Kinesis expects, as milliseconds since 1970.
func AppendMillis(b []byte, ms int64) []byte { return AppendInt(append(b, cborTag|1), ms) }

// appendHead appends the first bytes of an item: its major type and its argument.
func appendHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n < 1<<8:
		return append(b, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, major|27), n)
	}
}

// AppendQuoted appends s as a JSON string.
func AppendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				return append(b, `""`...) // never happens, because every string can be encoded
			}
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
