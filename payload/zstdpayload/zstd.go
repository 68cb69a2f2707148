// Package zstdpayload compresses the data of records with zstd. It is a separate module, because
// zstd is not in Go's standard library.
//
// zstd compresses to about the same size as [payload.Gzip], in less time.
package zstdpayload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/weir-go/weir/payload"
)

// mark begins each zstd frame.
var mark = []byte{0x28, 0xb5, 0x2f, 0xfd}

// usualWindow is the largest window that the program zstd uses without special options. Short data
// may have a large window, so the limit for windows is at least this.
const usualWindow = 8 << 20

// Options configures a [Codec]. The zero value is ready to use.
type Options struct {
	// Level is the level of compression of the program zstd, 1 (fast) to 22 (small). The default is
	// 3. The codec has four different levels: 1, 3, 6 and 10. Any other level works like the next
	// lower one of these.
	Level int
	// MaxBytes limits the decoded data of a payload, in bytes. It ranges from 1 to 1 GiB. The
	// default is 64 MiB. Decode also refuses a payload if its window is larger than MaxBytes and
	// larger than 8 MiB.
	MaxBytes int
}

// Codec compresses payloads. It implements [payload.Codec], and has no goroutines. Its mark is the
// beginning of the zstd format, so it also decodes the payloads of other programs that use zstd
// without a dictionary.
//
// Encode returns data that compression does not make smaller as they are, unless they begin with
// the mark.
type Codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
	most    int
	scratch sync.Pool // *[]byte, for results whose size is not known yet
}

// New returns a codec. It returns an error if an option is out of range. Use one codec for all
// records: it keeps encoders and decoders for as many calls at the same time as there are
// processors.
func New(o Options) (*Codec, error) {
	if o.Level == 0 {
		o.Level = 3
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	if o.Level < 1 || o.Level > 22 {
		return nil, fmt.Errorf("zstdpayload: Options.Level is %d, and must be 1 to 22", o.Level)
	}
	if o.MaxBytes < 1 || o.MaxBytes > 1<<30 {
		return nil, fmt.Errorf("zstdpayload: Options.MaxBytes is %d, and must be 1 to %d", o.MaxBytes, 1<<30)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(o.Level)))
	if err != nil {
		return nil, fmt.Errorf("zstdpayload: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0),
		zstd.WithDecoderMaxMemory(uint64(max(o.MaxBytes, usualWindow))))
	if err != nil {
		return nil, fmt.Errorf("zstdpayload: %w", err)
	}
	return &Codec{encoder: encoder, decoder: decoder, most: o.MaxBytes}, nil
}

// Encode implements [payload.Codec]. The error is always nil.
func (c *Codec) Encode(_ context.Context, data []byte) ([]byte, error) {
	scratch, ok := c.scratch.Get().(*[]byte)
	if !ok {
		scratch = new([]byte)
	}
	defer c.scratch.Put(scratch)
	*scratch = c.encoder.EncodeAll(data, (*scratch)[:0])
	if len(*scratch) >= len(data) && !bytes.HasPrefix(data, mark) {
		return data, nil
	}
	return bytes.Clone(*scratch), nil
}

// Decode implements [payload.Codec]. The error wraps [payload.ErrTooLarge] or [payload.ErrDamaged].
func (c *Codec) Decode(_ context.Context, encoded []byte) (data []byte, marked bool, err error) {
	if !bytes.HasPrefix(encoded, mark) {
		return nil, false, nil
	}
	data, err = c.decoder.DecodeAll(encoded, nil)
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), len(data) > c.most:
		return nil, true, fmt.Errorf("%w: they have more than %d bytes", payload.ErrTooLarge, c.most)
	case errors.Is(err, zstd.ErrWindowSizeExceeded) && windowOf(encoded) > uint64(max(c.most, usualWindow)):
		return nil, true, fmt.Errorf("%w: their window has %d bytes", payload.ErrTooLarge, windowOf(encoded))
	case err != nil:
		return nil, true, fmt.Errorf("%w: %w", payload.ErrDamaged, err)
	}
	return data, true, nil
}

// windowOf returns the size of the window of the first frame, or 0 if it is not known.
func windowOf(encoded []byte) uint64 {
	var h zstd.Header
	if h.Decode(encoded) != nil {
		return 0
	}
	return h.WindowSize
}
