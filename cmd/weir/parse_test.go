package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/dynamostore"
)

func TestParseFrom(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]weir.Position{
		"oldest":                    weir.Oldest,
		"latest":                    weir.Latest,
		"15m":                       weir.At(now.Add(-15 * time.Minute)),
		"0s":                        weir.At(now),
		"2026-01-30T12:00:00Z":      weir.At(now.Add(-24 * time.Hour)),
		"2026-01-31T13:00:00+01:00": weir.At(now),
		"2026-01-31T11:59:59.5Z":    weir.At(now.Add(-500 * time.Millisecond)),
	} {
		if got, err := parseFrom(s, now); err != nil || got != want {
			t.Errorf("%s is %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "end", "newest", "-1m", "2026-01-31", "12:00", "49680405229405115719216753852849088384855803376837853186", "2026-02-01T00:00:00Z"} {
		var usage usageError
		if got, err := parseFrom(s, now); !errors.As(err, &usage) {
			t.Errorf("%q is %v, %v, want a wrong usage", s, got, err)
		}
	}
}

func TestParseStore(t *testing.T) {
	const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/weir"
	for s, want := range map[string]storeURL{
		"memory:":             {kind: storeMemory, name: ""},
		"sqlite:a.db":         {kind: storeSQLite, name: "a.db"},
		"sqlite:/var/lib/a:b": {kind: storeSQLite, name: "/var/lib/a:b"},
		"dynamodb:weir":       {kind: storeDynamo, name: "weir"},
		"postgres://a@b/c":    {kind: storeServer, name: "postgres://a@b/c"},
		"mysql://a@b/c":       {kind: storeServer, name: "mysql://a@b/c"},
		"redis://b":           {kind: storeServer, name: "redis://b"},
		"dynamodb:" + arn:     {kind: storeDynamo, name: arn},
	} {
		if got, err := parseStore(s); err != nil || got != want {
			t.Errorf("%s is %v, %v", s, got, err)
		}
	}
	u, err := parseStore("dynamodb:weir?kms_key=alias/weir&tag=team=a=b&tag=stage=test&point_in_time_recovery=true&deletion_protection=1&infrequent_access=true&read_capacity=5&write_capacity=7")
	want := dynamostore.Settings{
		ReadCapacity: 5, WriteCapacity: 7, KMSKey: "alias/weir", PointInTimeRecovery: true, DeletionProtection: true, InfrequentAccess: true,
		Tags: map[string]string{"team": "a=b", "stage": "test"},
	}
	if err != nil || u.name != "weir" || !reflect.DeepEqual(u.settings(), want) {
		t.Errorf("with settings: %+v, %+v, %v", u, u.settings(), err)
	}
	if n := reflect.TypeFor[dynamostore.Settings]().NumField(); n != len(tableSettings) {
		t.Errorf("a table has %d settings and its URL %d", n, len(tableSettings))
	}
	for _, s := range []string{"", "memory", "memory:x", "sqlite", "sqlite:", "dynamodb:", "dynamodb:a b", "postgres://x", "postgres:x", "redis:", "redis://", "oracle://a/b", ":", "Sqlite:x"} {
		var usage usageError
		if got, err := parseStore(s); !errors.As(err, &usage) {
			t.Errorf("%q is %v, %v, want a wrong usage", s, got, err)
		}
	}
}

func TestParseStreams(t *testing.T) {
	got, err := parseStreams([]string{"a:4", "b"})
	if err != nil || fmt.Sprint(got) != "[{a 4} {b 1}]" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parseStreams([]string{"a:1", "b", "a:2"}); err == nil || err.Error() != "--stream names a twice" {
		t.Errorf("a stream that is named twice: %v", err)
	}
	for _, s := range []string{"", ":4", "a:", "a:0", "a:-1", "a:x", "a:10001", "a b:1", "a:1:1"} {
		if got, err := parseStreams([]string{s}); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for s, want := range map[string]bool{
		"http://127.0.0.1:4567": true, "https://localhost": true, "http://[::1]:1": true, "http://x.localhost:1": true, "http://127.1.2.3": true,
		"": false, "http://10.0.0.1:4567": false, "https://kinesis.eu-west-1.amazonaws.com": false, "http://localhost.example.com": false,
		"127.0.0.1:4567": false, "://": false, "http://127.0.0.1.example.com": false,
	} {
		if got := isLoopback(s); got != want {
			t.Errorf("isLoopback(%q) = %v", s, got)
		}
	}
}

func TestExplain(t *testing.T) {
	call := func(inner error) error {
		return &smithy.OperationError{ServiceID: "Kinesis", OperationName: "GetRecords", Err: inner}
	}
	at := func(inner error) error { return &url.Error{Op: "Post", URL: "http://127.0.0.1:4567/", Err: inner} }
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"our own words stay":       {errors.New("there is no file x"), "there is no file x"},
		"lines become one":         {errors.New("a\n  b"), "a b"},
		"a lib's prefix goes":      {errors.New("weir: stream name is bad"), "stream name is bad"},
		"an interruption":          {fmt.Errorf("x: %w", context.Canceled), "stopped before it was done"},
		"a refused connection":     {call(at(syscall.ECONNREFUSED)), "nothing answers at http://127.0.0.1:4567: is Kinesis running there, and is that the right endpoint?"},
		"where we were":            {fmt.Errorf("stream s: %w", call(at(syscall.ECONNREFUSED))), "stream s: nothing answers at http://127.0.0.1:4567"},
		"an unknown host":          {call(at(&net.DNSError{Name: "kinesis.nowhere", IsNotFound: true})), "the host kinesis.nowhere cannot be found"},
		"a connection that broke":  {call(at(syscall.ECONNRESET)), "the server at http://127.0.0.1:4567 closed the connection"},
		"no answer in time":        {call(at(context.DeadlineExceeded)), "Kinesis at http://127.0.0.1:4567 did not answer in time"},
		"a store that is silent":   {context.DeadlineExceeded, "no answer came in time"},
		"a file that is locked":    {fmt.Errorf("sqlstore: the database stayed locked by others: %w", context.DeadlineExceeded), "sqlstore: the database stayed locked by others"},
		"anything else of a call":  {call(at(errors.New("x509: unknown authority"))), "Kinesis at http://127.0.0.1:4567 failed: x509: unknown authority"},
		"a throttle":               {call(&smithy.GenericAPIError{Code: "ThrottlingException", Message: "Rate exceeded."}), "Kinesis GetRecords is beyond a limit of the service (Rate exceeded): try again later"},
		"an answer without reason": {call(&smithy.GenericAPIError{Code: "AccessDeniedException"}), "no permission for Kinesis GetRecords (no reason given)"},
		"an error nobody knows":    {call(&smithy.GenericAPIError{Code: "NewException", Message: "news"}), "Kinesis GetRecords failed: news (NewException)"},
		"a store not set up": {fmt.Errorf("dynamostore: %w: it needs this:\n\n  two\n  lines\n\n(%w)", lease.ErrSetup, errors.New("the answer")),
			"it needs this:\n\n  two\n  lines"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := explain(c.err); !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestOrderly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	wrapped := fmt.Errorf("listing: %w", context.Canceled)
	if err := orderly(ctx, wrapped); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody interrupted, but %v", err)
	}
	cancel()
	if err := orderly(ctx, wrapped); err != nil {
		t.Errorf("interrupted: %v", err)
	}
	if err := orderly(ctx, fmt.Errorf("%w: %w", weir.ErrNotSaved, context.Canceled)); !errors.Is(err, weir.ErrNotSaved) {
		t.Errorf("interrupted, and nothing was saved: %v", err)
	}
	other := errors.New("the disk is full")
	if err := orderly(ctx, other); !errors.Is(err, other) {
		t.Errorf("another error: %v", err)
	}
}
