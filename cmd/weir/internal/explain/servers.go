package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// The kinds of servers that can be recognized.
const (
	speaksNothing  = ""
	speaksSSH      = "an SSH server"
	speaksHTTP     = "an HTTP server"
	speaksTLS      = "a server that speaks TLS"
	speaksRedis    = "Redis"
	speaksMySQL    = "MySQL or MariaDB"
	speaksPostgres = "Postgres"
	speaksMail     = "a mail or FTP server"
	closesAtOnce   = "a server that closes the connection"
)

// language returns the kind of a server from its first answer. asked is the request that it
// answers.
func language(said, asked string) string {
	switch {
	case strings.HasPrefix(said, "SSH-"):
		return speaksSSH
	case strings.HasPrefix(said, "HTTP/") && strings.Contains(said, "HTTPS"):
		// The servers of Go and nginx refuse plain requests with this text.
		return speaksTLS
	case strings.HasPrefix(said, "HTTP/"):
		return speaksHTTP
	case strings.HasPrefix(said, "220"):
		return speaksMail
	case strings.HasPrefix(said, "\x15\x03"): // a TLS alert
		return speaksTLS
	case strings.HasPrefix(said, "-ERR "), strings.HasPrefix(said, "-NOAUTH "), strings.HasPrefix(said, "-DENIED "):
		return speaksRedis
	case len(said) > 4 && said[3] == 0 && (said[4] == 10 || said[4] == 0xff):
		// This is MySQL's first packet: of protocol 10, or an error.
		return speaksMySQL
	case asked == askPostgres && (said == "N" || said == "S"):
		return speaksPostgres
	}
	return speaksNothing
}

// Requests to a server that waits for the client to speak first.
const (
	// Redis, and servers with TLS, refuse this request with their own texts.
	askHTTP     = "GET / HTTP/1.0\r\n\r\n"
	askPostgres = "\x00\x00\x00\x08\x04\xd2\x16\x2f" // asks whether the server supports TLS
)

// whoAnswers returns the kind of the server at an address. If the kind is unknown, it returns
// speaksNothing. It takes at most a second.
func whoAnswers(addr string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	questions := [...]string{"", askHTTP, askPostgres}
	answers := make(chan string, len(questions))
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel() // ends the attempts that are still waiting
	for _, question := range questions {
		asking.Go(func() { answers <- greeting(ctx, addr, question) })
	}
	closed := 0
	for range questions {
		switch who := <-answers; who {
		case speaksNothing:
		case closesAtOnce:
			closed++
		default:
			return who
		}
	}
	if closed == len(questions) {
		return closesAtOnce
	}
	return speaksNothing
}

func greeting(ctx context.Context, addr, question string) string {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return speaksNothing
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := io.WriteString(c, question); err != nil {
		return closesAtOnce
	}
	buf := make([]byte, 512)
	n, err := c.Read(buf)
	switch {
	case n > 0:
		return language(string(buf[:n]), question)
	case err != nil && ctx.Err() == nil:
		return closesAtOnce
	}
	return speaksNothing
}

// foreignAnswer describes the server if an HTTP answer cannot come from the expected AWS service.
// It returns "" for other errors.
func foreignAnswer(err error, service string) string {
	var (
		answer *smithyhttp.ResponseError
		format *smithy.DeserializationError
		api    smithy.APIError
	)
	if !errors.As(err, &answer) || answer.Response == nil || answer.Response.Response == nil {
		return ""
	}
	if !errors.As(err, &format) && (!errors.As(err, &api) || api.ErrorCode() != "UnknownError") {
		return ""
	}
	status := answer.HTTPStatusCode()
	at := "the server"
	if asked := answer.Response.Request; asked != nil {
		if status == http.StatusBadRequest && asked.URL.Scheme == "http" && whoAnswers(hostPort(asked.URL)) == speaksTLS {
			return wantsTLS(asked.URL)
		}
		at += " at " + serverURL(asked.URL)
	}
	what := "something other than JSON"
	switch kind := answer.Response.Header.Get("Content-Type"); {
	case status/100 == 3:
		what = "a redirect to " + answer.Response.Header.Get("Location")
	case strings.Contains(kind, "html"):
		what = "a page of HTML"
	case strings.HasPrefix(kind, "text/"):
		what = "plain text"
	}
	if status != http.StatusOK {
		what += fmt.Sprintf(" (%d %s)", status, http.StatusText(status))
	}
	return fmt.Sprintf("%s answers with %s: is it %s, and is that the right endpoint?", at, what, service)
}

func serverURL(u *url.URL) string { return u.Scheme + "://" + u.Host }

func wantsTLS(u *url.URL) string {
	return fmt.Sprintf("the server at %s requires TLS: write the endpoint with https://", serverURL(u))
}

// hostPort returns the host and port of a URL.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	ports := map[string]string{"http": "80", "https": "443", "postgres": "5432", "postgresql": "5432", "mysql": "3306", "mariadb": "3306"}
	port, known := ports[u.Scheme]
	if !known {
		port = "6379" // the other schemes are those of Redis
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// foreignServer describes the server that gave an invalid answer in place of an AWS service. It
// returns "" if it cannot tell what the server is.
func foreignServer(at *url.Error, service string) string {
	if at == nil {
		return "" // not a network call
	}
	u, err := url.Parse(at.URL)
	if err != nil {
		return ""
	}
	switch who := whoAnswers(hostPort(u)); who {
	case speaksNothing:
		return ""
	case closesAtOnce:
		return fmt.Sprintf("the server at %s closed the connection: is it %s?", serverURL(u), service)
	case speaksHTTP:
		if u.Scheme == "http" {
			return "" // the caller reports the server's message
		}
		return fmt.Sprintf("the server at %s does not use TLS: write the endpoint with http://", serverURL(u))
	case speaksTLS:
		if u.Scheme == "https" {
			return ""
		}
		return wantsTLS(u)
	default:
		return fmt.Sprintf("%s answers at %s: is %s running there, and is that the right endpoint?", who, serverURL(u), service)
	}
}

// proxyOf returns the proxy that a call uses, or "" for a direct call.
func proxyOf(at *url.Error) string {
	u, err := url.Parse(at.URL)
	if err != nil {
		return ""
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	if err != nil || proxy == nil {
		return ""
	}
	return serverURL(proxy) // does not contain the password
}

// isDial reports whether the connection could not be opened.
func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}

// WhatAnswers describes the server at a store's address if its kind is wrong. It returns "" if the
// kind is right or unknown.
func WhatAnswers(store string) string {
	u, err := url.Parse(store)
	if err != nil || strings.Contains(u.Host, ",") {
		return ""
	}
	kind, _, _ := strings.Cut(u.Scheme, "-") // "redis-cluster" counts as "redis"
	want := speaksRedis
	switch kind {
	case "postgres", "postgresql":
		want = speaksPostgres
	case "mysql", "mariadb":
		want = speaksMySQL
	}
	addr := hostPort(u)
	switch who := whoAnswers(addr); {
	case who == want, who == speaksNothing, kind == "rediss" && who == speaksTLS:
		return ""
	case who == closesAtOnce:
		return fmt.Sprintf("the server at %s, the address of the store, closed the connection: is it %s, and is --store right?", addr, want)
	case who == speaksTLS:
		return fmt.Sprintf("the server at %s, the address of the store, requires TLS, which --store does not set", addr)
	default:
		return fmt.Sprintf("%s answers at %s instead of %s: check --store", who, addr, want)
	}
}
