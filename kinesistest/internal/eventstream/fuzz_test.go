package eventstream

import (
	"bytes"
	"testing"

	"github.com/aws/smithy-go/eventstream"
)

// FuzzFrame appends frames to other bytes and reads the frames with the SDK.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("before"), ":message-type", "event", []byte("{}"))
	f.Add([]byte{}, "x", "", []byte{})
	f.Add([]byte{0}, "é", string(make([]byte, 40_000)), bytes.Repeat([]byte{0xff}, 1000))
	f.Fuzz(func(t *testing.T, before []byte, name, value string, payload []byte) {
		if name == "" {
			return // the SDK refuses this frame, and no server sends it
		}
		buf := Open(bytes.Clone(before), Header{name, value})
		buf = Close(append(buf, payload...), len(before))
		if !bytes.HasPrefix(buf, before) {
			t.Fatal("what was there before has changed")
		}
		r := bytes.NewReader(buf[len(before):])
		m, err := eventstream.NewDecoder().Decode(r, nil)
		if err != nil || r.Len() > 0 {
			t.Fatalf("%v, %d bytes are left", err, r.Len())
		}
		name, value = name[:min(len(name), 255)], value[:min(len(value), 32767)]
		if got := m.Headers.Get(name); !bytes.Equal(m.Payload, payload) || got == nil || got.String() != value {
			t.Errorf("%d bytes of payload and the header %q, not %d and %q", len(m.Payload), got, len(payload), value)
		}
	})
}
