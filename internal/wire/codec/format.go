package codec

import (
	"fmt"
	"mime"
)

// Format is the encoding of requests and answers.
type Format uint8

const (
	// Auto is CBOR if the endpoint supports it, otherwise JSON.
	Auto Format = iota
	// CBOR is application/x-amz-cbor-1.1: record data are byte strings, times are milliseconds.
	// Both can be used in place.
	CBOR
	// JSON is application/x-amz-json-1.1: record data are base64, times are seconds with a
	// fraction.
	JSON
)

// String returns "auto", "cbor" or "json".
func (f Format) String() string {
	switch f {
	case CBOR:
		return "cbor"
	case JSON:
		return "json"
	default:
		return "auto"
	}
}

// Content types of requests and answers.
const (
	CBORType = "application/x-amz-cbor-1.1"
	JSONType = "application/x-amz-json-1.1"
)

// ContentType returns the content type of a body in the format.
func (f Format) ContentType() string {
	if f == JSON {
		return JSONType
	}
	return CBORType
}

// FormatOf determines the format from a Content-Type. Without one the first byte decides: only JSON
// starts with '{' or a blank.
func FormatOf(contentType string, body []byte) (Format, bool) {
	switch contentType {
	case CBORType:
		return CBOR, true
	case JSONType:
		return JSON, true
	case "":
		if len(body) > 0 && (body[0] == '{' || jsonBlank(body[0])) {
			return JSON, true
		}
		return CBOR, len(body) > 0
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return CBOR, false
	}
	switch media {
	case CBORType, "application/cbor":
		return CBOR, true
	case JSONType, "application/x-amz-json-1.0", "application/json":
		return JSON, true
	}
	return CBOR, false
}

// MalformedError says why an answer could not be read. Nothing of such an answer is used.
type MalformedError struct {
	Format Format
	Offset int // of the byte that was not understood
	What   string

	short bool // the answer ends too early
}

// Error names the format, the offset and the problem.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("malformed %s answer at byte %d: %s", e.Format, e.Offset, e.What)
}

// Limits of an answer. The service returns at most 10,000 records and 10 MiB, and names at most two
// children. Some other servers exceed that.
const (
	maxRecords  = 1 << 16
	maxChildren = 1 << 10
	maxParents  = 1 << 6
	maxDepth    = 64 // of skipped values

	// MaxIterator is the maximum size of an iterator in bytes.
	MaxIterator = 1 << 16
)

// Milliseconds of the years 0 and 10,000. No valid arrival time is outside them.
const (
	minArrival = -62_167_219_200_000
	maxArrival = 253_402_300_800_000
)
