package payload

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
)

// SchemaVersion is the ID of a version of a schema in the AWS Glue Schema Registry, a UUID.
type SchemaVersion [16]byte

// ParseSchemaVersion parses an ID as the registry writes it, for example
// b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63.
func ParseSchemaVersion(s string) (v SchemaVersion, err error) {
	digits := make([]byte, 0, 32)
	if len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		digits = fmt.Append(digits, s[:8], s[9:13], s[14:18], s[19:23], s[24:])
	}
	if n, err := hex.Decode(v[:], digits); err != nil || n != len(v) {
		return SchemaVersion{}, fmt.Errorf("payload: %.80q is not a schema version: write it like b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63", s)
	}
	return v, nil
}

// String returns the ID as the registry writes it.
func (v SchemaVersion) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:])
}

// Glue writes and reads the header of the AWS Glue Schema Registry, which AWS's serializers and the
// KPL put before the data of a record. It makes no calls to the registry. The zero value can
// decode.
//
// The header has 18 bytes: 3, the version of the header; 0 for plain or 5 for zlib; and the ID of
// the schema version. Source: SerializationDataEncoder and AWSSchemaRegistryConstants of
// github.com/awslabs/aws-glue-schema-registry. The first two bytes are the mark, so Decode mistakes
// other binary data that begin with these bytes for encoded data.
type Glue struct {
	// Version is the schema version in the header that Encode writes. Required to encode.
	Version SchemaVersion
	// Compress makes Encode compress data with zlib if that makes them smaller.
	Compress bool
	// MaxBytes limits the decoded data of a payload, in bytes. The default is 64 MiB.
	MaxBytes int
	// Convert converts the data after the header, for example from Avro to JSON. Decode returns its
	// results. Convert should look up each schema in the registry once, and keep it. It is called
	// concurrently, and must not change data. By default Decode returns the data as they are.
	Convert func(ctx context.Context, version SchemaVersion, data []byte) ([]byte, error)
}

const (
	glueHeader = 2 + len(SchemaVersion{})
	glueFormat = 3
	gluePlain  = 0
	glueZlib   = 5
)

var zlibWriters, zlibReaders sync.Pool

// Encode implements [Codec]. It returns an error if Version is zero. The data must have the format
// that the schema describes.
func (g Glue) Encode(_ context.Context, data []byte) ([]byte, error) {
	if g.Version == (SchemaVersion{}) {
		return nil, errors.New("payload: Glue.Version is required to encode")
	}
	header := append([]byte{glueFormat, gluePlain}, g.Version[:]...)
	if g.Compress {
		var to bytes.Buffer
		to.Write(header)
		w, ok := zlibWriters.Get().(*zlib.Writer)
		if ok {
			w.Reset(&to)
		} else {
			w = zlib.NewWriter(&to)
		}
		_, err := w.Write(data)
		err = errors.Join(err, w.Close())
		w.Reset(io.Discard) // keeps no reference to the result
		zlibWriters.Put(w)
		if err != nil {
			return nil, fmt.Errorf("payload: %w", err)
		}
		if to.Len() < len(header)+len(data) {
			to.Bytes()[1] = glueZlib
			return to.Bytes(), nil
		}
	}
	return append(header, data...), nil
}

// Decode implements [Codec]. The error wraps [ErrTooLarge] or [ErrDamaged], or is the error of
// Convert. The data may share memory with the payload.
func (g Glue) Decode(ctx context.Context, payload []byte) (data []byte, marked bool, err error) {
	version, data, marked, err := g.Split(payload)
	if marked && err == nil && g.Convert != nil {
		data, err = g.Convert(ctx, version, data)
	}
	return data, marked, err
}

// Split returns the schema version and the data of a payload. It does not call Convert. marked is
// false if the payload does not begin with a header; the other results are then zero. The error
// wraps [ErrTooLarge] or [ErrDamaged]. The data may share memory with the payload.
func (g Glue) Split(payload []byte) (version SchemaVersion, data []byte, marked bool, err error) {
	if len(payload) < glueHeader || payload[0] != glueFormat || payload[1] != gluePlain && payload[1] != glueZlib {
		return SchemaVersion{}, nil, false, nil
	}
	version = SchemaVersion(payload[2:])
	compressed := payload[1] == glueZlib
	payload = payload[glueHeader:]
	if !compressed {
		if most := mostBytes(g.MaxBytes); len(payload) > most {
			return version, nil, true, tooLarge(most)
		}
		return version, payload, true, nil
	}
	from := bytes.NewReader(payload)
	r, ok := zlibReaders.Get().(io.ReadCloser)
	if ok {
		err = r.(zlib.Resetter).Reset(from, nil)
	} else {
		r, err = zlib.NewReader(from)
	}
	if err == nil {
		data, err = readAll(r, mostBytes(g.MaxBytes))
		from.Reset(nil) // keeps no reference to the payload
		zlibReaders.Put(r)
	} else {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return version, data, true, err
}
