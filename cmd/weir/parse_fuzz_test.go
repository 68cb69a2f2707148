package main

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/cmd/weir/internal/serve"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/lease"
)

// FuzzFlags parses any text as the value of each flag. The text must be accepted, or refused with a
// usage error of one line.
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
			var usage cli.UsageError
			if !errors.As(err, &usage) || strings.ContainsAny(explain.OneLine(err.Error()), "\n\r") || strings.Contains(err.Error(), "%!") && !strings.Contains(s, "%!") {
				t.Errorf("%s of %q: %v", what, s, err)
			}
			return false
		}
		if p, err := records.ParseFrom(s, now); said("a start", err) && p.IsZero() {
			t.Errorf("%q is no position", s)
		}
		if u, err := stores.Parse(s); said("a store", err) && u.Kind == "" {
			t.Errorf("%q is a store of no kind", s)
		}
		if addr, err := serve.Addr("--health", s); said("an address", err) {
			if host, _, err := net.SplitHostPort(addr); err != nil || host == "" {
				t.Errorf("%q is to listen on %q: %v", s, addr, err)
			}
		}
		awsconf.IsLoopback(s)
		if err := new(cli.Format).Set(s); err == nil && s != "text" && s != "json" {
			t.Errorf("%q is a format", s)
		}
		_ = lease.CheckApp(s)
	})
}
