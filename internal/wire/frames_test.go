package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/smithy-go/eventstream"
)

// message writes a message as the SDK would.
func message(tb testing.TB, payload string, headers ...string) []byte {
	tb.Helper()
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers = append(m.Headers, eventstream.Header{Name: headers[i], Value: eventstream.StringValue(headers[i+1])})
	}
	return encodeMessage(tb, m)
}

func encodeMessage(tb testing.TB, m eventstream.Message) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func eventMessage(tb testing.TB, kind, contentType, payload string) []byte {
	return message(tb, payload, ":message-type", "event", ":event-type", kind, ":content-type", contentType)
}

// rawMessage frames headers and a payload, whatever they are, with good lengths and checksums.
func rawMessage(headers, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(frameOverhead+len(headers)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// everyType has a header of each type, and one that is overwritten.
func everyType(tb testing.TB) []byte {
	return encodeMessage(tb, eventstream.Message{Payload: []byte("{}"), Headers: eventstream.Headers{
		{Name: ":event-type", Value: eventstream.StringValue("Other")},
		{Name: "t", Value: eventstream.BoolValue(true)}, {Name: "f", Value: eventstream.BoolValue(false)},
		{Name: "1", Value: eventstream.Int8Value(-1)}, {Name: "2", Value: eventstream.Int16Value(2)}, {Name: "4", Value: eventstream.Int32Value(4)},
		{Name: "8", Value: eventstream.Int64Value(8)}, {Name: "b", Value: eventstream.BytesValue("bytes")}, {Name: "s", Value: eventstream.StringValue("")},
		{Name: "at", Value: eventstream.TimestampValue(time.UnixMilli(1))}, {Name: "id", Value: eventstream.UUIDValue{1, 2}},
		{Name: ":message-type", Value: eventstream.StringValue("event")}, {Name: ":content-type", Value: eventstream.BytesValue("no string")},
	}})
}

func TestFramesReadWhatWasWritten(t *testing.T) {
	long := strings.Repeat("payload", 5000)
	in := message(t, "", ":message-type", "exception", ":exception-type", "E", ":error-code", "C", ":error-message", "M")
	in = append(in, everyType(t)...)
	in = append(in, message(t, "unread", ":message-type", "event", ":event-type", "e", ":content-type", jsonType, "long", strings.Repeat("x", 30_000))...)
	in = append(in, eventMessage(t, "SubscribeToShardEvent", cborType, long)...)
	for name, r := range map[string]io.Reader{"at once": bytes.NewReader(in), "byte by byte": iotest.OneByteReader(bytes.NewReader(in))} {
		fr := newFrameReader(r, 1<<20)
		var f frame
		next := func() []byte {
			if err := fr.next(&f); err != nil {
				t.Fatal(name, err)
			}
			b, err := fr.payload(&f, make([]byte, f.payload+checksumLength))
			if err != nil {
				t.Fatal(name, err)
			}
			return b
		}
		if b := next(); len(b) != 0 || string(f.kind) != "exception" || string(f.exception) != "E" || string(f.code) != "C" || string(f.message) != "M" || f.event != nil {
			t.Errorf("%s: %q and %q", name, b, f.kind)
		}
		if b := next(); string(b) != "{}" || string(f.kind) != "event" || string(f.event) != "Other" || f.content != nil {
			t.Errorf("%s: %q and %q", name, b, f.kind)
		}
		if err := fr.next(&f); err != nil || string(f.content) != jsonType {
			t.Error(name, err)
		}
		if err := fr.skip(&f); err != nil {
			t.Error(name, err)
		}
		if b := next(); string(b) != long || string(f.content) != cborType {
			t.Errorf("%s: %d bytes", name, len(b))
		}
		if err := fr.next(&f); err != io.EOF { //nolint:errorlint // the end is io.EOF itself
			t.Errorf("%s: the end is %v", name, err)
		}
		if cap(fr.head) > keptHeaders {
			t.Errorf("%s: %d bytes of headers are kept", name, cap(fr.head))
		}
	}
}

// prelude is the beginning of a message that says how long it is.
func prelude(total, headers uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, total)
	b = binary.BigEndian.AppendUint32(b, headers)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func TestFramesThatAreBroken(t *testing.T) {
	good := eventMessage(t, "SubscribeToShardEvent", jsonType, `{"a":1}`)
	flip := func(i int) []byte {
		b := bytes.Clone(good)
		b[(i+len(b))%len(b)] ^= 4
		return b
	}
	for name, c := range map[string]struct {
		in   []byte
		want error
	}{
		"a bit of the length":            {flip(3), ErrFrame},
		"a bit of the headers' length":   {flip(7), ErrFrame},
		"a bit of the first checksum":    {flip(9), ErrFrame},
		"a bit of a header's value":      {flip(30), ErrFrame},
		"a bit of the payload":           {flip(-6), ErrFrame},
		"a bit of the last checksum":     {flip(-1), ErrFrame},
		"HTML":                           {[]byte("<html><body>no</body></html>"), ErrFrame},
		"no length":                      {prelude(0, 0), ErrFrame},
		"shorter than its frame":         {prelude(15, 0), ErrFrame},
		"headers longer than all of it":  {prelude(16+10, 11), ErrFrame},
		"headers of 4 GiB":               {prelude(1<<32-1, 1<<32-1), ErrFrame},
		"headers of 129 KiB":             {prelude(200<<10, 129<<10), ErrFrame},
		"a payload of 4 GiB":             {prelude(1<<32-1, 0), ErrTooLarge},
		"a payload over the bound":       {prelude(16+1<<20+1, 0), ErrTooLarge},
		"a header without a name":        {rawMessage([]byte{9}, nil), ErrFrame},
		"a header without a type":        {rawMessage([]byte{1, 'x'}, nil), ErrFrame},
		"a header of type 10":            {rawMessage([]byte{1, 'x', 10}, nil), ErrFrame},
		"a string without a length":      {rawMessage([]byte{1, 'x', 7, 0}, nil), ErrFrame},
		"a string that is cut short":     {rawMessage([]byte{1, 'x', 7, 0, 2, 'y'}, nil), ErrFrame},
		"an integer that is cut short":   {rawMessage([]byte{1, 'x', 5, 0, 2, 'y'}, nil), ErrFrame},
		"cut in the prelude":             {good[:11], io.ErrUnexpectedEOF},
		"cut after the prelude":          {good[:12], io.ErrUnexpectedEOF},
		"cut in the headers":             {good[:20], io.ErrUnexpectedEOF},
		"cut in the payload":             {good[:len(good)-6], io.ErrUnexpectedEOF},
		"cut in the checksum":            {good[:len(good)-1], io.ErrUnexpectedEOF},
		"nothing":                        {nil, io.EOF},
		"nothing behind a whole message": {good, io.EOF},
	} {
		for _, skip := range []bool{false, true} {
			fr := newFrameReader(bytes.NewReader(c.in), 1<<20)
			var f frame
			err := fr.next(&f)
			for err == nil {
				if skip {
					err = fr.skip(&f)
				} else {
					_, err = fr.payload(&f, make([]byte, f.payload+checksumLength))
				}
				if err == nil {
					err = fr.next(&f)
				}
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%s, skipped %v: %v", name, skip, err)
			}
		}
	}
}

// A length that is a lie costs nothing.
func TestFrameLengthsAllocateNothing(t *testing.T) {
	for _, in := range [][]byte{prelude(1<<32-1, 0), prelude(1<<32-1, 1<<32-1), prelude(1<<31, 1<<30)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		fr := newFrameReader(bytes.NewReader(in), mostBody)
		var f frame
		if err := fr.next(&f); err == nil {
			t.Error("accepted")
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
			t.Errorf("%d bytes were allocated", n)
		}
	}
}

// FuzzFrames: what this package reads out of a stream is what the SDK's decoder reads; and what it
// refuses the SDK refuses, or it is over a bound, or the headers are such that the SDK looks away.
func FuzzFrames(f *testing.F) {
	good := eventMessage(f, "SubscribeToShardEvent", jsonType, `{"Records":[],"ContinuationSequenceNumber":"1"}`)
	f.Add(append(everyType(f), good...), []byte(nil), []byte(nil))
	f.Add([]byte(nil), good[12:12+int(binary.BigEndian.Uint32(good[4:]))], []byte("{}"))
	f.Add(prelude(1<<32-1, 1<<32-1), []byte{1, 'x', 7, 0, 1, 'y'}, []byte(nil))
	f.Add([]byte("<html>"), []byte{0, 0, 5, ':', 'm'}, []byte("x"))
	f.Fuzz(func(t *testing.T, stream, headers, payload []byte) {
		if len(headers) > mostHeaders || len(payload) > 1<<20 {
			return
		}
		in := append(rawMessage(headers, payload), stream...)
		fr := newFrameReader(bytes.NewReader(in), 1<<20)
		sdk, left := eventstream.NewDecoder(), bytes.NewReader(in)
		for {
			var f frame
			var body []byte
			err := fr.next(&f)
			if err == nil {
				if cap(fr.head) > mostHeaders || f.payload > 1<<20 {
					t.Fatalf("%d bytes of headers, %d of a payload", cap(fr.head), f.payload)
				}
				body, err = fr.payload(&f, make([]byte, f.payload+checksumLength))
			}
			want, sdkErr := decodeMessage(sdk, left)
			switch {
			case err == nil && sdkErr != nil:
				t.Fatalf("accepted, but the SDK says %v", sdkErr)
			case err != nil && sdkErr == nil:
				if !errors.Is(err, ErrTooLarge) && !errors.Is(err, errHeaders) && !strings.Contains(err.Error(), "bytes of headers") {
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
				":message-type": f.kind, ":event-type": f.event, ":exception-type": f.exception,
				":error-code": f.code, ":error-message": f.message, ":content-type": f.content,
			} {
				value, _ := want.Headers.Get(name).(eventstream.StringValue)
				if string(got) != string(value) {
					t.Fatalf("%s is %q, the SDK's %q", name, got, value)
				}
			}
		}
	})
}

// decodeMessage is the SDK's decoder, which must not be the one that panics here.
func decodeMessage(d *eventstream.Decoder, r io.Reader) (m eventstream.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the SDK panicked")
		}
	}()
	return d.Decode(r, nil)
}
