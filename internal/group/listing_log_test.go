package group

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
)

// If the listings of a stream with leases fail, only the first error is logged, because its known
// shards are still read. A stream without leases is not read, so its error is logged again, at most
// once in each of the longest pauses between attempts.
func TestFailedListingsAreLogged(t *testing.T) {
	for _, tt := range []struct {
		name     string
		known    bool
		text     string
		failures int
		lines    int
	}{
		{"the stream has leases", true, "its known shards are read as before", 20, 1},
		{"no lease: the first failure", false, "the stream is not read", 1, 1},
		{"no lease: pauses are still short", false, "the stream is not read", 5, 1},
		{"no lease: it lasts", false, "the stream is not read", 8, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			s := &listings{streams: map[string]*listed{"s": {}}, known: map[string]bool{"s": tt.known}}
			cfg := Config{
				Host: new(HostFuncs), Log: slog.New(slog.NewTextHandler(&log, nil)),
				Times: lease.Times{Heartbeat: time.Second}, ListInterval: time.Minute,
			}
			for range tt.failures {
				// A listing can be marked as fresh although the stream has leases. An example is a
				// listing of a stream that may have been created again.
				if err := s.take(result{stream: "s", err: errors.New("denied"), fresh: true}, cfg); err != nil {
					t.Fatal(err)
				}
			}
			if lines := strings.Count(log.String(), tt.text); lines != tt.lines || strings.Count(log.String(), "\n") != tt.lines {
				t.Errorf("%d lines, want %d:\n%s", lines, tt.lines, log.String())
			}
		})
	}
}
