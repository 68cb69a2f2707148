package payload

import (
	"context"
	"slices"
)

// Chain returns a codec that applies several codecs. Encode calls them in order, and Decode in
// reverse order. Decode skips a codec if the payload does not have its mark at that step. An
// example is a codec that compresses, followed by one that moves large payloads to S3.
func Chain(codecs ...Codec) Codec { return chain(slices.Clone(codecs)) }

type chain []Codec

func (c chain) Encode(ctx context.Context, data []byte) ([]byte, error) {
	for _, codec := range c {
		var err error
		if data, err = codec.Encode(ctx, data); err != nil {
			return nil, err
		}
	}
	return data, nil
}

func (c chain) Decode(ctx context.Context, payload []byte) (data []byte, marked bool, err error) {
	data = payload
	for _, codec := range slices.Backward(c) {
		decoded, has, err := codec.Decode(ctx, data)
		if err != nil {
			return nil, true, err
		}
		if has {
			data, marked = decoded, true
		}
	}
	if !marked {
		return nil, false, nil
	}
	return data, true, nil
}
