package page_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/store/memstore"
)

// The page runs behind nginx with the configuration of the guide: a password, a prefix, and the
// user in the log.
func TestBehindNginxWithAPasswordAndAPrefix(t *testing.T) {
	from := guide(t, "nginx, with a password and a prefix", "nginx")
	page := serve(t, from.command)
	// This configuration is used over plain HTTP.
	location := regexp.MustCompile(`(?s)\tlocation /weir/ \{.*?\n\t\}`).FindString(from.config)
	nginx := servers.Nginx(t, elsewhere(t, location, map[string]string{"http://127.0.0.1:4568": page.url, "/etc/nginx/weir.users": "$dir/users"}),
		map[string]string{"users": "ann:{PLAIN}secret\n"})

	ask := func(target string, headers map[string]string, form string) (int, string) {
		t.Helper()
		method := http.MethodGet
		if form != "" {
			method = http.MethodPost
		}
		r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range headers {
			r.Header.Set(name, value)
		}
		if host := headers["Host"]; host != "" {
			r.Host = host
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	const pause = "do=pause&app=billing&stream=&seen="
	ours := "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:secret"))
	for name, c := range map[string]struct {
		at      string
		headers map[string]string
		form    string
		code    int
		says    string
	}{
		"without a password":                  {nginx.URL, nil, "", http.StatusUnauthorized, "401"},
		"a write without a password":          {nginx.URL, map[string]string{"Sec-Fetch-Site": "same-origin"}, pause, http.StatusUnauthorized, "401"},
		"a write past the proxy":              {page.url, map[string]string{"Sec-Fetch-Site": "same-origin"}, pause, http.StatusForbidden, "sent no user in X-Forwarded-User"},
		"a write from another site":           {nginx.URL, map[string]string{"Sec-Fetch-Site": "cross-site", "Authorization": ours}, pause, http.StatusForbidden, "cross-origin"},
		"a write from another origin":         {nginx.URL, map[string]string{"Origin": "http://evil.example", "Authorization": ours}, pause, http.StatusForbidden, "cross-origin"},
		"a write under a name that is no one": {nginx.URL, map[string]string{"Host": "evil.example", "Sec-Fetch-Site": "same-origin", "Authorization": ours}, pause, http.StatusForbidden, "only requests for localhost"},
		"with a password":                     {nginx.URL, map[string]string{"Authorization": ours}, "", http.StatusOK, "billing"},
		"under its name":                      {nginx.URL, map[string]string{"Host": "tools.example.com", "Authorization": ours}, "", http.StatusOK, "billing"},
	} {
		target := c.at + "/"
		if c.at == nginx.URL {
			target += "weir/"
		}
		if c.form != "" {
			target += "write"
			c.headers["Content-Type"] = "application/x-www-form-urlencoded"
		}
		if code, text := ask(target, c.headers, c.form); code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}

	s := open(t, memstore.New(), dashboard.Options{})
	s.url = nginx.URL + "/weir/"
	// The page must not receive the header that the browser sent.
	s.do(network.SetExtraHTTPHeaders(network.Headers{"Authorization": ours, "X-Forwarded-User": "eve"}))
	s.goTo(chromedp.Navigate(nginx.URL + "/weir/"))
	s.goTo(chromedp.Click(`a[href="app?app=billing"]`))
	s.until(`document.getElementById("live").textContent === "Live"`)
	s.goTo(chromedp.Click(`a[href="change?app=billing"]`))
	s.says("are logged with the user ann")
	s.press("Pause now: Stream orders")
	s.says("Stream orders is paused.")
	page.await(regexp.MustCompile(`page: changed" action=pause app=billing stream=orders user=ann remote=127\.0\.0\.1:`))
	if out := page.run("group", "describe", guideStore, "--app=billing", "--endpoint", page.kinesis.URL()); !strings.Contains(out, "paused") {
		t.Errorf("weir group describe says %s", out)
	}
	s.goTo(chromedp.Click(`a[href="change?app=billing"]`))
	s.do(chromedp.SendKeys(`input[name="to"]`, "oldest"))
	s.goTo(chromedp.Click(`form.fields button`))
	s.says("2 checkpoints would move to oldest")
	s.goTo(chromedp.Click(`form[method="post"] button`))
	s.says("2 of 2 checkpoints moved to oldest.")
	page.await(regexp.MustCompile(`page: changed" action=reset app=billing to=oldest user=ann`))
	s.picture("behind-nginx")
	s.clean()
}
