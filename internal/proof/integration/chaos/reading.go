package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// The ways of reading in a run.
const (
	byPolling = "polling"
	byFanOut  = "fanout"
	// byBoth means that every other worker subscribes. When a shard moves, the way of reading it
	// may change, as during a rollout of Options.FanOut.
	byBoth = "both"
)

var readings = []string{byPolling, byFanOut, byBoth}

// readingOf returns how the n-th worker reads, counted from 1.
func readingOf(wish string, n int) weir.FanOutMode {
	if wish == byFanOut || wish == byBoth && n%2 == 1 {
		return weir.FanOutRegister
	}
	return weir.FanOutOff
}

// pushed reports whether at least one of the processes reads by fan-out. nil means all processes.
func (s *stage) pushed(lives []string) bool {
	return slices.ContainsFunc(s.slots, func(w *slot) bool {
		return w.reading == weir.FanOutRegister && (lives == nil || slices.Contains(lives, w.life.name))
	})
}

// client returns a client that trusts the certificate in a file. It can speak HTTP/2, but weir
// requests HTTP/2 only for subscriptions.
func client(url, caFile string) (*kinesis.Client, error) {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("there is no certificate in %s", caFile)
	}
	return (&servers.Server{URL: url}).Kinesis(func(o *kinesis.Options) {
		o.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConnsPerHost = 64
			t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		})
	}), nil
}
