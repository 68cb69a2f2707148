package codec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/aws/smithy-go/eventstream"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

func TestFramesReadWhatWasWritten(t *testing.T) {
	long := strings.Repeat("payload", 5000)
	in := answers.Message(t, "", ":message-type", "exception", ":exception-type", "E", ":error-code", "C", ":error-message", "M")
	in = append(in, answers.EveryType(t)...)
	in = append(in, answers.Message(t, "unread", ":message-type", "event", ":event-type", "e", ":content-type", codec.JSONType, "long", strings.Repeat("x", 30_000))...)
	in = append(in, answers.EventMessage(t, "SubscribeToShardEvent", codec.CBORType, long)...)
	for name, r := range map[string]io.Reader{"at once": bytes.NewReader(in), "byte by byte": iotest.OneByteReader(bytes.NewReader(in))} {
		fr := codec.NewFrameReader(r, 1<<20)
		var f codec.Frame
		next := func() []byte {
			if err := fr.Next(&f); err != nil {
				t.Fatal(name, err)
			}
			b, err := fr.Payload(&f, make([]byte, f.Payload+codec.ChecksumLength))
			if err != nil {
				t.Fatal(name, err)
			}
			return b
		}
		if b := next(); len(b) != 0 || string(f.Kind) != "exception" || string(f.Exception) != "E" || string(f.Code) != "C" || string(f.Message) != "M" || f.Event != nil {
			t.Errorf("%s: %q and %q", name, b, f.Kind)
		}
		if b := next(); string(b) != "{}" || string(f.Kind) != "event" || string(f.Event) != "Other" || f.Content != nil {
			t.Errorf("%s: %q and %q", name, b, f.Kind)
		}
		if err := fr.Next(&f); err != nil || string(f.Content) != codec.JSONType {
			t.Error(name, err)
		}
		if err := fr.Skip(&f); err != nil {
			t.Error(name, err)
		}
		if b := next(); string(b) != long || string(f.Content) != codec.CBORType {
			t.Errorf("%s: %d bytes", name, len(b))
		}
		if err := fr.Next(&f); err != io.EOF { //nolint:errorlint // the end is io.EOF itself
			t.Errorf("%s: the end is %v", name, err)
		}
		if fr.Room() > codec.KeptHeaders {
			t.Errorf("%s: %d bytes of headers are kept", name, fr.Room())
		}
	}
}

func TestFramesThatAreBroken(t *testing.T) {
	good := answers.EventMessage(t, "SubscribeToShardEvent", codec.JSONType, `{"a":1}`)
	flip := func(i int) []byte {
		b := bytes.Clone(good)
		b[(i+len(b))%len(b)] ^= 4
		return b
	}
	for name, c := range map[string]struct {
		in   []byte
		want error
	}{
		"a bit of the length":            {flip(3), codec.ErrFrame},
		"a bit of the headers' length":   {flip(7), codec.ErrFrame},
		"a bit of the first checksum":    {flip(9), codec.ErrFrame},
		"a bit of a header's value":      {flip(30), codec.ErrFrame},
		"a bit of the payload":           {flip(-6), codec.ErrFrame},
		"a bit of the last checksum":     {flip(-1), codec.ErrFrame},
		"HTML":                           {[]byte("<html><body>no</body></html>"), codec.ErrFrame},
		"no length":                      {answers.Prelude(0, 0), codec.ErrFrame},
		"shorter than its frame":         {answers.Prelude(15, 0), codec.ErrFrame},
		"headers longer than all of it":  {answers.Prelude(16+10, 11), codec.ErrFrame},
		"headers of 4 GiB":               {answers.Prelude(1<<32-1, 1<<32-1), codec.ErrFrame},
		"headers of 129 KiB":             {answers.Prelude(200<<10, 129<<10), codec.ErrFrame},
		"a payload of 4 GiB":             {answers.Prelude(1<<32-1, 0), codec.ErrTooLarge},
		"a payload over the bound":       {answers.Prelude(16+1<<20+1, 0), codec.ErrTooLarge},
		"a header without a name":        {answers.RawMessage([]byte{9}, nil), codec.ErrFrame},
		"a header without a type":        {answers.RawMessage([]byte{1, 'x'}, nil), codec.ErrFrame},
		"a header of type 10":            {answers.RawMessage([]byte{1, 'x', 10}, nil), codec.ErrFrame},
		"a string without a length":      {answers.RawMessage([]byte{1, 'x', 7, 0}, nil), codec.ErrFrame},
		"a string that is cut short":     {answers.RawMessage([]byte{1, 'x', 7, 0, 2, 'y'}, nil), codec.ErrFrame},
		"an integer that is cut short":   {answers.RawMessage([]byte{1, 'x', 5, 0, 2, 'y'}, nil), codec.ErrFrame},
		"cut in the prelude":             {good[:11], io.ErrUnexpectedEOF},
		"cut after the prelude":          {good[:12], io.ErrUnexpectedEOF},
		"cut in the headers":             {good[:20], io.ErrUnexpectedEOF},
		"cut in the payload":             {good[:len(good)-6], io.ErrUnexpectedEOF},
		"cut in the checksum":            {good[:len(good)-1], io.ErrUnexpectedEOF},
		"nothing":                        {nil, io.EOF},
		"nothing behind a whole message": {good, io.EOF},
	} {
		for _, skip := range []bool{false, true} {
			fr := codec.NewFrameReader(bytes.NewReader(c.in), 1<<20)
			var f codec.Frame
			err := fr.Next(&f)
			for err == nil {
				if skip {
					err = fr.Skip(&f)
				} else {
					_, err = fr.Payload(&f, make([]byte, f.Payload+codec.ChecksumLength))
				}
				if err == nil {
					err = fr.Next(&f)
				}
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%s, skipped %v: %v", name, skip, err)
			}
		}
	}
}

// A frame with a wrong length causes no large allocation.
func TestFrameLengthsAllocateNothing(t *testing.T) {
	for _, in := range [][]byte{answers.Prelude(1<<32-1, 0), answers.Prelude(1<<32-1, 1<<32-1), answers.Prelude(1<<31, 1<<30)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		fr := codec.NewFrameReader(bytes.NewReader(in), codec.MostBody)
		var f codec.Frame
		if err := fr.Next(&f); err == nil {
			t.Error("accepted")
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
			t.Errorf("%d bytes were allocated", n)
		}
	}
}

// FuzzFrames compares this package with the SDK's decoder. Both read the same messages from a
// stream. If this package rejects a stream, the SDK rejects it as well. The exceptions are streams
// that exceed a limit, and malformed headers that the SDK ignores.
func FuzzFrames(f *testing.F) {
	good := answers.EventMessage(f, "SubscribeToShardEvent", codec.JSONType, `{"Records":[],"ContinuationSequenceNumber":"1"}`)
	f.Add(append(answers.EveryType(f), good...), []byte(nil), []byte(nil))
	f.Add([]byte(nil), good[12:12+int(binary.BigEndian.Uint32(good[4:]))], []byte("{}"))
	f.Add(answers.Prelude(1<<32-1, 1<<32-1), []byte{1, 'x', 7, 0, 1, 'y'}, []byte(nil))
	f.Add([]byte("<html>"), []byte{0, 0, 5, ':', 'm'}, []byte("x"))
	f.Fuzz(func(t *testing.T, stream, headers, payload []byte) {
		if len(headers) > codec.MostHeaders || len(payload) > 1<<20 {
			return
		}
		in := append(answers.RawMessage(headers, payload), stream...)
		fr := codec.NewFrameReader(bytes.NewReader(in), 1<<20)
		sdk, left := eventstream.NewDecoder(), bytes.NewReader(in)
		for {
			var f codec.Frame
			var body []byte
			err := fr.Next(&f)
			if err == nil {
				if fr.Room() > codec.MostHeaders || f.Payload > 1<<20 {
					t.Fatalf("%d bytes of headers, %d of a payload", fr.Room(), f.Payload)
				}
				body, err = fr.Payload(&f, make([]byte, f.Payload+codec.ChecksumLength))
			}
			want, sdkErr := answers.DecodeMessage(sdk, left)
			switch {
			case err == nil && sdkErr != nil:
				t.Fatalf("accepted, but the SDK says %v", sdkErr)
			case err != nil && sdkErr == nil:
				if !errors.Is(err, codec.ErrTooLarge) && !errors.Is(err, codec.ErrHeaders) && !strings.Contains(err.Error(), "bytes of headers") {
					t.Fatalf("refused: %v", err)
				}
				return
			case err != nil:
				return
			}
			if !bytes.Equal(body, want.Payload) {
				t.Fatalf("the payload is %q, the SDK's %q", body, want.Payload)
			}
			for name, got := range map[string][]byte{
				":message-type": f.Kind, ":event-type": f.Event, ":exception-type": f.Exception,
				":error-code": f.Code, ":error-message": f.Message, ":content-type": f.Content,
			} {
				value, _ := want.Headers.Get(name).(eventstream.StringValue)
				if string(got) != string(value) {
					t.Fatalf("%s is %q, the SDK's %q", name, got, value)
				}
			}
		}
	})
}
