package payload

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
)

var (
	// ErrTooLarge means that the decoded data would exceed the limit of the codec.
	ErrTooLarge = errors.New("payload: the decoded data are too large")
	// ErrDamaged means that a payload has the mark of a codec, but cannot be decoded.
	ErrDamaged = errors.New("payload: the payload is damaged")
)

// gzipMark begins each gzip file: two bytes that identify the format, and the method deflate.
var gzipMark = []byte{0x1f, 0x8b, 0x08}

// usualMost is the default of MaxBytes.
const usualMost = 64 << 20

// Gzip compresses payloads. Its mark is the beginning of the gzip format, so it also decodes the
// gzip payloads of other producers, for example of CloudWatch Logs subscriptions. The zero value is
// ready to use.
//
// Encode returns data that compression does not make smaller as they are, unless they begin with
// the mark.
type Gzip struct {
	// Level is the level of compression, 1 (fast) to 9 (small). The default is 6.
	Level int
	// MaxBytes limits the decoded data of a payload, in bytes. The default is 64 MiB.
	MaxBytes int
}

// writers has a pool of writers for each level.
var writers [gzip.BestCompression + 1]sync.Pool

// Encode implements [Codec]. It returns an error if Level is out of range.
func (g Gzip) Encode(_ context.Context, data []byte) ([]byte, error) {
	if g.Level < 0 || g.Level > gzip.BestCompression {
		return nil, fmt.Errorf("payload: Gzip.Level is %d, and must be 1 to 9, or 0 for 6", g.Level)
	}
	level := g.Level
	if level == 0 {
		level = 6
	}
	var to bytes.Buffer
	w, ok := writers[level].Get().(*gzip.Writer)
	if ok {
		w.Reset(&to)
	} else {
		w, _ = gzip.NewWriterLevel(&to, level) // the level is valid
	}
	_, err := w.Write(data)
	err = errors.Join(err, w.Close())
	w.Reset(io.Discard) // keeps no reference to the result
	writers[level].Put(w)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	if to.Len() >= len(data) && !bytes.HasPrefix(data, gzipMark) {
		return data, nil
	}
	return to.Bytes(), nil
}

var readers sync.Pool

// Decode implements [Codec]. The error wraps [ErrTooLarge] or [ErrDamaged].
func (g Gzip) Decode(_ context.Context, payload []byte) (data []byte, marked bool, err error) {
	if !bytes.HasPrefix(payload, gzipMark) {
		return nil, false, nil
	}
	r, ok := readers.Get().(*gzip.Reader)
	if !ok {
		r = new(gzip.Reader)
	}
	defer func() {
		_ = r.Reset(bytes.NewReader(nil)) // keeps no reference to the payload
		readers.Put(r)
	}()
	if err = r.Reset(bytes.NewReader(payload)); err != nil {
		return nil, true, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	data, err = readAll(r, mostBytes(g.MaxBytes))
	return data, true, err
}

// mostBytes returns the limit for decoded data with an option MaxBytes.
func mostBytes(option int) int {
	if option == 0 {
		return usualMost
	}
	return option
}

func tooLarge(most int) error {
	return fmt.Errorf("%w: they have more than %d bytes", ErrTooLarge, most)
}

// readAll returns what r decompresses. The error wraps [ErrTooLarge] or [ErrDamaged].
func readAll(r io.Reader, most int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(min(most, math.MaxInt-1))+1))
	switch {
	case len(data) > most:
		return nil, tooLarge(most)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return data, nil
}
