package payload

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"
)

// LZUTF8 decompresses LZ-UTF8, the compression of lifion-kinesis. The zero value is ready to use.
//
// LZ-UTF8 is UTF-8 with references to earlier bytes. It has no mark: plain UTF-8 is a valid
// compressed text. Decode treats each payload with a reference as compressed. Binary data can also
// contain the bytes of a reference, so pass this codec to [Decode] after codecs for binary data.
//
// A reference is a byte from 0xc0 that is followed by a byte below 0x80, which UTF-8 does not
// allow. The lower five bits of the first byte are the number of bytes to copy. After 0xc0 to 0xdf,
// one byte has the distance, and after 0xe0 to 0xff two bytes, the higher one first. Source: what
// the npm package lzutf8 0.6.3 returns for chosen inputs. Tests compare the codec with the package.
type LZUTF8 struct {
	// MaxBytes limits the decoded data of a payload, in bytes. The default is 64 MiB.
	MaxBytes int
}

// Encode implements [Codec]. It does not compress. It returns UTF-8 as it is, and an error for
// other data, which the format does not support.
func (LZUTF8) Encode(_ context.Context, data []byte) ([]byte, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("payload: LZ-UTF8 supports only text in UTF-8, and the data are binary")
	}
	return data, nil
}

// Decode implements [Codec]. The error wraps [ErrTooLarge] or [ErrDamaged].
func (l LZUTF8) Decode(_ context.Context, payload []byte) (data []byte, marked bool, err error) {
	at := reference(payload, 0)
	if at == len(payload) {
		return nil, false, nil
	}
	most := mostBytes(l.MaxBytes)
	data = make([]byte, 0, min(2*len(payload), most))
	from := 0
	for {
		if at-from > most-len(data) {
			return nil, true, tooLarge(most)
		}
		data = append(data, payload[from:at]...)
		if at == len(payload) {
			return data, true, nil
		}
		count, distance, size := int(payload[at]&0x1f), int(payload[at+1]), 2
		if payload[at] >= 0xe0 {
			if size = 3; at+size > len(payload) {
				return nil, true, fmt.Errorf("%w: it ends inside a reference", ErrDamaged)
			}
			distance = distance<<8 | int(payload[at+2])
		}
		if distance == 0 || distance > len(data) {
			return nil, true, fmt.Errorf("%w: byte %d refers to bytes before the beginning", ErrDamaged, at)
		}
		if count > most-len(data) {
			return nil, true, tooLarge(most)
		}
		for range count { // the copied bytes may be part of the result of this copy
			data = append(data, data[len(data)-distance])
		}
		from = at + size
		at = reference(payload, from)
	}
}

// reference returns the index of the first reference at or after from, or len(payload).
func reference(payload []byte, from int) int {
	for i := from; i+1 < len(payload); i++ {
		if payload[i] >= 0xc0 && payload[i+1] < 0x80 {
			return i
		}
	}
	return len(payload)
}
