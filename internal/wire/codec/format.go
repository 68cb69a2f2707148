package codec

import (
	"fmt"
	"mime"
)

// Format is the encoding of requests and answers.
type Format uint8

const (
	// Auto selects CBOR if the endpoint supports it, and otherwise JSON.
	Auto Format = iota
	// CBOR is application/x-amz-cbor-1.1. Record data are byte strings and times are milliseconds.
	// Both need no conversion.
	CBOR
	// JSON is application/x-amz-json-1.1. Record data are base64, and times are seconds with
	// decimals.
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

// These are the content types of requests and answers.
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

// FormatOf determines the format of a body from its content type. Without a content type it uses
// the first byte: only JSON begins with '{' or a blank.
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

// MalformedError is returned for an answer that cannot be read.
type MalformedError struct {
	Format Format
	Offset int // position of the byte that is not valid
	What   string

	short bool // the answer ends too early
}

// Error names the format, the offset and the problem.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("malformed %s answer at byte %d: %s", e.Format, e.Offset, e.What)
}

// These are the limits of an answer. Kinesis returns at most 10,000 records, 10 MiB, and two
// children. Some other servers exceed that.
const (
	maxRecords  = 1 << 16
	maxChildren = 1 << 10
	maxParents  = 1 << 6
	maxDepth    = 64 // nesting depth of skipped values

	// MaxIterator is the maximum size of an iterator in bytes.
	MaxIterator = 1 << 16
)

// Valid arrival times are between the years 0 and 10,000. These are the limits in milliseconds.
const (
	minArrival = -62_167_219_200_000
	maxArrival = 253_402_300_800_000
)
