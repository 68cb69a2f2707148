package main

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-go/weir/lease"
)

// FuzzFlags gives a text to everything that reads a flag: it is understood, or a wrong usage that
// says so in one line.
func FuzzFlags(f *testing.F) {
	for _, s := range []string{"oldest", "latest", "15m", "-1ns", "2026-01-31T12:00:00Z", "17+3", "49590338271490256608559692538361571095921575989136588898",
		"memory:", "sqlite:a.db", "dynamodb:weir", "dynamodb:weir?kms_key=alias/weir&tag=a=b&read_capacity=5&write_capacity=7", "postgres://weir:p%40ss@127.0.0.1/shop?sslmode=disable", "mysql://h/d", "redis://:p@h:6379/1",
		"weir:secret@tcp(h)/d", "127.0.0.1:4567", "[::1]:0", ":8080", "8080", "http://127.0.0.1:4567", "http://u:p@h/?q", "flights:4", "a:b", "", "json"} {
		f.Add(s)
	}
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		said := func(what string, err error) bool {
			if err == nil {
				return true
			}
			var usage usageError
			if !errors.As(err, &usage) || strings.ContainsAny(oneLine(err.Error()), "\n\r") || strings.Contains(err.Error(), "%!") {
				t.Errorf("%s of %q: %v", what, s, err)
			}
			return false
		}
		if p, err := parseFrom(s, now); said("a start", err) && p.IsZero() {
			t.Errorf("%q is no position", s)
		}
		_, _, err := parseTo(s)
		said("a target", err)
		if u, err := parseStore(s); said("a store", err) && u.kind == "" {
			t.Errorf("%q is a store of no kind", s)
		}
		if addr, err := servingAddr("--health", s); said("an address", err) {
			if host, _, err := net.SplitHostPort(addr); err != nil || host == "" {
				t.Errorf("%q is to listen on %q: %v", s, addr, err)
			}
		}
		if streams, err := parseStreams([]string{s}); said("a stream", err) && (len(streams) != 1 || streams[0].shards < 1) {
			t.Errorf("%q is %v", s, streams)
		}
		said("an endpoint", checkEndpoint("--endpoint", s))
		isLoopback(s)
		if err := new(format).Set(s); err == nil && s != "text" && s != "json" {
			t.Errorf("%q is a format", s)
		}
		_ = lease.CheckApp(s)
	})
}

// FuzzLines gives an input to what put reads: every record is within the limit and of a line that
// is there, or the error names the line.
func FuzzLines(f *testing.F) {
	f.Add([]byte("{\"k\":\"a\"}\n\r\n{\"k\":1.50}\r\nlast"), "k", uint16(100))
	f.Add([]byte("{\"k\":{}}"), "k", uint16(100))
	f.Add([]byte("{\"k\":null}\n[]\nnull\n\xff"), "", uint16(3))
	f.Add([]byte(strings.Repeat("x", 3000)), "", uint16(1000))
	f.Add([]byte(`{"k":"\ud800","k":""}`), "k", uint16(100))
	f.Fuzz(func(t *testing.T, input []byte, field string, limit uint16) {
		l := newLines(strings.NewReader(string(input)), field, int(limit))
		records, total := int64(0), 0
		for {
			e, err := l.next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "line ") {
					t.Errorf("%q: %v", input, err)
				}
				if errors.Is(err, io.EOF) && l.read != int64(len(input)) {
					t.Errorf("%d of %d bytes were read", l.read, len(input))
				}
				break
			}
			records++
			total += len(e.Data)
			n := utf8.RuneCountInString(e.Key)
			if e.Size() > int(limit) || n < 1 || n > 256 || len(e.Data) == 0 || strings.Contains(string(e.Data), "\n") {
				t.Errorf("%q of %d bytes in line %d, key %q", e.Data, e.Size(), e.Line, e.Key)
			}
		}
		if total > len(input) || records > int64(len(input)) || l.number > int64(len(input))+1 {
			t.Errorf("%d records of %d bytes in %d lines of %d bytes", records, total, l.number, len(input))
		}
	})
}
