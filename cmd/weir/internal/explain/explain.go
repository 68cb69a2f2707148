// Package explain turns errors into one sentence about the problem and its remedy. It finds out
// whether a server of another kind answers at an address. It also replaces the names of options by
// the flags that set them.
package explain

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/aws/smithy-go"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/redact"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/queue"
)

// Error returns one sentence that explains an error and its remedy. weir's own errors have this
// form already. Errors of the AWS SDK are chains of nested operations that hide the reason. The
// result never contains a password.
func Error(err error) string { return redact.Text(explained(err)) }

// ourPackages removes the names of weir's packages from error texts.
var ourPackages = strings.NewReplacer(": weir: ", ": ", ": s3sink: ", ": ", ": s3letters: ", ": ", ": sqlletters: ", ": ", ": kinesisletters: ", ": ", ": sqsletters: ", ": ", ": producer: ", ": ", "provision: ", "")

func explained(err error) string {
	var told PlainError
	if errors.As(err, &told) {
		return told.Text
	}
	text := ourPackages.Replace(OneLine(err.Error()))
	var file *fs.PathError
	if errors.As(err, &file) && file.Path == os.Stdout.Name() {
		said := file.Err.Error()
		if !strings.Contains(text, "standard output") {
			said = "standard output cannot be written: " + said
		}
		return strings.Replace(text, file.Error(), said, 1)
	}
	if errors.Is(err, ErrInterrupted) || errors.Is(err, context.Canceled) {
		return "stopped before it was done"
	}

	c := callOf(err, text)
	if c.op != nil {
		if said := foreignAnswer(err, c.service); said != "" {
			return c.about + said
		}
	}
	var api smithy.APIError
	var own *queue.Error
	switch {
	case errors.Is(err, lease.ErrSetup): // for any cause
		return SetupText(err)
	case errors.As(err, &own):
		return explainQueue(c, own)
	case errors.As(err, &api):
		return explainAPI(c, api)
	}
	said := unreachable(c, err)
	switch {
	case said != "":
		return c.about + said
	case text == context.DeadlineExceeded.Error():
		return "no answer came in time"
	case c.unknown():
		// The call went to a store: the driver of a database, or a file that another process has
		// locked. Such a store has no endpoint and no region.
	case errors.Is(err, context.DeadlineExceeded), IsTimeout(err):
		return fmt.Sprintf("%s%s%s did not answer in time: "+
			"check the endpoint, the region and the network", c.about, c.service, c.endpoint)
	case c.op != nil:
		failed := fmt.Sprintf("%s%s failed: %s", c.service, c.endpoint, RootCause(err))
		return c.about + cmp.Or(foreignServer(c.place, c.service), failed)
	}
	return text
}

// call contains what an error says about the call that failed.
type call struct {
	op       *smithy.OperationError // nil if the call was not made with the AWS SDK
	place    *url.Error             // nil if the error contains no URL
	service  string
	endpoint string // " at " and the URL of the server; "" if unknown
	about    string // the failed action, which precedes the SDK's message
}

// callOf returns the call that an error is about. text is the text of the error.
func callOf(err error, text string) call {
	c := call{service: "the service"}
	if errors.As(err, &c.place) {
		if u, parsed := url.Parse(c.place.URL); parsed == nil {
			c.endpoint = " at " + u.Scheme + "://" + u.Host
		}
	}
	if own := (*queue.Error)(nil); errors.As(err, &own) { // package queue makes these calls itself
		c.service, c.op = "Kinesis", &smithy.OperationError{ServiceID: "Kinesis", OperationName: own.Operation, Err: own}
		return c
	}
	if !errors.As(err, &c.op) {
		return c
	}
	c.service = c.op.Service()
	if before, _, found := strings.Cut(text, "operation error "); found {
		about := strings.NewReplacer("weir: ", "", "provision: ", "").Replace(before)
		c.about = strings.TrimSuffix(about, context.DeadlineExceeded.Error()+" (")
	}
	return c
}

// unknown reports whether the error says nothing about the call. The call then went to a store.
func (c call) unknown() bool { return c.op == nil && c.place == nil }

// unreachable explains why the server could not be reached, or that the connection broke. It
// returns "" for other errors.
func unreachable(c call, err error) string {
	var (
		certificate *tls.CertificateVerificationError
		dns         *net.DNSError
	)
	switch {
	case c.op != nil && errors.As(err, &certificate):
		return fmt.Sprintf("the certificate of the server%s is not trusted (%s): "+
			"AWS_CA_BUNDLE names a file of certificates to trust", c.endpoint, RootCause(err))
	case c.op != nil && c.place != nil && proxyOf(c.place) != "" && isDial(err):
		return fmt.Sprintf("the proxy at %s, from HTTP_PROXY or HTTPS_PROXY, cannot be reached "+
			"(%s): check it, or add hosts that need no proxy to NO_PROXY",
			proxyOf(c.place), RootCause(err))
	case errors.Is(err, syscall.ECONNREFUSED) && c.unknown():
		return fmt.Sprintf("the store does not answer%s: "+
			"is its server running, and is --store right?", AddressOf(err))
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing answers%s: "+
			"is %s running there, and is that the right endpoint?", c.endpoint, c.service)
	case errors.As(err, &dns) && c.unknown():
		return fmt.Sprintf("the host %s of the store cannot be found: check --store", dns.Name)
	case errors.As(err, &dns):
		return fmt.Sprintf("the host %s cannot be found: "+
			"check the endpoint and the region", dns.Name)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE) && c.endpoint != "":
		const closed = "the server%s closed the connection: is it %s?"
		return cmp.Or(foreignServer(c.place, c.service), fmt.Sprintf(closed, c.endpoint, c.service))
	}
	return ""
}

// explainQueue explains an error of a call about a queue.
func explainQueue(c call, e *queue.Error) string {
	said := strings.TrimSuffix(OneLine(e.Message), ".")
	switch {
	case e.Code == "ResourceNotFoundException":
		return fmt.Sprintf("there is no such queue (%s): check --queue, the region and the endpoint", said)
	case e.Code == "UnknownOperationException":
		return fmt.Sprintf("%s%s is not known to the server%s: it has no queues", c.about, e.Operation, c.endpoint)
	case e.Code == "LimitExceededException" && said != "":
		return fmt.Sprintf("Kinesis %s exceeds a limit of the service (%s)", e.Operation, said)
	}
	return explainAPI(c, &smithy.GenericAPIError{Code: e.Code, Message: e.Message})
}

// explainAPI explains an error that the service returned.
func explainAPI(c call, api smithy.APIError) string {
	operation := "the call"
	if c.op != nil {
		operation = c.service + " " + c.op.Operation()
	}
	said := strings.TrimSuffix(OneLine(api.ErrorMessage()), ".")
	if said == "" {
		said = "no reason given"
	}
	switch code := api.ErrorCode(); {
	case code == "ResourceNotFoundException" && strings.EqualFold(c.service, "Kinesis"):
		return fmt.Sprintf("there is no such stream or shard (%s): check --stream, the region and the endpoint", said)
	case code == "NoSuchBucket":
		return fmt.Sprintf("there is no such bucket (%s): check --to or --dead, the region and the endpoint", said)
	case strings.Contains(code, "NonExistentQueue"), code == "QueueDoesNotExist":
		return fmt.Sprintf("there is no such queue (%s): check --dead, the region and the endpoint", said)
	case code == "PermanentRedirect", code == "AuthorizationHeaderMalformed":
		return fmt.Sprintf("%sthe bucket is not in the region of --region or AWS_REGION (%s): "+
			"use a bucket in the stream's region", c.about, said)
	case strings.Contains(code, "AccessDenied"), code == "NotAuthorized", code == "UnauthorizedOperation":
		return fmt.Sprintf("%sno permission for %s (%s): "+
			"the role or user needs it in its IAM policy", c.about, operation, said)
	case strings.Contains(code, "ExpiredToken"):
		return fmt.Sprintf("the AWS credentials have expired (%s): sign in again", said)
	case strings.Contains(said, "Signature expired"), strings.Contains(said, "Signature not yet current"), code == "RequestTimeTooSkewed":
		return fmt.Sprintf("the clock of this machine is wrong, so AWS does not accept the signature (%s): set the clock", said)
	case strings.Contains(code, "UnrecognizedClient"), strings.Contains(code, "InvalidSignature"),
		strings.Contains(code, "InvalidClientTokenId"), strings.Contains(code, "MissingAuthenticationToken"),
		code == "SignatureDoesNotMatch", code == "InvalidAccessKeyId":
		return fmt.Sprintf("AWS does not accept the credentials (%s): check AWS_PROFILE or the access keys", said)
	case strings.Contains(code, "Throughput"), strings.Contains(code, "Throttl"), code == "LimitExceededException":
		return fmt.Sprintf("%s%s exceeds a limit of the service (%s): "+
			"try again later, or request less", c.about, operation, said)
	default:
		return fmt.Sprintf("%s%s failed: %s (%s)", c.about, operation, said, code)
	}
}

// PlainError is an error whose text needs no further explanation.
type PlainError struct {
	Text  string
	Cause error
}

func (e PlainError) Error() string { return e.Text }
func (e PlainError) Unwrap() error { return e.Cause }

// SetupText returns a store's message about its setup, with the remedy. A long remedy is in a
// separate block.
func SetupText(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "\n("); i > 0 {
		text = text[:i] // leave out the underlying answer
	}
	text, _, _ = strings.Cut(text, " (operation error ") // leave out the underlying answer of the AWS SDK
	if _, after, found := strings.Cut(text, lease.ErrSetup.Error()+": "); found {
		text = after
	}
	return strings.TrimSpace(Parameters.Replace(text))
}

// Parameters replaces the names of a store's options by the parameters of its URL.
var Parameters = strings.NewReplacer("Options.Prefix", "weir_prefix in the store's URL", "Options.Schema", "weir_schema in the store's URL")

func IsTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// RootCause returns the text of the innermost error in a chain.
func RootCause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return OneLine(err.Error())
		}
		err = inner
	}
}

// AddressOf returns the address of a network call, if the error contains it.
func AddressOf(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Addr != nil {
		return " at " + op.Addr.String()
	}
	return ""
}

// IsAccessDenied reports whether the service refused a call because the caller lacks a permission.
func IsAccessDenied(err error) bool {
	var api interface{ ErrorCode() string }
	return errors.As(err, &api) && strings.Contains(api.ErrorCode(), "AccessDenied")
}

// OneLine joins the lines of a text, such as cobra's errors with suggestions, and removes the
// prefix "weir: ".
func OneLine(s string) string {
	s = strings.TrimPrefix(strings.TrimSpace(s), "weir: ")
	return strings.Join(strings.Fields(s), " ")
}

// ErrInterrupted is the cause with which the first Ctrl-C cancels a command's context.
var ErrInterrupted = errors.New("interrupted")

// Orderly returns the error of a command that users end with an interrupt. It returns nil if the
// interrupt ended the command.
func Orderly(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) && NotKept(err) == nil {
		return nil
	}
	return err
}

// NotKept returns an error in words for users if the worker could not save its progress or release
// its shards. Otherwise it returns nil.
func NotKept(err error) error {
	if errors.Is(err, weir.ErrNotSaved) || errors.Is(err, weir.ErrNotReleased) {
		return PlainError{strings.TrimPrefix(ourPackages.Replace(OneLine(err.Error())), "weir: "), err}
	}
	return nil
}
