package wire

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/weir-go/weir/internal/wire/codec"
)

// sdkSigns signs the same request with the SDK's signer. Host, path, body, time and signed headers
// are the same.
func sdkSigns(tb testing.TB, r *http.Request, body []byte, region string, cred aws.Credentials) string {
	tb.Helper()
	auth := r.Header.Get("Authorization")
	_, names, ok := parseAuthorization(auth)
	if !ok {
		tb.Fatalf("Authorization is %q", auth)
	}
	scheme := "http"
	if r.TLS != nil || r.URL.Scheme == "https" {
		scheme = "https"
	}
	again, err := http.NewRequest(r.Method, scheme+"://"+r.Host+r.URL.EscapedPath(), bytes.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	again.ContentLength = 0 // the SDK would sign it, and this package does not
	for _, name := range names {
		if name != "host" && name != "x-amz-date" && name != "x-amz-security-token" {
			again.Header.Set(name, r.Header.Get(name))
		}
	}
	at, err := time.Parse(timeForm, r.Header.Get("X-Amz-Date"))
	if err != nil {
		tb.Fatal(err)
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(context.Background(), cred, again, hex.EncodeToString(sum[:]), "kinesis", region, at); err != nil {
		tb.Fatal(err)
	}
	return again.Header.Get("Authorization")
}

func TestSignaturesAreThoseOfTheSDK(t *testing.T) {
	ids := []aws.Credentials{
		{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret/+=", SessionToken: ""},
		{AccessKeyID: "ASIAEXAMPLE", SecretAccessKey: "another", SessionToken: "a token/with+signs=="},
		{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "rotated", SessionToken: ""},
	}
	for _, path := range []string{"/", "/kinesis/", "/a%20b/ü;x=1,2/"} {
		for _, host := range []string{"localhost:4567", "kinesis.eu-west-3.amazonaws.com", "[::1]:8080"} {
			u := mustParse(t, "http://"+host+path)
			ep := &endpoint{url: u, host: withoutDefaultPort(host, "http"), path: endpointPath(u), agent: []string{"x"}}
			ep.signer.region, ep.signer.service = "eu-west-3", "kinesis"
			// The times cross midnight, and the credentials change while the key is cached.
			for i, at := range []time.Time{
				time.Date(2026, 1, 31, 23, 59, 58, 0, time.UTC), time.Date(2026, 1, 31, 23, 59, 59, 999, time.UTC),
				time.Date(2026, 2, 1, 1, 0, 0, 0, time.FixedZone("east", 3600)), time.Date(2026, 2, 1, 0, 0, 1, 0, time.UTC),
			} {
				for j, cred := range ids {
					f := []codec.Format{codec.CBOR, codec.JSON}[(i+j)%2]
					r := ep.request(t.Context(), at, &cred, callFor(f), (&Request{Iterator: strings.Repeat("i", 30*i), Limit: 5 * j, StreamARN: "arn:aws:x"}).appendTo(nil, f))
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Fatal(err)
					}
					r.Host = host
					if got, want := r.Header.Get("Authorization"), sdkSigns(t, r, body, "eu-west-3", cred); got != want {
						t.Errorf("%s, %v, %s:\n%s, the SDK has\n%s", u, at, cred.SecretAccessKey, got, want)
					}
					if got := r.Header.Get("X-Amz-Security-Token"); got != cred.SessionToken {
						t.Errorf("the token is %q", got)
					}
				}
			}
		}
	}
}

// Many goroutines share one signer while the credentials change.
func TestSigningAtOnce(t *testing.T) {
	u := mustParse(t, "http://localhost/")
	ep := &endpoint{url: u, host: "localhost", path: endpointPath(u), agent: []string{"x"}}
	ep.signer.region, ep.signer.service = "r", "kinesis"
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 50 {
				cred := aws.Credentials{AccessKeyID: "A", SecretAccessKey: fmt.Sprint((g + i) % 3)}
				r := ep.request(t.Context(), at, &cred, recordsCBOR, (&Request{Iterator: fmt.Sprint(i)}).appendTo(nil, codec.CBOR))
				body, _ := io.ReadAll(r.Body)
				if got, want := r.Header.Get("Authorization"), sdkSigns(t, r, body, "r", cred); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestCanonicalValues(t *testing.T) {
	for in, want := range map[string]string{"": "", " a ": "a", "a  b   c": "a b c", "a b": "a b", "  ": ""} {
		if got := canonical(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
