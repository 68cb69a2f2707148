package codec

import (
	"encoding/binary"
	"encoding/json"
)

// AppendMap appends the head of a map with n members in CBOR.
func AppendMap(b []byte, n int) []byte { return appendHead(b, cborMap, uint64(n)) }

// AppendArray appends the head of an array with n elements in CBOR.
func AppendArray(b []byte, n int) []byte { return appendHead(b, cborArray, uint64(n)) }

// AppendBytesHead appends the head of n bytes in CBOR, which have to follow.
func AppendBytesHead(b []byte, n int) []byte { return appendHead(b, cborBytes, uint64(n)) }

// AppendOpenMap appends the head of a map in CBOR that [AppendEnd] ends.
func AppendOpenMap(b []byte) []byte { return append(b, cborMap|cborOpen) }

// AppendEnd ends a map of [AppendOpenMap].
func AppendEnd(b []byte) []byte { return append(b, cborBreak) }

// AppendText appends a text in CBOR.
func AppendText(b []byte, s string) []byte {
	return append(appendHead(b, cborText, uint64(len(s))), s...)
}

// AppendInt appends a whole number in CBOR.
func AppendInt(b []byte, n int64) []byte {
	if n < 0 {
		return appendHead(b, cborNeg, uint64(-1-n))
	}
	return appendHead(b, cborUint, uint64(n))
}

// AppendBool appends a boolean in CBOR.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, cborTrue)
	}
	return append(b, cborFalse)
}

// AppendMillis appends a time in CBOR in the form that the service expects: milliseconds since
// 1970.
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
				return append(b, `""`...) // a string can always be encoded
			}
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
