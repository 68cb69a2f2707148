package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

const someRole = "arn:aws:iam::123456789012:role/reads-orders"

// assuming starts an STS server that returns credentials. asked returns the parameters of the last
// request.
func assuming(t *testing.T, status int) (asked func() url.Values) {
	t.Helper()
	var mu sync.Mutex
	var last url.Values
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_ = r.ParseForm()
		last = r.PostForm
		w.WriteHeader(status)
		if status != http.StatusOK {
			fmt.Fprint(w, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>User x is not authorized to perform: sts:AssumeRole</Message></Error></ErrorResponse>`)
			return
		}
		fmt.Fprintf(w, `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ROLEKEY</AccessKeyId><SecretAccessKey>s</SecretAccessKey>`+
			`<SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(s.Close)
	t.Setenv("AWS_ENDPOINT_URL_STS", s.URL)
	return func() url.Values {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
}

// keysOf starts a proxy for a server. keys returns the access keys of the calls that it forwarded.
func keysOf(t *testing.T, server string) (proxy string, keys func() map[string]bool) {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host }}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m := regexp.MustCompile(`Credential=(\w+)/`).FindStringSubmatch(r.Header.Get("Authorization")); m != nil {
			mu.Lock()
			seen[m[1]] = true
			mu.Unlock()
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() map[string]bool {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// All calls to Kinesis use the credentials of the role. The request to assume the role contains the
// values that a trust policy checks.
func TestKinesisIsCalledAsTheRole(t *testing.T) {
	server, _ := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	server.Put("s", "k", []byte("hello"))
	asked := assuming(t, http.StatusOK)
	t.Setenv("AWS_ACCESS_KEY_ID", "OWNKEY")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	for _, args := range [][]string{
		{"tail", "--stream=s", "--from=oldest", "--until-tip"},
		{"fanout", "list", "--stream=s"},
		{"consume", "--stream=s", "--app=a", "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")},
	} {
		proxy, keys := keysOf(t, server.URL())
		c := clitest.Start(t, "", append(args, "--endpoint="+proxy, "--role="+someRole, "--role-external-id=weir-42", "--role-session=worker-1")...)
		if args[0] == "consume" {
			c.Out.Await(t, "the record", func(s string) bool { return s == "hello\n" })
			c.Interrupt(t)
		} else if code := c.Wait(t); code != cli.ExitDone {
			t.Errorf("%s: exit code %d, %s", args[0], code, c.Err)
		}
		if got := fmt.Sprint(keys()); got != "map[ROLEKEY:true]" {
			t.Errorf("%s: Kinesis was called with %s", args[0], got)
		}
		sent := asked()
		if sent.Get("RoleArn") != someRole || sent.Get("ExternalId") != "weir-42" || sent.Get("RoleSessionName") != "worker-1" {
			t.Errorf("%s: STS was asked for %v", args[0], sent)
		}
	}
}

func TestARoleThatMayNotBeAssumedIsToldAtOnce(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	assuming(t, http.StatusForbidden)
	c := clitest.Start(t, "", "tail", endpoint, "--stream=s", "--role="+someRole)
	if code := c.Wait(t); code != cli.ExitFailed || !strings.Contains(c.Err.String(), "the role "+someRole+" cannot be assumed: no permission for STS AssumeRole") ||
		strings.Contains(c.Err.String(), "cached") {
		t.Errorf("exit code %d, %s", code, c.Err)
	}
	if n := server.Requests("ListShards"); n > 0 {
		t.Errorf("Kinesis was asked %d times", n)
	}
}
