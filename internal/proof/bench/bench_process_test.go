//go:build unix

package bench

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/proof/benchserver"
	"github.com/weir-go/weir/internal/proof/leaktest"
)

// The server of the read benchmarks runs in a separate process of the same test binary. So the CPU
// time of this process is only that of the client. Memory benchmarks also run the client in a
// separate process.

func TestMain(m *testing.M) {
	benchserver.Main()
	clientMain()
	os.Exit(leaktest.Run(m))
}

func serveBench(tb testing.TB, cfg benchserver.Config) *benchserver.Process {
	tb.Helper()
	if cfg.Delay == 0 {
		cfg.Delay = time.Millisecond
	}
	p, err := benchserver.Start(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.Close() })
	return p
}

func serverStats(tb testing.TB, p *benchserver.Process) benchserver.Stats {
	tb.Helper()
	s, err := p.Stats()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// benchTransport returns a copy of the default transport that trusts the server's certificate.
func benchTransport(addr benchserver.Address) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(addr.Certificate)
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	t.MaxIdleConnsPerHost = 32
	return t
}

func benchClient(addr benchserver.Address, opts ...func(*kinesis.Options)) *kinesis.Client {
	return kinesis.New(kinesis.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(addr.URL), HTTPClient: &http.Client{Transport: benchTransport(addr)},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		}),
	}, opts...)
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it cannot fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memory returns the memory of this process in MB, as the system reports it. VmRSS is the current
// size, and VmHWM is the maximum. It returns 0 on systems without such a report.
func memory(which string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kb float64
		if n, _ := fmt.Sscanf(line, which+": %f kB", &kb); n == 1 {
			return kb * 1024 / 1e6
		}
	}
	return 0
}

// clientJob is the task of a client in a separate process. See clients.
type clientJob struct {
	Client  string
	Address benchserver.Address
	Shards  int
	Length  time.Duration
}

// clientResult is the cost of a clientJob.
type clientResult struct {
	CPU, Length   time.Duration // of the measurement
	StartCPU      time.Duration // before the measurement
	Goroutines    int
	Before        float64 // MB, before the client began
	Memory, Peak  float64 // MB
	Records, Data int64   // numbers of records and bytes read
}

const clientVariable = "WEIR_BENCH_CLIENT"

// clientMain runs a client if startClient started this process. It prints "ready", waits for a
// line, and prints its measurements. It then continues until its standard input ends, so that the
// test can query the server before anything stops.
func clientMain() {
	text := os.Getenv(clientVariable)
	if text == "" {
		return
	}
	err := func() error {
		var job clientJob
		if err := json.Unmarshal([]byte(text), &job); err != nil {
			return err
		}
		in := bufio.NewReader(os.Stdin)
		result, err := clients[job.Client](job, func() error {
			fmt.Println("ready")
			_, err := in.ReadString('\n')
			return err
		})
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, in)
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

type clientProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (p *clientProcess) close() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}

// startClient starts a client process and waits until it is ready.
func startClient(tb testing.TB, job clientJob) *clientProcess {
	tb.Helper()
	text, err := json.Marshal(job)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), clientVariable+"="+string(text))
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
	p := &clientProcess{cmd, in, bufio.NewReader(out)}
	tb.Cleanup(p.close)
	if line, err := p.out.ReadString('\n'); err != nil || line != "ready\n" {
		tb.Fatalf("the client says %q, %v", line, err)
	}
	return p
}

// measure makes the client measure and returns the result.
func (p *clientProcess) measure(tb testing.TB) (r clientResult) {
	tb.Helper()
	if _, err := fmt.Fprintln(p.in); err != nil {
		tb.Fatal(err)
	}
	if err := json.NewDecoder(p.out).Decode(&r); err != nil {
		tb.Fatal(err)
	}
	return r
}
