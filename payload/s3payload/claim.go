package s3payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-go/weir/payload"
)

// The names of the field of a claim check that contains the place of the object. In weir's form it
// is the first field, and the mark of the payload. The form of lifion-kinesis is from its file
// lib/records.js, version 1.3.3.
const (
	ownMark    = "weir_s3"
	lifionMark = "@S3Item"
	ownBegin   = `{"` + ownMark + `":{`
)

// place is the place of an object in S3, with the expected size and checksum.
type place struct {
	Version int    `json:"v,omitempty"` // of weir's form, always 1
	Bucket  string `json:"bucket"`
	ETag    string `json:"eTag,omitempty"` // in claim checks of lifion-kinesis, without quotes
	Key     string `json:"key"`
	Bytes   int64  `json:"bytes,omitempty"`  // size of the object; only in weir's form
	SHA256  []byte `json:"sha256,omitempty"` // of the object, only in weir's form
}

// isOwn reports whether a payload has the mark of weir's claim checks.
func isOwn(data []byte) bool { return bytes.HasPrefix(data, []byte(ownBegin)) }

// parseOwn parses a payload with the mark of weir's claim checks. The error wraps
// [payload.ErrDamaged].
func parseOwn(data []byte) (place, error) {
	var claim struct {
		Place place `json:"weir_s3"`
	}
	if err := json.Unmarshal(data, &claim); err != nil {
		return place{}, fmt.Errorf("%w: the claim check: %w", payload.ErrDamaged, err)
	}
	p := claim.Place
	if p.Version > 1 {
		return place{}, fmt.Errorf("%w: the claim check has form %d; this weir reads form 1", payload.ErrDamaged, p.Version)
	}
	if p.Version != 1 || p.Bucket == "" || p.Key == "" || p.Bytes < 0 || len(p.SHA256) != 32 {
		return place{}, fmt.Errorf("%w: the claim check is not complete", payload.ErrDamaged)
	}
	return p, nil
}

// isLifion reports whether a payload is a claim check of lifion-kinesis.
func isLifion(data []byte) bool { return parseLifion(data).Key != "" }

// parseLifion parses a claim check of lifion-kinesis. It returns a zero place for any other
// payload.
func parseLifion(data []byte) place {
	if !bytes.HasPrefix(data, []byte("{")) || !bytes.Contains(data, []byte(lifionMark)) {
		return place{}
	}
	var claim struct {
		Place struct{ Bucket, ETag, Key string } `json:"@S3Item"`
	}
	if json.Unmarshal(data, &claim) != nil || claim.Place.Bucket == "" {
		return place{}
	}
	return place{Bucket: claim.Place.Bucket, ETag: claim.Place.ETag, Key: claim.Place.Key}
}

// isLifionJSON reports whether lifion-kinesis parses the data of a short record as JSON. It parses
// an object in S3 if the object has the type application/json. With that type, its users get the
// same result for short and for large data.
func isLifionJSON(data []byte) bool {
	return len(data) > 0 && (data[0] == '{' || data[0] == '[') && !bytes.ContainsAny(data, "\n\r") && json.Valid(data)
}

// check compares an object with its claim check. The error wraps [payload.ErrTooLarge] or
// [payload.ErrDamaged].
func (p place) check(size int64, etag string, most int) error {
	switch {
	case size > int64(most):
		return fmt.Errorf("%w: the object %q has %d bytes, Options.MaxBytes allows %d", payload.ErrTooLarge, p.Key, size, most)
	case p.Version > 0 && size != p.Bytes:
		return fmt.Errorf("%w: the object %q has %d bytes, the producer wrote %d", payload.ErrDamaged, p.Key, size, p.Bytes)
	case p.ETag != "" && p.ETag != strings.Trim(etag, `"`):
		return fmt.Errorf("%w: the object %q has the ETag %s, the producer wrote %s", payload.ErrDamaged, p.Key, etag, p.ETag)
	}
	return nil
}

// keptFields returns the top-level fields of data that a claim check also contains. Data that are
// no JSON object have none.
func keptFields(data []byte, fields []string) map[string]json.RawMessage {
	if len(fields) == 0 {
		return nil
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return nil
	}
	return all
}

// write returns a claim check: the place under its mark, and then the kept fields in the given
// order.
func write(mark string, p place, fields []string, kept map[string]json.RawMessage) ([]byte, error) {
	b := []byte(`{"` + mark + `":`)
	add := func(v any) error {
		text, err := json.Marshal(v)
		b = append(b, text...)
		return err
	}
	err := add(p)
	for _, field := range fields {
		value, has := kept[field]
		if !has || err != nil {
			continue
		}
		b = append(b, ',')
		if err = add(field); err == nil {
			b = append(b, ':')
			err = add(value)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("s3payload: %w", err)
	}
	return append(b, '}'), nil
}
