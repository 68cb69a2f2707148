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

	"github.com/weir-go/weir/internal/wire/codec"
)

// framedEvents reads events from the messages of an answer's body.
type framedEvents struct {
	body    io.ReadCloser
	frames  *codec.FrameReader
	frame   codec.Frame
	pending bool // the head in frame was read, but its payload was not
}

// The data was read, so an error does not matter.
func (f *framedEvents) close() { _ = f.body.Close() }

// begin reads the first message, which normally is the answer to the call. Some servers send an
// event first.
func (f *framedEvents) begin() error {
	if err := f.head(); err != nil {
		return err
	}
	if string(f.frame.Event) == "SubscribeToShardEvent" {
		f.pending = true
		return nil
	}
	return f.frames.Skip(&f.frame)
}

// head reads the head of the next message. If the message is an error, head reads the whole message
// and returns the error.
func (f *framedEvents) head() error {
	err := f.frames.Next(&f.frame)
	switch {
	case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return ErrEnded
	case err != nil:
		return err
	}
	switch string(f.frame.Kind) {
	case "event":
		if f.frame.Event == nil {
			return fmt.Errorf("%w: an event without a type", codec.ErrFrame)
		}
		return nil
	case "exception":
		return f.exception()
	case "error":
		e := &smithy.GenericAPIError{Code: string(f.frame.Code), Message: string(f.frame.Message)}
		if e.Code == "" {
			e.Code = "UnknownError"
		}
		if err := f.frames.Skip(&f.frame); err != nil {
			return err
		}
		return e
	case "":
		return fmt.Errorf("%w: a message without a type", codec.ErrFrame)
	}
	return fmt.Errorf("%w: a message of the unknown type %.100q", codec.ErrFrame, f.frame.Kind)
}

// exception reads an error of the service from the stream, and returns the same error as for a
// failed call.
func (f *framedEvents) exception() error {
	code := string(f.frame.Exception)
	if code == "" {
		return fmt.Errorf("%w: an exception without a type", codec.ErrFrame)
	}
	if f.frame.Payload > maxErrorBody {
		return fmt.Errorf("%w: %s with %d bytes about it", codec.ErrFrame, code, f.frame.Payload)
	}
	body, err := f.frames.Payload(&f.frame, make([]byte, f.frame.Payload+codec.ChecksumLength))
	if err != nil {
		return err
	}
	message := ""
	if format, ok := f.format(body); ok && len(body) > 0 {
		// Without a message, the exception has the same type and no text.
		_, message, _ = codec.ReadError(format, body)
	}
	text, err := json.Marshal(map[string]string{"__type": code, "message": message})
	if err != nil {
		return err
	}
	return sdkProtocol.DeserializeResponse(context.Background(), getRecords, kinesis.TypeRegistry, &smithyhttp.Response{Response: &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text)),
	}}, nil)
}

// format returns the format of the message's payload.
func (f *framedEvents) format(payload []byte) (codec.Format, bool) {
	switch string(f.frame.Content) {
	case codec.JSONType:
		return codec.JSON, true
	case codec.CBORType:
		return codec.CBOR, true
	}
	return codec.FormatOf(string(f.frame.Content), payload)
}

func (f *framedEvents) next(s *Subscription, p *codec.Page) error {
	for {
		if !f.pending {
			if err := f.head(); err != nil {
				return s.failed(err)
			}
		}
		f.pending = false
		if string(f.frame.Event) != "SubscribeToShardEvent" {
			// An unknown event does not prove that records still arrive.
			if err := f.frames.Skip(&f.frame); err != nil {
				return s.failed(err)
			}
			continue
		}
		b, err := s.room(f.frame.Payload+codec.ChecksumLength, p)
		if err != nil {
			return err
		}
		if err := f.event(s.c, b, p); err != nil {
			return s.failed(err)
		}
		return nil
	}
}

// event reads the payload of an event into b and decodes it there. b is memory of the page.
func (f *framedEvents) event(c *Caller, b []byte, p *codec.Page) error {
	body, err := f.frames.Payload(&f.frame, b)
	if err != nil {
		return err
	}
	format, ok := f.format(body)
	if !ok {
		return &smithy.DeserializationError{Err: &unexpectedError{c.eventFormat(), fmt.Sprintf("an event of the type %.100q", f.frame.Content)}}
	}
	return deserialization(codec.DecodeEvent(format, body, p))
}
