// Package payload converts the data of records on their way into and out of a stream. A [Codec]
// encodes data for package producer, and decodes payloads for handlers and filters.
//
// Kinesis has no headers, so most codecs recognize their payloads by a mark in the first bytes.
// Payloads without a mark stay as they are. So producers with and without a codec can write to the
// same stream, and consumers can begin to decode before any producer encodes.
//
// weir never decodes by itself. A handler calls [Decode], and [Matching] decodes for a filter. Dead
// letters contain payloads as they are in the stream.
package payload

import (
	"context"
	"time"
)

// Codec encodes and decodes payloads. Its methods may be called concurrently, and must neither
// change nor keep their arguments.
type Codec interface {
	// Encode returns the payload that is stored for data. It may return data itself, if Decode does
	// not mistake data for an encoded payload.
	Encode(ctx context.Context, data []byte) ([]byte, error)
	// Decode returns the data of a payload. marked is false if the payload does not have the mark
	// of the codec; the other results are then zero.
	Decode(ctx context.Context, payload []byte) (data []byte, marked bool, err error)
}

// Decode decodes a payload with the first codec whose mark it has. It returns a payload without a
// mark as it is. It returns the error of the codec, for example [ErrTooLarge] or [ErrDamaged].
func Decode(ctx context.Context, payload []byte, codecs ...Codec) ([]byte, error) {
	for _, c := range codecs {
		if data, marked, err := c.Decode(ctx, payload); marked {
			return data, err
		}
	}
	return payload, nil
}

// Matcher decides which records are handled, like weir.Matcher.
type Matcher interface {
	Match(data []byte, partitionKey string, arrival time.Time) (matches, isJSON bool)
}

// Matching returns a matcher that decodes payloads before it calls by. If a payload cannot be
// decoded, by gets it as it is. Use only codecs that decode without calls to other services.
func Matching(by Matcher, codecs ...Codec) Matcher { return matcher{by, codecs} }

type matcher struct {
	by     Matcher
	codecs []Codec
}

func (m matcher) Match(data []byte, partitionKey string, arrival time.Time) (matches, isJSON bool) {
	if decoded, err := Decode(context.Background(), data, m.codecs...); err == nil {
		data = decoded
	}
	return m.by.Match(data, partitionKey, arrival)
}
