// Package servers starts third-party servers for tests, such as Kinesis servers and databases.
// scripts/fetch-servers.sh fetches the servers. Each server runs on a free port of 127.0.0.1. It
// ends with the test that started it, or with the test's process.
package servers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Require is an environment variable. If its value is "require", a test fails if its server was not
// fetched. Otherwise the test is skipped.
const Require = "WEIR_INTEGRATION"

// Server is one running server.
type Server struct {
	Name string
	URL  string

	kill func()
}

// Kill kills the server, like a crash. It returns when the process is gone.
func (s *Server) Kill() { s.kill() }

const (
	startWithin = 2 * time.Minute // machines are shared, and a JVM starts slowly
	healthEvery = 20 * time.Millisecond
)

// DynamoDBLocal starts Amazon's own DynamoDB Local, in memory. Its launcher,
// scripts/servers/LoopbackDynamoDB.java, lists its bugs.
func DynamoDBLocal(t testing.TB) *Server {
	t.Helper()
	return dynamoDBLocal(t)
}

// DynamoDBLocalOn starts DynamoDB Local with its tables in a directory, where a later instance
// finds them.
func DynamoDBLocalOn(t testing.TB, dir string) *Server {
	t.Helper()
	return dynamoDBLocal(t, dir)
}

func dynamoDBLocal(t testing.TB, place ...string) *Server {
	t.Helper()
	dir := fetched(t, "dynamodb-local")
	cmd := exec.Command("java", append([]string{"-Xmx512m", "-XX:TieredStopAtLevel=1", "-Djava.library.path=" + dir,
		"-cp", dir + string(os.PathListSeparator) + filepath.Join(dir, "*"), "LoopbackDynamoDB"}, place...)...)
	return start(t, "DynamoDB Local", cmd, "8000", "/")
}

// Dynalite starts dynalite from npm, a DynamoDB server in JavaScript. It has no transactions. It
// does not return the item when a condition fails. It drops indexes that UpdateTable adds.
func Dynalite(t testing.TB) *Server {
	t.Helper()
	return start(t, "dynalite", node(t, "dynalite/cli.js", "--createTableMs", "50"), "4567", "/")
}

// Kinesalite starts kinesalite from npm. It is old but fast. It supports polling, splits, merges
// and validation. It does not support stream ARNs, ignores ShardFilter, returns no ChildShards, and
// ends a closed shard with an empty answer.
func Kinesalite(t testing.TB) *Server {
	t.Helper()
	return start(t, "kinesalite", node(t, "kinesalite/cli.js",
		"--createStreamMs", "50", "--deleteStreamMs", "50", "--updateStreamMs", "50", "--shardLimit", "100"), "4567", "/")
}

// KinesisLocal starts kinesis-local from npm (kinesis-mock). Use HTTP/1.1 with it. The last answer
// of GetRecords for a closed shard has records and ChildShards, but no next iterator. The
// EndingSequenceNumber of a closed shard is before its first sequence number.
func KinesisLocal(t testing.TB) *Server {
	t.Helper()
	cmd := node(t, "kinesis-local/main.js")
	cmd.Env = append(cmd.Env,
		// Otherwise the server searches for this file in the working directory.
		"KINESIS_MOCK_CERT_PATH="+filepath.Join(fetched(t, "npm"), "node_modules", "kinesis-local", "server.json"),
		"CREATE_STREAM_DURATION=50ms", "DELETE_STREAM_DURATION=50ms", "SPLIT_SHARD_DURATION=50ms", "MERGE_SHARDS_DURATION=50ms",
		"UPDATE_SHARD_COUNT_DURATION=50ms", "LOG_LEVEL=ERROR", "SHARD_LIMIT=100")
	return start(t, "kinesis-local", cmd, "4568", "/healthcheck")
}

// Script returns a command that runs a JavaScript file with the fetched npm packages.
func Script(t testing.TB, file string, args ...string) *exec.Cmd {
	t.Helper()
	return script(t, fetched(t, "npm"), file, args...)
}

// LifionScript is Script with lifion-kinesis.
func LifionScript(t testing.TB, file string, args ...string) *exec.Cmd {
	t.Helper()
	return script(t, fetched(t, "lifion"), file, args...)
}

func script(t testing.TB, dir, file string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", append([]string{file}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(dir, "node_modules"))
	return cmd
}

// Java returns a command that runs one of the programs of the Java tests, with the KCL and the KPL.
// The program trusts only the certificate in pem; without one it needs no server. A class may also
// be a file with the source of one class.
func Java(t testing.TB, pem []byte, class string, args ...string) *exec.Cmd {
	t.Helper()
	return java(t, fetched(t, "java"), pem, class, args...)
}

// JavaOne is Java for programs of KCL 1.x.
func JavaOne(t testing.TB, pem []byte, class string, args ...string) *exec.Cmd {
	t.Helper()
	return java(t, fetched(t, "java1"), pem, class, args...)
}

func java(t testing.TB, dir string, pem []byte, class string, args ...string) *exec.Cmd {
	t.Helper()
	all := []string{"-Xmx512m", "-XX:TieredStopAtLevel=1"}
	if pem != nil {
		trust := filepath.Join(t.TempDir(), "trust.p12")
		keytool := exec.CommandContext(t.Context(), "keytool", "-importcert", "-noprompt", "-alias", "weir", "-file", CAFile(t, pem),
			"-keystore", trust, "-storetype", "PKCS12", "-storepass", "changeit")
		if said, err := keytool.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		all = append(all, "-Djavax.net.ssl.trustStore="+trust, "-Djavax.net.ssl.trustStorePassword=changeit")
	}
	all = append(all, "-cp", dir+string(os.PathListSeparator)+filepath.Join(dir, "*"), class)
	return exec.CommandContext(t.Context(), "java", append(all, args...)...)
}

// Python returns a command that runs a Python file with the fetched packages, boto3 and the AWS
// CLI. It removes the environment variables of the AWS SDK.
func Python(t testing.TB, file string, args ...string) *exec.Cmd {
	t.Helper()
	dir := fetched(t, "python")
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", "python"), append([]string{file}, args...)...)
	home := t.TempDir()
	cmd.Env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1", "AWS_REGION=" + Region, "AWS_DEFAULT_REGION=" + Region,
		"AWS_ACCESS_KEY_ID=" + AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + SecretAccessKey, "AWS_EC2_METADATA_DISABLED=true", "AWS_PAGER=",
	}
	return cmd
}

// node returns a command that runs a server from npm on the loopback interface.
func node(t testing.TB, script string, args ...string) *exec.Cmd {
	t.Helper()
	dir := fetched(t, "npm")
	preload := filepath.Join(root(t), "scripts", "servers", "loopback.js")
	cmd := exec.Command("node", append([]string{"-r", preload, filepath.Join(dir, "node_modules", script)}, args...)...)
	cmd.Env = os.Environ()
	return cmd
}

// fetched returns the folder of a fetched package. If the package was not fetched, the test is
// skipped. It fails if skipping is not allowed.
func fetched(t testing.TB, name string) string {
	t.Helper()
	deps := os.Getenv("WEIR_DEPS")
	if deps == "" {
		deps = filepath.Join(root(t), ".deps")
	}
	dir, err := filepath.Abs(filepath.Join(deps, name))
	if err != nil {
		t.Fatal(err)
	}
	if why, err := os.ReadFile(filepath.Join(dir, ".missing")); err == nil {
		t.Skipf("%s could not be fetched: %s", name, why)
	}
	if _, err := os.Stat(filepath.Join(dir, ".fetched")); err != nil {
		const how = "%s is not there: run scripts/fetch-servers.sh, which needs Node.js with npm, Python with venv, a JDK with Maven, CMake, a C++ compiler, and apt-get"
		if os.Getenv(Require) == "require" {
			t.Fatalf(how, name)
		}
		t.Skipf(how, name)
	}
	return dir
}

// root returns the folder of the repository.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "scripts", "fetch-servers.sh")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("these tests run inside the repository only")
		}
		dir = up
	}
}

// start runs a server until the test ends. The launchers print the actual port in place of the
// server's default port.
func start(t testing.TB, name string, cmd *exec.Cmd, port, health string) *Server {
	t.Helper()
	cmd.Dir = t.TempDir()
	stdin, err := cmd.StdinPipe() // the server ends with its standard input, if this process is killed
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said tail
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s cannot be started: %v", name, err)
	}
	found := make(chan string, 1)
	gone := make(chan struct{})
	var stopping atomic.Bool
	go func() {
		defer close(gone)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if actual, ok := strings.CutPrefix(lines.Text(), "weir: port "+port+" is "); ok {
				found <- actual
			}
			fmt.Fprintln(&said, lines.Text())
		}
		_, _ = io.Copy(io.Discard, stdout)
		if err := cmd.Wait(); !stopping.Load() {
			t.Errorf("%s ended in the middle of the test (%v): %s", name, err, said.String())
			// Print this too, in case the test hangs because of it.
			fmt.Fprintln(os.Stderr, name, "ended in the middle of the test:", err, said.String())
		}
	}()
	kill := func() {
		stopping.Store(true)
		_ = stdin.Close()
		_ = cmd.Process.Kill() // kinesis-local hangs on SIGTERM
		<-gone
	}
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			t.Logf("%s said last:\n%s", name, said.String())
		}
	})

	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	s := &Server{Name: name, kill: kill}
	select {
	case actual := <-found:
		s.URL = "http://127.0.0.1:" + actual
	case <-gone:
		t.Fatalf("%s ended at once: %s", name, said.String())
	case <-ctx.Done():
		t.Fatalf("%s does not listen after %s: %s", name, startWithin, said.String())
	}
	every := time.NewTicker(healthEvery)
	defer every.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+health, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			return s // any answer is sufficient
		}
		select {
		case <-every.C:
		case <-gone:
			t.Fatalf("%s ended at once: %s", name, said.String())
		case <-ctx.Done():
			t.Fatalf("%s does not answer after %s: %v\n%s", name, startWithin, err, said.String())
		}
	}
}

// startAt runs a server until the test ends. It waits until the server listens at an address.
func startAt(t testing.TB, name string, cmd *exec.Cmd, addr string) *Server {
	t.Helper()
	cmd.SysProcAttr = attributes(nil)
	var said tail
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s cannot be started: %v", name, err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cmd.Wait()
	}()
	s := &Server{Name: name, kill: func() {
		_ = cmd.Process.Kill()
		<-gone
	}}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("%s said last:\n%s", name, said.String())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	every := time.NewTicker(healthEvery)
	defer every.Stop()
	for {
		if c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr); err == nil {
			_ = c.Close()
			return s
		}
		select {
		case <-every.C:
		case <-gone:
			t.Fatalf("%s ended at once: %s", name, said.String())
		case <-ctx.Done():
			t.Fatalf("%s does not listen after %s: %s", name, startWithin, said.String())
		}
	}
}

// tail keeps the last part of a server's output.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (b *tail) Write(p []byte) (int, error) {
	const most = 8 << 10
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	if over := len(b.text) - most; over > 0 {
		b.text = append([]byte(nil), b.text[over:]...)
	}
	return len(p), nil
}

func (b *tail) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}
