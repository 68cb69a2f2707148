package model

import "crypto/md5"

// Pack makes one payload of many, all of one key, as the Kinesis Producer Library does.
func Pack(key string, payloads [][]byte) []byte {
	field := func(b []byte, number byte, v []byte) []byte {
		b = varint(append(b, number<<3|2), len(v))
		return append(b, v...)
	}
	message := field(nil, 1, []byte(key))
	for _, p := range payloads {
		message = field(message, 3, field([]byte{1 << 3, 0}, 3, p))
	}
	sum := md5.Sum(message)
	return append(append([]byte{0xf3, 0x89, 0x9a, 0xc2}, message...), sum[:]...)
}

func varint(b []byte, n int) []byte {
	for ; n >= 128; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return append(b, byte(n))
}
