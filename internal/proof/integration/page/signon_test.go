package page_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// tools is the address of the proxy in the guide.
const tools = "https://tools.example.com"

// The page runs behind oauth2-proxy with the configuration of the guide, over TLS. Without signing
// in nothing is visible. The log contains the user.
func TestBehindOAuth2ProxyWithASignOn(t *testing.T) {
	from := guide(t, "A sign-on with oauth2-proxy", "toml")
	page := serve(t, from.command)
	sso := openID(t, tools+"/oauth2/callback")
	trusted, cert, key := certificate(t, "tools.example.com")
	proxy := servers.OAuth2Proxy(t, elsewhere(t, from.config, map[string]string{
		`":443"`: `"$addr"`, "http://127.0.0.1:4568": page.url, "https://sso.example.com": sso.url,
		"/etc/ssl/tools.example.com.pem": "$dir/cert.pem", "/etc/ssl/tools.example.com.key": "$dir/key.pem",
		"/etc/oauth2-proxy/cookie.secret": "$dir/cookie.secret", "/etc/oauth2-proxy/client.secret": "$dir/client.secret",
	}), map[string]string{"cert.pem": cert, "key.pem": key, "cookie.secret": rand.Text() + "123456", "client.secret": clientSecret})
	person := func(email string) *browser {
		return browse(t, strings.TrimPrefix(proxy.URL, "https://"), trusted, sso, email)
	}
	ann := person("ann@example.com")

	views := map[string]string{ // expected texts
		"/": "billing", "/app?app=billing": "orders", "/app?app=billing&part=1": "orders", "/events?app=billing": "billing",
		"/shard?app=billing&stream=orders&shard=shardId-000000000000": "shardId-000000000000", "/change?app=billing": "logged with the user ann@example.com",
		"/reset?app=billing&to=oldest": "2 checkpoints would move to oldest", "/page.css": "body", "/page.js": "use strict",
	}
	forged := map[string]string{
		"X-Forwarded-Email": "zoe@example.com", "X-Forwarded-User": "zoe", "X-Forwarded-Preferred-Username": "zoe", "X_Forwarded_Email": "zoe@example.com",
		"X-Auth-Request-Email": "zoe@example.com", "Sec-Fetch-Site": "same-origin",
	}
	nobodys := url.Values{"do": {"pause"}, "app": {"billing"}, "stream": {""}, "seen": {""}}
	// signedOut checks that a browser that is not signed in gets nothing of the page. All pages are
	// then equal, except for the link to sign in.
	signedOut := func(b *browser, when string) {
		t.Helper()
		back := regexp.MustCompile(`(name="rd" value=)"[^"]*"`)
		same := func(text string) string { return back.ReplaceAllString(text, "$1") }
		_, nothing, _ := b.get("/there-is-nothing")
		for at := range views {
			if code, text, ours := b.get(at); code != http.StatusForbidden || ours || same(text) != same(nothing) {
				t.Errorf("%s: %s: %d, of the page itself: %v\n%s", when, at, code, ours, text)
			}
		}
		if code, text, ours := b.ask("/write", forged, nobodys); code != http.StatusForbidden || ours || same(text) != same(nothing) {
			t.Errorf("%s: a write: %d, of the page itself: %v\n%s", when, code, ours, text)
		}
	}
	signedOut(ann, "before")

	mallory := person("mallory@elsewhere.example")
	if code, text, ours := mallory.signOn("/app?app=billing"); code != http.StatusForbidden || ours {
		t.Errorf("somebody of another domain: %d, of the page itself: %v\n%s", code, ours, text)
	}
	signedOut(mallory, "of another domain")

	if code, text, ours := ann.signOn("/app?app=billing"); code != http.StatusOK || !ours || !strings.Contains(text, "orders") {
		t.Fatalf("after the sign-on: %d, of the page itself: %v\n%s", code, ours, text)
	}
	for at, says := range views {
		if code, text, ours := ann.get(at); code != http.StatusOK || !ours || !strings.Contains(text, says) {
			t.Errorf("%s: %d, of the page itself: %v\n%s", at, code, ours, text)
		}
	}

	_, text, _ := ann.get("/change?app=billing")
	to, pause := form(t, text, "Pause now: Stream orders")
	for name, c := range map[string]struct {
		headers map[string]string
		says    string
	}{
		"from another site":       {map[string]string{"Sec-Fetch-Site": "cross-site"}, "cross-origin"},
		"from another origin":     {map[string]string{"Origin": "https://evil.example"}, "cross-origin"},
		"from nobody knows where": {nil, "Neither Sec-Fetch-Site nor Origin proves"},
	} {
		if code, text, _ := ann.ask("/"+to, c.headers, pause); code != http.StatusForbidden || !strings.Contains(text, c.says) {
			t.Errorf("a write %s: %d %s", name, code, text)
		}
	}
	// Without these headers, the check depends on the host name that the proxy passes on.
	delete(forged, "Sec-Fetch-Site")
	forged["Origin"] = tools
	if code, text, _ := ann.ask("/"+to, forged, pause); code != http.StatusOK || !strings.Contains(text, "Stream orders is paused.") {
		t.Errorf("a write: %d %s", code, text)
	}
	page.await(regexp.MustCompile(`page: changed" action=pause app=billing stream=orders user=ann@example\.com remote=127\.0\.0\.1:`))
	if log := strings.Join(page.log, "\n"); strings.Contains(log, "zoe") || strings.Count(log, "page: changed") != 1 {
		t.Errorf("the log has what it should not:\n%s", log)
	}

	// Changes by other users appear without a reload.
	ann.until("/app?app=billing&part=1", "paused")
	page.run("group", "resume", guideStore, "--app=billing", "--stream=orders")
	ann.until("/app?app=billing&part=1", "orders was resumed")

	if code, text, ours := ann.get("/oauth2/sign_out"); code != http.StatusForbidden || ours {
		t.Errorf("signing out: %d, of the page itself: %v\n%s", code, ours, text)
	}
	signedOut(ann, "after signing out")
}

// browser is the browser of a user. It keeps cookies, and reaches the proxy under the proxy's
// public name.
type browser struct {
	t      *testing.T
	client *http.Client
}

// browse returns the browser of a user that the provider knows.
func browse(t *testing.T, proxy string, trusted *x509.CertPool, sso *provider, email string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(sso.url)
	if err != nil {
		t.Fatal(err)
	}
	jar.SetCookies(at, []*http.Cookie{{Name: ssoCookie, Value: email}})
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == "tools.example.com:443" {
				addr = proxy
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &browser{t, &http.Client{Transport: transport, Jar: jar}}
}

// ask returns the last answer. ours reports whether the answer comes from the page. The content
// security policy of the answer shows this.
func (b *browser) ask(at string, headers map[string]string, form url.Values) (code int, text string, ours bool) {
	b.t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, tools+at, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range headers {
		r.Header[name] = []string{value} // keeps the spelling of the header
	}
	resp, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(body), strings.HasPrefix(resp.Header.Get("Content-Security-Policy"), "default-src 'none'")
}

func (b *browser) get(at string) (code int, text string, ours bool) {
	b.t.Helper()
	return b.ask(at, nil, nil)
}

// signOn opens a page, and follows the link to sign in and the redirects.
func (b *browser) signOn(at string) (code int, text string, ours bool) {
	b.t.Helper()
	_, text, _ = b.get(at)
	to, sends := form(b.t, text, "Sign in with")
	return b.get(to + "?" + sends.Encode())
}

// until waits for a text on a page.
func (b *browser) until(at, says string) {
	b.t.Helper()
	late := time.After(30 * time.Second)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		_, text, _ := b.get(at)
		if strings.Contains(text, says) {
			return
		}
		select {
		case <-again.C:
		case <-late:
			b.t.Fatalf("%s does not say %q:\n%s", at, says, text)
		}
	}
}

// certificate creates a self-signed certificate for a name.
func certificate(t *testing.T, name string) (trusted *x509.CertPool, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))
	trusted = x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(cert))
	return trusted, cert, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: packed}))
}
