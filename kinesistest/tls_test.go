package kinesistest_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/kinesistest"
)

// withoutALPN configures a client like the asynchronous client of the Java SDK. The client uses TLS
// without ALPN and starts directly with the given protocols.
func withoutALPN(s *kinesistest.Server, protocols *http.Protocols) func(*kinesis.Options) {
	tr := s.Transport()
	tr.Protocols = protocols
	cfg := &tls.Config{RootCAs: s.CACert(), ServerName: "localhost"}
	dial := tr.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		raw, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(raw, cfg)
		if err := conn.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		if p := conn.ConnectionState().NegotiatedProtocol; p != "" {
			return nil, errors.New("it negotiated " + p)
		}
		return struct{ net.Conn }{conn}, nil // hides TLS from net/http
	}
	return func(o *kinesis.Options) {
		through(tr)(o)
		o.BaseEndpoint = aws.String(strings.Replace(s.URL(), "https:", "http:", 1))
	}
}

func TestTLSWithoutALPN(t *testing.T) {
	for _, name := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(name, func(t *testing.T) {
			s := kinesistest.NewServer(t, kinesistest.Config{TLS: true})
			s.CreateStream("s", 1)
			proto := ""
			s.Control("PutRecord", func(c *kinesistest.Call) kinesistest.Fault {
				proto = c.Proto
				return kinesistest.Fault{}
			})
			p := new(http.Protocols)
			p.SetHTTP1(name == "HTTP/1.1")
			p.SetUnencryptedHTTP2(name == "HTTP/2.0")
			c := s.Client(noRetry, withoutALPN(s, p))
			data := strings.Repeat("x", 1<<19) // larger than a flow-control window of HTTP/2
			ok[*kinesis.PutRecordOutput](t)(c.PutRecord(t.Context(), &kinesis.PutRecordInput{
				StreamName: aws.String("s"), PartitionKey: aws.String("k"), Data: []byte(data),
			}))
			if proto != name {
				t.Errorf("the put came over %s", proto)
			}
			r := reader{t, t.Context(), c, "s"}
			page := ok[*kinesis.GetRecordsOutput](t)(c.GetRecords(t.Context(), &kinesis.GetRecordsInput{
				ShardIterator: r.iterator(shardID(0), oldest),
			}))
			if len(page.Records) != 1 || string(page.Records[0].Data) != data {
				t.Errorf("%d records", len(page.Records))
			}
		})
	}
}

// A connection that stays silent before or after the TLS handshake is closed after some time. It
// blocks no other connection.
func TestSilentTLSConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := kinesistest.NewServer(t, kinesistest.Config{TLS: true, InMemory: true})
		dial := func() net.Conn { return ok[net.Conn](t)(s.Transport().DialContext(t.Context(), "tcp", "")) }
		mute := dial()
		silent := tls.Client(dial(), &tls.Config{RootCAs: s.CACert(), ServerName: "localhost"})
		defer mute.Close()
		defer silent.Close()
		if err := silent.Handshake(); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		ok[*kinesis.ListStreamsOutput](t)(s.Client(noRetry).ListStreams(t.Context(), &kinesis.ListStreamsInput{}))
		if d := time.Since(begin); d > 0 {
			t.Errorf("another client waited for %v", d)
		}
		for _, c := range []net.Conn{mute, silent} {
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("it said something")
			}
		}
		if d := time.Since(begin); d != 30*time.Second {
			t.Errorf("they were cut after %v", d)
		}
	})
}

func TestCloseWaitsForNoHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := kinesistest.NewServer(t, kinesistest.Config{TLS: true, InMemory: true})
		conn := ok[net.Conn](t)(s.Transport().DialContext(t.Context(), "tcp", ""))
		defer conn.Close()
		synctest.Wait()
		begin := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d > 0 {
			t.Errorf("it took %v", d)
		}
	})
}

func TestPlainHTTPToATLSPort(t *testing.T) {
	s := kinesistest.NewServer(t, kinesistest.Config{TLS: true})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(s.URL(), "https:", "http:", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(body), "HTTPS server") {
		t.Errorf("%s %q %v", resp.Status, body, err)
	}
}
