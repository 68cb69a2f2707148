package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/eventstream"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

// fuzzedBody limits a payload in fuzz tests of streams.
const fuzzedBody = 64 << 10

// unopened returns a subscription that has received no answer yet.
func unopened(c *Caller) *Subscription {
	s := &Subscription{c: c}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.bound(time.Hour, ErrNoAnswer)
	return s
}

// open gives s a stream, and reads as much of it as Subscribe does.
func open(s *Subscription, stream io.Reader) error {
	body := io.NopCloser(stream)
	defer s.timer.Stop()
	return s.begin(&http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: &http.Request{}}, body)
}

// naiveEvents reads a stream with the SDK's decoder for messages and package codec's decoder for
// single events, which has its own fuzz tests. naiveEvents returns the events up to the message
// that ends the stream. whole reports whether all messages are well-formed events.
func naiveEvents(stream []byte) (pages []*codec.Page, whole bool) {
	d, left := eventstream.NewDecoder(), bytes.NewReader(stream)
	for left.Len() > 0 {
		m, err := answers.DecodeMessage(d, left)
		if err != nil || len(m.Payload) > fuzzedBody-codec.ChecksumLength {
			return pages, false
		}
		text := func(name string) string {
			value, _ := m.Headers.Get(name).(eventstream.StringValue)
			return string(value)
		}
		if _, is := m.Headers.Get(":event-type").(eventstream.StringValue); text(":message-type") != "event" || !is {
			return pages, false
		}
		if text(":event-type") != "SubscribeToShardEvent" {
			continue
		}
		format, known := codec.FormatOf(text(":content-type"), m.Payload)
		p := new(codec.Page)
		if !known || codec.DecodeEvent(format, m.Payload, p) != nil {
			return pages, false
		}
		pages = append(pages, p)
	}
	return pages, true
}

// FuzzStream reads a whole subscription in random fragments. The events equal those of the SDK's
// decoder, up to the end or the first broken message. A broken message causes a documented error.
// The number of reads and the memory are limited in proportion to the number of received bytes.
func FuzzStream(f *testing.F) {
	const event = "SubscribeToShardEvent"
	hello := answers.EventMessage(f, "initial-response", codec.JSONType, "{}")
	one := answers.EventMessage(f, event, codec.JSONType, `{"Records":[{"Data":"YWJj","PartitionKey":"k","SequenceNumber":"1"}],"ContinuationSequenceNumber":"1","MillisBehindLatest":5}`)
	two := answers.EventMessage(f, event, codec.CBORType, "\xa2\x67Records\x80\x78\x1aContinuationSequenceNumber\x612")
	odd := answers.EventMessage(f, "SomethingNew", codec.JSONType, "[]")
	refused := answers.Message(f, `{"message":"busy"}`, ":message-type", "exception", ":exception-type", "ResourceInUseException", ":content-type", codec.JSONType)
	failed := answers.Message(f, "x", ":message-type", "error", ":error-code", "500", ":error-message", "oops")
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	flipped := func(b []byte) []byte {
		b = bytes.Clone(b)
		b[len(b)-5] ^= 4
		return b
	}
	for i, stream := range [][]byte{
		join(hello, one, flipped(two), one), join(hello, flipped(odd), one), join(flipped(hello), one),
		join(hello, one, two, odd, one), join(one, two), join(hello, one, refused, two), join(hello, failed), refused, join(hello, two, one[:20]), join(hello, one, []byte("trailing")),
		join(hello, one, answers.Prelude(1<<31, 0), one), join(hello, answers.Prelude(16+fuzzedBody, 100)), join(hello, answers.EveryType(f)), join(hello, answers.EventMessage(f, event, "text/html", "<html>")), nil,
		join(hello, answers.EventMessage(f, event, codec.JSONType, `{"Records":[{"Data":"?"}]}`), one), join(hello, answers.RawMessage(nil, nil)),
	} {
		f.Add(stream, byte(i))
	}
	c := &Caller{opts: Options{MaxBody: fuzzedBody}, bodies: codec.Bodies{Most: fuzzedBody}}
	f.Fuzz(func(t *testing.T, stream []byte, cut byte) {
		if len(stream) > 1<<20 {
			return
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		counted := &pieces{r: bytes.NewReader(stream), most: int(cut)}
		var r io.Reader = counted
		if cut >= 128 {
			r = iotest.DataErrReader(counted)
		}
		s := unopened(c)
		defer s.Close()
		err := open(s, r)
		var got []*codec.Page
		for err == nil {
			p := new(codec.Page)
			if err = s.Next(time.Hour, p); err == nil {
				got = append(got, p)
			} else if len(p.Records) > 0 || p.Next != "" || len(p.Children) > 0 {
				t.Errorf("an error and a page: %+v", p)
			}
		}
		runtime.ReadMemStats(&after)
		if n, most := after.TotalAlloc-before.TotalAlloc, uint64(512*len(stream)+6*fuzzedBody+1<<20); n > most {
			t.Errorf("%d bytes of a stream took %d of memory", len(stream), n)
		}
		if counted.reads > len(stream)+2<<10 {
			t.Errorf("%d reads of %d bytes", counted.reads, len(stream))
		}
		s.Close()
		if again := s.Next(time.Hour, new(codec.Page)); !errors.Is(again, ErrClosed) {
			t.Errorf("after its end: %v", again)
		}
		want, whole := naiveEvents(stream)
		if whole && !errors.Is(err, ErrEnded) && !atABound(err) {
			t.Fatalf("the SDK reads it to its end, and this ends with %v", err)
		}
		if !whole && errors.Is(err, ErrEnded) {
			t.Fatalf("%d events and a good end, and the SDK's decoder finds it broken", len(got))
		}
		if len(got) != len(want) && !(len(got) < len(want) && atABound(err)) {
			t.Fatalf("%d events and %v, want %d", len(got), err, len(want))
		}
		for i, p := range got {
			if d := answers.Differ(p, want[i], answers.EqualTime); d != "" {
				t.Fatalf("event %d: %s", i, d)
			}
		}
		var deserialization *smithy.DeserializationError
		for _, kind := range []error{ErrEnded, codec.ErrFrame, codec.ErrTooLarge, io.ErrUnexpectedEOF} {
			if errors.Is(err, kind) {
				return
			}
		}
		if !isAPIError(err) && !errors.As(err, &deserialization) {
			t.Fatalf("the error is %v", err)
		}
	})
}

// atABound reports whether a stream was rejected for a reason that only this package has; see
// [FuzzFrames].
func atABound(err error) bool {
	return errors.Is(err, codec.ErrTooLarge) || strings.Contains(err.Error(), "the headers are truncated") || strings.Contains(err.Error(), "bytes of headers")
}

// pieces limits the number of bytes per read. 0 means no limit.
type pieces struct {
	r     io.Reader
	most  int
	reads int
}

func (p *pieces) Read(b []byte) (int, error) {
	p.reads++
	if p.most%128 > 0 {
		b = b[:min(len(b), p.most%128)]
	}
	return p.r.Read(b)
}

// FuzzStreamOfGoodMessages checks that the events of well-formed messages arrive in order, in any
// fragmentation.
func FuzzStreamOfGoodMessages(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 0, 0}, []byte("key"), byte(3))
	f.Add([]byte{3, 3, 2, 1}, []byte{0, 255}, byte(0))
	c := &Caller{opts: Options{MaxBody: fuzzedBody}, bodies: codec.Bodies{Most: fuzzedBody}}
	f.Fuzz(func(t *testing.T, kinds, data []byte, cut byte) {
		if len(kinds) > 100 || len(data) > 1000 {
			return
		}
		stream := answers.EventMessage(t, "initial-response", codec.JSONType, "{}")
		var want []*codec.Page
		for _, kind := range kinds {
			p := answers.Sample(int(kind/4), len(data))
			for k := range p.Records {
				p.Records[k].Data = data
			}
			p.Next = "" // the styles use another name for it in other answers
			switch kind % 4 {
			case 0:
				stream = append(stream, answers.EventMessage(t, "SubscribeToShardEvent", codec.CBORType, string(answers.CBOR{}.Encode(p)))...)
			case 1:
				stream = append(stream, answers.EventMessage(t, "SubscribeToShardEvent", codec.JSONType, string(answers.JSON{}.Encode(p)))...)
			case 2:
				stream = append(stream, answers.EventMessage(t, "NotYetKnown", "text/plain", string(data))...)
				continue
			case 3:
				stream = append(stream, answers.EveryType(t)...)
				continue
			}
			want = append(want, p)
		}
		s := unopened(c)
		defer s.Close()
		if err := open(s, &pieces{r: bytes.NewReader(stream), most: int(cut)}); err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			p := new(codec.Page)
			if err := s.Next(time.Hour, p); err != nil {
				t.Fatalf("event %d: %v", i, err)
			}
			if d := answers.Differ(p, w, answers.EqualTime); d != "" {
				t.Fatalf("event %d: %s", i, d)
			}
		}
		if err := s.Next(time.Hour, new(codec.Page)); !errors.Is(err, ErrEnded) {
			t.Fatalf("the end is %v", err)
		}
	})
}
