package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/wronginput"
)

// talking starts a server that sends a greeting to each client and closes the connection. If wait
// is true, it first waits until the client closes it. talking returns the address.
func talking(t *testing.T, greeting string, wait bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			served.Go(func() {
				defer c.Close()
				_, _ = io.WriteString(c, greeting)
				if wait {
					_, _ = io.Copy(io.Discard, c)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		served.Wait()
	})
	return l.Addr().String()
}

// pages starts an HTTP server that gives the same answer to every request, and returns its URL.
func pages(t *testing.T, status int, contentType, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

const (
	banner   = "SSH-2.0-OpenSSH_9.6p1 Debian-3\r\n"
	redisErr = "-ERR unknown command 'POST', with args beginning with: '/' 'HTTP/1.1'\r\n"
)

// foreignServers returns inputs whose endpoint is not a Kinesis server.
func foreignServers(p *wrongPlace) []wronginput.Input {
	t := p.t
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes are expected
	tls.StartTLS()
	t.Cleanup(tls.Close)
	tail := func(endpoint string) string { return "tail --stream s --endpoint " + endpoint }
	ssh := talking(t, banner, true)
	page := pages(t, 200, "text/html", html)
	plain := p.kinesis.URL()
	return under("endpoint",
		fails("a page of HTML behind tail", tail(page), page, "HTML"),
		fails("a page of HTML behind put", "put --stream s --endpoint "+page+" "+p.records, page, "HTML"),
		fails("a page that is not there", tail(pages(t, 404, "text/html", html)), "404", "endpoint"),
		fails("a proxy whose service is away", tail(pages(t, 503, "text/html", "<html>503 Service Unavailable</html>")), "503"),
		fails("a gateway that waited too long", tail(pages(t, 504, "text/plain", "upstream timed out")), "504"),
		fails("JSON of something else", tail(pages(t, 200, "application/json", `{"status":"ok"}`)), "Kinesis"),
		fails("an empty answer", tail(pages(t, 200, "text/plain", "")), "Kinesis"),
		fails("a cut answer", tail(pages(t, 200, "application/x-amz-json-1.1", `{"Shards":[{"Sha`)), "Kinesis"),
		fails("a redirect", tail(redirecting(t)), "30"),
		fails("TLS to a plain port", tail("https://"+strings.TrimPrefix(plain, "http://")), "http://"),
		fails("plain to a TLS port", tail("http://"+strings.TrimPrefix(tls.URL, "https://")), "https://"),
		fails("a certificate that nobody trusts", tail(tls.URL), "certificate", "AWS_CA_BUNDLE"),
		fails("an SSH server", tail("http://"+ssh), "SSH"),
		fails("an SSH server behind TLS", tail("https://"+ssh), "SSH"),
		fails("a Redis server", tail("http://"+talking(t, redisErr, true)), "Redis"),
		fails("a server that closes at once", tail("http://"+talking(t, "", false)), "closed the connection"),
		fails("a server that closes at once behind TLS", tail("https://"+talking(t, "", false)), "closed the connection"),
	)
}

func redirecting(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.RedirectHandler("/login", http.StatusFound))
	t.Cleanup(s.Close)
	return s.URL
}

// foreignStores returns inputs whose store is a server of another kind.
func foreignStores(p *wrongPlace) []wronginput.Input {
	t := p.t
	page := strings.TrimPrefix(pages(t, 200, "text/html", html), "http://")
	list := func(url string) string { return "group list --store " + url }
	inputs := []wronginput.Input{
		fails("a page of HTML as DynamoDB", "group describe --app a --store dynamodb:weir --dynamodb-endpoint http://"+page, "HTML"),
		fails("Kinesis as DynamoDB", "group describe --app a --store dynamodb:weir --dynamodb-endpoint "+p.kinesis.URL(), "DynamoDB"),
	}
	inputs = append(inputs,
		fails("postgres: an SSH server", list("postgres://u@"+talking(t, banner, true)+"/d"), "SSH", "instead of Postgres", "--store"),
		fails("redis: an SSH server", list("redis://"+talking(t, banner, true)), "SSH", "instead of Redis", "--store"),
		fails("redis: an HTTP server", list("redis://"+page), "HTTP", "instead of Redis", "--store"),
	)
	for name, url := range map[string]string{
		"postgres: an HTTP server": "postgres://u@" + page + "/d",
		"mysql: an SSH server":     "mysql://u@" + talking(t, banner, true) + "/d",
		"mysql: an HTTP server":    "mysql://u@" + page + "/d",
	} { // client and server wait for each other
		in := fails(name, list(url)+" --connect-timeout 7s", "server answers at", " instead of ", ": check --store")
		in.Until = 7 * time.Second
		inputs = append(inputs, in)
	}
	for _, scheme := range []string{"postgres", "mysql", "redis"} {
		at := func(addr string) string { return list(scheme + "://u:" + wronginput.Secret + "@" + addr + "/0") }
		inputs = append(inputs,
			fails(scheme+": a server that closes at once", at(talking(t, "", false)), "closed the connection"),
		)
	}
	return under("store", inputs...)
}
