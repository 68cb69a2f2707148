package model

import "crypto/md5"

// Payload is the data of a record in two parts: a unique beginning, and a rest that records share.
type Payload struct{ Data, Rest []byte }

func (p Payload) size() int { return len(p.Data) + len(p.Rest) }

// Pack packs payloads of one key into an aggregate, like the Kinesis Producer Library. numbers is
// the content of the field with the numbers of the records; without it, they have none.
func Pack(key string, payloads []Payload, numbers []byte) []byte {
	size := 4 + 6 + len(key) + 4 + len(numbers) + md5.Size
	for _, p := range payloads {
		size += p.size() + 14
	}
	b := append(make([]byte, 0, size), 0xf3, 0x89, 0x9a, 0xc2)
	b = append(varint(append(b, 1<<3|2), len(key)), key...)
	for _, p := range payloads {
		inner := len(varint([]byte{1 << 3, 0, 3<<3 | 2}, p.size())) + p.size()
		b = varint(append(b, 3<<3|2), inner)
		b = varint(append(b, 1<<3, 0, 3<<3|2), p.size())
		b = append(append(b, p.Data...), p.Rest...)
	}
	if len(numbers) > 0 {
		b = append(varint(varint(b, 2000<<3|2), len(numbers)), numbers...)
	}
	sum := md5.Sum(b[4:])
	return append(b, sum[:]...)
}

func varint(b []byte, n int) []byte {
	for ; n >= 128; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return append(b, byte(n))
}
