package explain

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/lease"
)

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
		"a throttle":               {call(&smithy.GenericAPIError{Code: "ThrottlingException", Message: "Rate exceeded."}), "Kinesis GetRecords exceeds a limit of the service (Rate exceeded): try again later"},
		"an answer without reason": {call(&smithy.GenericAPIError{Code: "AccessDeniedException"}), "no permission for Kinesis GetRecords (no reason given)"},
		"an error nobody knows":    {call(&smithy.GenericAPIError{Code: "NewException", Message: "news"}), "Kinesis GetRecords failed: news (NewException)"},
		"a store not set up": {fmt.Errorf("dynamostore: %w: it needs this:\n\n  two\n  lines\n\n(%w)", lease.ErrSetup, errors.New("the answer")),
			"it needs this:\n\n  two\n  lines"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Error(c.err); !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestOrderly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	wrapped := fmt.Errorf("listing: %w", context.Canceled)
	if err := Orderly(ctx, wrapped); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody interrupted, but %v", err)
	}
	cancel()
	if err := Orderly(ctx, wrapped); err != nil {
		t.Errorf("interrupted: %v", err)
	}
	if err := Orderly(ctx, fmt.Errorf("%w: %w", weir.ErrNotSaved, context.Canceled)); !errors.Is(err, weir.ErrNotSaved) {
		t.Errorf("interrupted, and nothing was saved: %v", err)
	}
	other := errors.New("the disk is full")
	if err := Orderly(ctx, other); !errors.Is(err, other) {
		t.Errorf("another error: %v", err)
	}
}

func TestTextInFlags(t *testing.T) {
	for text, want := range map[string]string{
		"weir: Options.OnFailure.MaxPerMinute 9 is bad":                              "--dead-letters-per-minute 9 is bad",
		"set Options.Expired. Then start it":                                         "set --expired. Then start it",
		"Options.Batching.MaxRecords and Options.App":                                "--batch and --app",
		"weir: ReaderOptions.Polling.Share 2 is bad":                                 "--read-share 2 is bad",
		"Options.Concurrency.MaxCalls 0 is bad":                                      "Options.Concurrency.MaxCalls 0 is bad",
		"Options.Timing.HeartbeatInterval 1ms is bad":                                "--heartbeat-interval 1ms is bad",
		"ReaderOptions.Transport 9 is bad":                                           "--transport 9 is bad",
		"Options.OnEvent is bad":                                                     "Options.OnEvent is bad",
		"weir: Options.FanOut.ARNs is set although Options.FanOut.Mode is FanOutOff": "--fan-out-arn is set although --fan-out is off",
	} {
		if got := TextInFlags(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
