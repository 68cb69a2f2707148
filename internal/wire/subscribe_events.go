package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// framedEvents reads events from the messages of an answer's body.
type framedEvents struct {
	body    io.ReadCloser
	frames  *frameReader
	frame   frame
	pending bool // the head in frame was read and its payload was not
}

func (f *framedEvents) close() { _ = f.body.Close() } // whatever was read is all that matters

// begin reads the first message, which should be the answer to the call. Some servers begin with an
// event instead.
func (f *framedEvents) begin() error {
	if err := f.head(); err != nil {
		return err
	}
	if string(f.frame.event) == "SubscribeToShardEvent" {
		f.pending = true
		return nil
	}
	return f.frames.skip(&f.frame)
}

// head reads the head of the next message. A message that is an error is read whole, and returned.
func (f *framedEvents) head() error {
	err := f.frames.next(&f.frame)
	switch {
	case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return ErrEnded
	case err != nil:
		return err
	}
	switch string(f.frame.kind) {
	case "event":
		if f.frame.event == nil {
			return fmt.Errorf("%w: an event without a type", ErrFrame)
		}
		return nil
	case "exception":
		return f.exception()
	case "error":
		e := &smithy.GenericAPIError{Code: string(f.frame.code), Message: string(f.frame.message)}
		if e.Code == "" {
			e.Code = "UnknownError"
		}
		if err := f.frames.skip(&f.frame); err != nil {
			return err
		}
		return e
	case "":
		return fmt.Errorf("%w: a message without a type", ErrFrame)
	}
	return fmt.Errorf("%w: a message of the unknown type %.100q", ErrFrame, f.frame.kind)
}

// exception reads an error of the service, as the SDK does one that comes instead of a stream.
func (f *framedEvents) exception() error {
	code := string(f.frame.exception)
	if code == "" {
		return fmt.Errorf("%w: an exception without a type", ErrFrame)
	}
	if f.frame.payload > maxErrorBody {
		return fmt.Errorf("%w: %s with %d bytes about it", ErrFrame, code, f.frame.payload)
	}
	body, err := f.frames.payload(&f.frame, make([]byte, f.frame.payload+checksumLength))
	if err != nil {
		return err
	}
	message := ""
	if format, ok := f.format(body); ok && len(body) > 0 {
		// Without a message it is the same exception.
		_, message, _ = readError(newReader(format, body))
	}
	text, err := json.Marshal(map[string]string{"__type": code, "message": message})
	if err != nil {
		return err
	}
	return sdkProtocol.DeserializeResponse(context.Background(), getRecords, kinesis.TypeRegistry, &smithyhttp.Response{Response: &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text)),
	}}, nil)
}

// format is that of the payload of the message.
func (f *framedEvents) format(payload []byte) (Format, bool) {
	switch string(f.frame.content) {
	case jsonType:
		return JSON, true
	case cborType:
		return CBOR, true
	}
	return formatOf(string(f.frame.content), payload)
}

func (f *framedEvents) next(s *Subscription, p *Page) error {
	for {
		if !f.pending {
			if err := f.head(); err != nil {
				return s.failed(err)
			}
		}
		f.pending = false
		if string(f.frame.event) != "SubscribeToShardEvent" {
			// One that this version does not know, which is no sign that records still come.
			if err := f.frames.skip(&f.frame); err != nil {
				return s.failed(err)
			}
			continue
		}
		b, err := s.room(f.frame.payload+checksumLength, p)
		if err != nil {
			return err
		}
		if err := f.event(s.c, b, p); err != nil {
			return s.failed(err)
		}
		return nil
	}
}

// event reads the payload of an event into b, which is memory of the page, and decodes it there.
func (f *framedEvents) event(c *Caller, b []byte, p *Page) error {
	body, err := f.frames.payload(&f.frame, b)
	if err != nil {
		return err
	}
	format, ok := f.format(body)
	if !ok {
		return &smithy.DeserializationError{Err: &unexpectedError{c.eventFormat(), fmt.Sprintf("an event of the type %.100q", f.frame.content)}}
	}
	return deserialization(DecodeEvent(format, body, p))
}
