package redisstore

import (
	"fmt"
	"testing"
)

// FuzzChunks reads chunks of history that another program may have written.
func FuzzChunks(f *testing.F) {
	f.Add("29000000/s", "x")
	f.Add("-1/s", "x")
	f.Add("7", "")
	f.Fuzz(func(t *testing.T, name, data string) {
		c, err := decodeChunk(name, data)
		if err == nil && (c.Check() != nil || string(c.Data) != data) {
			t.Errorf("%q is read as minute %d of %q", name, c.Since, c.Session)
		}
		if _, err := decodeChunk(name, nil); err == nil {
			t.Error("a chunk that is not there is read")
		}
	})
}

func TestAChunkIsNamedByMinuteAndSession(t *testing.T) {
	t.Parallel()
	if c, err := decodeChunk(fmt.Sprintf("%d/%s", 29_000_000, "s"), "data"); err != nil || c.Since != 29_000_000 || c.Session != "s" {
		t.Errorf("%+v, %v", c, err)
	}
}
