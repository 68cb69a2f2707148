package consume

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/lambda"
)

// invoker passes events to a function through the Invoke call of Lambda's API. It does not sign
// requests, so it works only with emulators of Lambda.
type invoker struct {
	url    string
	client *http.Client
}

// invokeURL returns the URL at which a function is invoked. If the given URL has no path, it is the
// endpoint of the API. invokeURL then adds the path of the function that has the application's
// name.
func invokeURL(given, app string) (string, error) {
	u, err := url.Parse(given)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", cli.Usagef("--invoke %.140q: write it like http://127.0.0.1:9000, or with the path of a function, /2015-03-31/functions/NAME/invocations", given)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/2015-03-31/functions/" + url.PathEscape(app) + "/invocations"
	}
	return u.String(), nil
}

// invoker returns an invoker of the function behind a URL, and a function that closes its
// connections.
func (o *options) invoker() (*invoker, func() error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100
	i := &invoker{o.lambda.invoke, &http.Client{
		Transport: transport, Timeout: o.lambda.timeout,
		// Do not follow redirects: an event must go only to the given URL.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	return i, func() error {
		transport.CloseIdleConnections()
		return nil
	}
}

// call passes an event to the function and returns its answer.
func (i *invoker) call(ctx context.Context, event []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, i.url, bytes.NewReader(event))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Amz-Invocation-Type", "RequestResponse")
	answer, err := i.client.Do(request)
	if err != nil {
		var timeout interface{ Timeout() bool }
		if errors.As(err, &timeout) && timeout.Timeout() && ctx.Err() == nil {
			return nil, errFunctionTimeout
		}
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // the body was only read
	body, err := io.ReadAll(io.LimitReader(answer.Body, lambda.MaxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the function's answer broke off: %w", err)
	case len(body) > lambda.MaxBytes:
		return nil, errors.New("the function's answer has more than 6 MiB")
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the invoke call was answered with %s: %s", answer.Status, line(body))
	}
	if kind := answer.Header.Get("X-Amz-Function-Error"); kind != "" {
		return nil, functionError(kind, body)
	}
	return body, nil
}

// functionError returns the error that a function reported.
func functionError(kind string, body []byte) error {
	var said struct{ ErrorMessage, ErrorType string }
	if err := json.Unmarshal(body, &said); err != nil || said.ErrorMessage == "" {
		return fmt.Errorf("the function failed (%s): %s", line([]byte(kind)), line(body))
	}
	return fmt.Errorf("the function failed: %s: %s", line([]byte(said.ErrorType)), line([]byte(said.ErrorMessage)))
}

// line returns the beginning of a text from an external program, as one line.
func line(text []byte) string {
	const most = 200
	all := strings.Join(strings.Fields(strings.ToValidUTF8(string(text[:min(len(text), 4*most)]), "?")), " ")
	if cut := []rune(all); len(cut) > most {
		all = string(cut[:most]) + "…"
	}
	return cli.Visible(all)
}

const notTogether = "--starting-position AT_TIMESTAMP and --starting-position-timestamp go together"

// from converts Lambda's starting position to a value of --from.
func (f *lambdaFlags) from() (string, error) {
	if (f.position == "AT_TIMESTAMP") != (f.at != "") {
		return "", cli.Usagef("%s", notTogether)
	}
	switch f.position {
	case "TRIM_HORIZON":
		return "oldest", nil
	case "LATEST":
		return "latest", nil
	case "AT_TIMESTAMP":
		if seconds, err := time.ParseDuration(f.at + "s"); err == nil && seconds >= 0 {
			return time.Unix(0, 0).Add(seconds).UTC().Format(time.RFC3339Nano), nil
		}
		if at, err := time.Parse(time.RFC3339Nano, f.at); err == nil {
			return at.UTC().Format(time.RFC3339Nano), nil
		}
		return "", cli.Usagef("--starting-position-timestamp %.60q: write it like 2026-03-01T12:00:00Z, or in seconds since 1970", f.at)
	}
	return "", cli.Usagef("--starting-position %.60q: there are TRIM_HORIZON, LATEST and AT_TIMESTAMP", f.position)
}

// criteriaPatterns returns the patterns in Lambda's FilterCriteria.
func criteriaPatterns(criteria string) ([]string, error) {
	var given struct {
		Filters []struct{ Pattern string }
	}
	read := json.NewDecoder(strings.NewReader(criteria))
	read.DisallowUnknownFields()
	if err := read.Decode(&given); err != nil || read.More() {
		return nil, cli.Usagef(`--filter-criteria is not Lambda's JSON: write it like {"Filters":[{"Pattern":"{\"data\":{\"kind\":[\"order\"]}}"}]}`)
	}
	if len(given.Filters) == 0 {
		return nil, cli.Usagef("--filter-criteria has no Filters: leave it out to get all records")
	}
	patterns := make([]string, 0, len(given.Filters))
	for i, f := range given.Filters {
		if !strings.HasPrefix(strings.TrimSpace(f.Pattern), "{") {
			return nil, cli.Usagef("--filter-criteria: Filters[%d] has no Pattern that is a JSON object in a string", i)
		}
		patterns = append(patterns, f.Pattern)
	}
	return patterns, nil
}
