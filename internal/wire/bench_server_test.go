package wire

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/internal/wire/codec"
)

// The benchmarks read from a server in a separate process, which runs the same test binary. The CPU
// time of this process is then only that of the client.

const benchServer = "WIRE_BENCH_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(benchServer) != "" {
		if err := serveBench(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(leaktest.Run(m))
}

// benchAddress contains the server's addresses. The server prints it on its standard output.
type benchAddress struct{ HTTP, HTTPS, Certificate string }

// serveBench serves pages until in ends. The path /records/bytes selects the page. The content type
// of the request selects the format.
func serveBench(in io.Reader, out io.Writer) error {
	var mu sync.Mutex
	prepared := map[string][]byte{}
	page := func(path, contentType string) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if b, ok := prepared[path+contentType]; ok {
			return b, nil
		}
		count, size, _ := strings.Cut(strings.Trim(path, "/"), "/")
		n, err := strconv.Atoi(count)
		if err != nil {
			return nil, err
		}
		bytes, err := strconv.Atoi(size)
		if err != nil {
			return nil, err
		}
		b := answers.CBOR{}.Encode(answers.Sample(n, bytes))
		if contentType == codec.JSONType {
			b = answers.JSON{Time: "e"}.Encode(answers.Sample(n, bytes))
		}
		prepared[path+contentType] = b
		return b, nil
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		contentType := r.Header.Get("Content-Type")
		b, err := page(r.URL.Path, contentType)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// This delay simulates the network. A server that answers at once disturbs the SDK's
		// client.
		<-time.After(time.Millisecond)
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		_, _ = w.Write(b)
	})
	plain := httptest.NewServer(handler)
	defer plain.Close()
	secure := httptest.NewUnstartedServer(handler)
	secure.EnableHTTP2 = true
	secure.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	secure.StartTLS()
	defer secure.Close()
	err := json.NewEncoder(out).Encode(benchAddress{plain.URL, secure.URL,
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// startBenchServer starts the server. The server ends with the benchmark.
func startBenchServer(tb testing.TB) (addr benchAddress, roots *x509.CertPool) {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(os.Environ(), benchServer+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(line, &addr); err != nil {
		tb.Fatal(err)
	}
	roots = x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(addr.Certificate)) {
		tb.Fatal("no certificate")
	}
	return addr, roots
}
