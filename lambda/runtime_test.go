package lambda_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/lambda"
)

// process simulates the process of a function: it makes the HTTP requests of a runtime client.
type process struct {
	t    *testing.T
	base string
}

func (p process) do(method, path, body string) (*http.Response, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.base+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return res, string(text)
}

type answered struct {
	body []byte
	err  error
}

// begin starts an API and sends an event to it. id is the ID of the invocation that the process
// received. answer delivers the result of Invoke.
func begin(t *testing.T) (r *lambda.Runtime, p process, id string, answer <-chan answered) {
	t.Helper()
	r, err := lambda.NewRuntime("arn:f")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	p = process{t, "http://" + r.Addr() + "/2018-06-01/runtime/"}
	out := make(chan answered, 1)
	go func() {
		body, err := r.Invoke(context.Background(), []byte(`{"a":1}`), time.UnixMilli(1542409706888))
		out <- answered{body, err}
	}()
	res, event := p.do(http.MethodGet, "invocation/next", "")
	<-r.Ready()
	for name, want := range map[string]string{"Lambda-Runtime-Deadline-Ms": "1542409706888", "Lambda-Runtime-Invoked-Function-Arn": "arn:f"} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if event != `{"a":1}` || !strings.HasPrefix(res.Header.Get("Lambda-Runtime-Trace-Id"), "Root=1-") {
		t.Errorf("%s, %v", event, res.Header)
	}
	return r, p, res.Header.Get("Lambda-Runtime-Aws-Request-Id"), out
}

func TestAnInvocationIsAnsweredOnce(t *testing.T) {
	_, p, id, answer := begin(t)
	for _, c := range []struct {
		name, method, path string
		status             int
		says               string
	}{
		{"a foreign answer", http.MethodPost, "invocation/other/response", http.StatusBadRequest, "InvalidRequestID"},
		{"another invocation before the answer", http.MethodGet, "invocation/next", http.StatusForbidden, "InvalidStateTransition"},
		{"a method that is none", http.MethodGet, "invocation/" + id + "/response", http.StatusMethodNotAllowed, ""},
		{"a path that is none", http.MethodGet, "other", http.StatusNotFound, ""},
		{"the answer", http.MethodPost, "invocation/" + id + "/response", http.StatusAccepted, "OK"},
		{"a second answer", http.MethodPost, "invocation/" + id + "/response", http.StatusBadRequest, "InvalidRequestID"},
		{"an error behind the answer", http.MethodPost, "invocation/" + id + "/error", http.StatusBadRequest, "InvalidRequestID"},
	} {
		if res, text := p.do(c.method, c.path, `{"done":true}`); res.StatusCode != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d, %s", c.name, res.StatusCode, text)
		}
	}
	if got := <-answer; got.err != nil || string(got.body) != `{"done":true}` {
		t.Errorf("%q, %v", got.body, got.err)
	}
}

func TestAFunctionSaysWhyItFailed(t *testing.T) {
	_, p, id, answer := begin(t)
	p.do(http.MethodPost, "invocation/"+id+"/error", `{"errorMessage":"no\nroom","errorType":"ValueError"}`)
	var said *lambda.FunctionError
	if got := <-answer; !errors.As(got.err, &said) || *said != (lambda.FunctionError{Type: "ValueError", Message: "no room"}) {
		t.Errorf("%v", got.err)
	}
}

func TestAnAnswerIsBounded(t *testing.T) {
	_, p, id, answer := begin(t)
	if res, _ := p.do(http.MethodPost, "invocation/"+id+"/response", strings.Repeat(" ", lambda.MaxBytes+1)); res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", res.StatusCode)
	}
	if got := <-answer; got.err == nil {
		t.Error("the invocation succeeded")
	}
}

func TestARequestForAnotherHostIsRefused(t *testing.T) {
	r, p, _, _ := begin(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.base+"invocation/next", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "example.com"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", res.StatusCode)
	}
	r.Close()
}

func TestAProcessThatEndsEndsItsInvocation(t *testing.T) {
	r, _, _, answer := begin(t)
	r.Close()
	if got := <-answer; !errors.Is(got.err, lambda.ErrClosed) || errors.Is(got.err, lambda.ErrNotTaken) {
		t.Errorf("%v", got.err)
	}
}

func TestAnEventThatNoProcessAskedForWasNotTaken(t *testing.T) {
	r, err := lambda.NewRuntime("arn:f")
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if _, err := r.Invoke(t.Context(), []byte("{}"), time.Now()); !errors.Is(err, lambda.ErrNotTaken) || !errors.Is(err, lambda.ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestAFunctionThatCannotBeginIsHeard(t *testing.T) {
	r, p, _, _ := begin(t)
	for range 2 { // the second call returns at once
		p.do(http.MethodPost, "init/error", `{"errorMessage":"no module","errorType":"Runtime.ImportModuleError"}`)
	}
	if err := <-r.InitFailed(); !strings.Contains(err.Error(), "Runtime.ImportModuleError: no module") {
		t.Error(err)
	}
}

// Only a request with the right ID answers an invocation. The API keeps working after any request
// of the process.
func FuzzRuntime(f *testing.F) {
	f.Add("POST", "/2018-06-01/runtime/invocation/x/response", "", `{}`)
	f.Add("POST", "/2018-06-01/runtime/init/error", "", `{"errorMessage":1}`)
	f.Add("GET", "/2018-06-01/runtime/invocation/../next", "example.com", ``)
	f.Fuzz(func(t *testing.T, method, path, host, body string) {
		if strings.HasSuffix(path, "next") {
			t.Skip("it waits")
		}
		r, p, id, answer := begin(t)
		defer r.Close()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.Addr(), strings.NewReader(body))
		if err != nil || strings.Contains(path, id) {
			t.Skip("no request")
		}
		req.URL.Path, req.Host = "/"+strings.TrimPrefix(path, "/"), host
		if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
			_ = res.Body.Close()
		}
		p.do(http.MethodPost, "invocation/"+id+"/response", `"mine"`)
		if got := <-answer; got.err != nil || string(got.body) != `"mine"` {
			t.Fatalf("%q, %v", got.body, got.err)
		}
	})
}
