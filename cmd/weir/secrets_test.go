package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/kinesistest"
)

// planted is a secret with characters that must be escaped in a URL. The tests search for the part
// that needs no escaping.
const planted = "Pl4nted/@ S3cr3t"

var marks = []string{"Pl4nted", "S3cr3t"}

// process runs a command line in a separate process and returns all its output.
func process(t *testing.T, env []string, stdin string, args ...string) (output string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), asCommand+"=1", "AWS_MAX_ATTEMPTS=1"), env...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

func noSecret(t *testing.T, what, text string) {
	t.Helper()
	for _, m := range marks {
		if strings.Contains(strings.ToLower(text), strings.ToLower(m)) {
			t.Errorf("%s shows %q: %s", what, m, text)
		}
	}
}

// answeringBytes starts a server that sends the same bytes to each client. If first is false, it
// waits for the client's first bytes.
func answeringBytes(t *testing.T, first bool, said string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			heard := make([]byte, 4096)
			if !first {
				_, _ = c.Read(heard)
			}
			_, _ = c.Write([]byte(said))
			_ = c.(*net.TCPConn).CloseWrite()
			// Read the rest of the request, because a reset of the connection could discard the
			// sent bytes.
			_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond))
			_, _ = c.Read(heard)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

func TestNoFailureOfAStoreShowsAPassword(t *testing.T) {
	t.Parallel()
	gone := strings.TrimPrefix(clitest.UnusedAddr(t), "http://")
	nonsense := answeringBytes(t, true, "HTTP/1.1 400 Bad Request\r\n\r\n")
	// This server does not know the commands for passwords, and quotes them in its answers.
	echo := answeringBytes(t, false, "-ERR unknown command 'HELLO', with args beginning with: '3' 'auth' 'weir' '"+planted+"' \r\n"+
		"-ERR unknown command 'AUTH', with args beginning with: 'weir' '"+planted+"' \r\n")
	user, query := url.UserPassword("weir", planted).String(), url.QueryEscape(planted)
	stores := []string{
		"postgres://" + user + "@" + gone + "/shop", "postgres://" + user + "@" + nonsense + "/shop?sslmode=disable",
		"postgres://" + gone + "/shop?user=weir&password=" + query, "postgres://weir@" + gone + "/shop?sslpassword=" + query + "&sslmode=bogus",
		"postgresql://weir:" + planted + "@" + gone + "/shop",
		"postgres://" + user + "@" + gone, "postgres:" + user + "@" + gone + "/shop", "postgres://weir:" + planted + "@[::1/shop",
		"postgres://" + user + "@" + gone + "/shop?weir_prefix=a-b", "postgres://" + user + "@" + gone + "/shop?password=" + query + "&sslmode=bogus",
		"mysql://" + user + "@" + gone + "/shop", "mysql://" + user + "@" + nonsense + "/shop", "mysql://" + user + "@" + gone + "/shop?tls=" + query,
		"mysql://" + user + "@" + gone + "/shop?timeout=" + query, "mysql:weir:" + planted + "@tcp(" + gone + ")/shop", "weir:" + planted + "@tcp(" + gone + ")/shop",
		"mysql://" + user + "@" + gone + "/shop?password=" + query, "mariadb://weir:" + planted + "@" + gone + "/shop",
		"redis://" + user + "@" + gone, "redis://:" + url.PathEscape(planted) + "@" + gone + "/1", "redis://" + user + "@" + nonsense, "redis://" + user + "@" + echo,
		"redis://" + gone + "?password=" + query, "redis://" + user + "@" + gone + "/" + url.PathEscape(planted), "redis://" + user + "@" + gone + "?read_timeout=" + query,
		"rediss://" + user + "@" + nonsense, "redis-cluster://" + user + "@" + gone, "redis-cluster://" + user + "@" + gone + "?addr=" + query,
		"redis-sentinel://" + user + "@" + gone, "redis-sentinel://" + user + "@" + gone + "?master_name=m", "redis-sentinel://" + gone + "?master_name=m&password=" + query,
		"redis-sentinel://" + user + "@" + echo + "?master_name=m", "rediss-sentinel://" + user + "@" + gone + "?master_name=m&addr=" + query,
		"oracle://" + user + "@" + gone + "/shop", "host=127.0.0.1 user=weir password=" + planted, "REDIS://" + user + "@" + gone, "dynamodb:" + user + "@x",
	}
	server := kinesistest.NewServer(t)
	server.CreateStream("s", 1)
	endpoint := "--endpoint=" + server.URL()
	for _, store := range stores {
		t.Run(strings.NewReplacer("Pl4nted", "", "S3cr3t", "", "/", "_").Replace(store), func(t *testing.T) {
			t.Parallel()
			for _, args := range [][]string{
				{"store", "create", "--store", store},
				{"group", "describe", "--app=a", "-o=json", "--store", store, endpoint},
				{"consume", "--app=a", "--stream=s", "-v", endpoint, "--store", store},
			} {
				said, code := process(t, nil, "", append(args, "--connect-timeout=3s")...)
				if code == cli.ExitDone || said == "" {
					t.Errorf("%s: exit code %d, %q", args[:2], code, said)
				}
				noSecret(t, strings.Join(args[:2], " "), said)
			}
		})
	}
	for _, store := range stores[:3] {
		for _, args := range [][]string{
			{"doctor", "--app=a", "-o=json", endpoint}, {"group", "list"}, {"group", "lag", "--app=a", endpoint}, {"group", "plan", "--app=a"},
			{"group", "reset", "--app=a", "--to=oldest", "--yes", endpoint}, {"group", "delete", "--app=a", "--yes"}, {"group", "export", "--app=a", "-"},
			{"group", "import", "--app=a", "--yes", "-"}, {"group", "pause", "--app=a"}, {"group", "drain", "--app=a", "w"}, {"store", "create", "--print"},
		} {
			said, _ := process(t, nil, "", append(args, "--store", store)...)
			noSecret(t, strings.Join(args, " ")+" "+store, said)
		}
	}
}

func TestNoFailureOfAWSShowsASecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return p
	}
	flat := strings.ReplaceAll(planted, " ", "")
	script := write("credentials.sh", "#!/bin/sh\necho '{\"Version\":1,\"AccessKeyId\":\"A\",\"SecretAccessKey\":\""+flat+"\" nonsense'\n")
	noisy := write("noisy.sh", "#!/bin/sh\necho '"+flat+"'; exit 3\n")
	keys := []string{"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=AKIA", "AWS_SECRET_ACCESS_KEY=" + flat, "AWS_SESSION_TOKEN=" + flat}
	proxied := func(proxy string) []string { return append([]string{"HTTP_PROXY=" + proxy, "NO_PROXY="}, keys...) }
	gone := strings.TrimPrefix(clitest.UnusedAddr(t), "http://")
	for name, c := range map[string]struct{ env, args []string }{
		"no answer":             {keys, []string{"--endpoint=http://" + gone}},
		"refused":               {keys, []string{"--endpoint=" + clitest.Answering(t, 403, "InvalidSignatureException", "The request signature we calculated does not match")}},
		"nonsense":              {keys, []string{"--endpoint=http://" + answeringBytes(t, true, "nonsense\r\n\r\n")}},
		"an endpoint's user":    {keys, []string{"--endpoint=http://u:" + flat + "@" + gone}},
		"an endpoint of no URL": {keys, []string{"--endpoint=u:" + flat + "@" + gone}},
		"an environment's":      {append([]string{"AWS_ENDPOINT_URL=http://u:" + flat + "@" + gone}, keys...), nil},
		"a proxy":               {proxied("http://u:Pl4nted%40S3cr3t@" + gone), []string{"--endpoint=http://192.0.2.1:9"}},
		"a proxy of no URL":     {proxied("http://u:Pl4nted%S3cr3t@" + gone), []string{"--endpoint=http://192.0.2.1:9"}},
		"a proxy's odd port":    {proxied("http://u:Pl4nted@S3cr3t:x"), []string{"--endpoint=http://192.0.2.1:9"}},
		"broken credentials": {[]string{"AWS_REGION=eu-west-1", "AWS_SHARED_CREDENTIALS_FILE=" +
			write("broken", "[default]\naws_secret_access_key "+flat+"\n[[x\n"+flat+"=\n")}, nil},
		"half credentials": {[]string{"AWS_REGION=eu-west-1", "AWS_SHARED_CREDENTIALS_FILE=" +
			write("half", "[default]\naws_secret_access_key = "+flat+"\n")}, nil},
		"a program's nonsense": {[]string{"AWS_REGION=eu-west-1", "AWS_CONFIG_FILE=" + write("config", "[default]\ncredential_process = "+script+"\n")}, nil},
		"a program's failure":  {[]string{"AWS_REGION=eu-west-1", "AWS_CONFIG_FILE=" + write("config2", "[default]\ncredential_process = "+noisy+"\n")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := []string{}
			for _, a := range c.args {
				table = append(table, strings.Replace(a, "--endpoint", "--dynamodb-endpoint", 1))
			}
			for _, args := range [][]string{
				append([]string{"tail", "--stream=s"}, c.args...),
				append([]string{"consume", "-v", "--stream=s", "--app=a", "--store=memory:"}, c.args...),
				append([]string{"group", "describe", "-o=json", "--app=a", "--store=dynamodb:weir"}, table...),
			} {
				said, code := process(t, c.env, "", args...)
				if code == cli.ExitDone || said == "" {
					t.Errorf("%s: exit code %d, %q", args[0], code, said)
				}
				noSecret(t, args[0], said)
			}
		})
	}
}

// TestNothingThatIsKeptHasASecret searches for secrets in all output and files of commands that
// succeed.
func TestNothingThatIsKeptHasASecret(t *testing.T) {
	t.Parallel()
	server := kinesistest.NewServer(t)
	server.CreateStream("s", 1)
	server.Put("s", "k", []byte("x"))
	dir := t.TempDir()
	flat := strings.ReplaceAll(planted, " ", "")
	env := []string{"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=AKIA", "AWS_SECRET_ACCESS_KEY=" + flat, "AWS_SESSION_TOKEN=" + flat,
		"AWS_ENDPOINT_URL_KINESIS=" + server.URL()}
	store := "--store=sqlite:" + filepath.Join(dir, "leases.db")
	// Interrupt only once. The batch is handled again while the worker stops, and a second
	// interrupt would end the worker at once.
	once := "mkdir '" + filepath.Join(t.TempDir(), "once") + "' 2>/dev/null && kill -INT $PPID; exit 1"
	said, code := process(t, env, "", "consume", "-v", "--stream=s", "--app=a", store, "--exec", once)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d, %s", code, said)
	}
	noSecret(t, "consume", said)
	for _, args := range [][]string{
		{"group", "export", "--app=a", store, filepath.Join(dir, "dump")}, {"group", "describe", "--app=a", store, "-o=json"}, {"group", "list", store, "-o=json"},
		{"doctor", "--app=a", store, "-o=json", "--look=1s"}, {"group", "lag", "--app=a", store, "-o=json"}, {"group", "plan", "--app=a", store, "-o=json"},
	} {
		said, code := process(t, env, "", args...)
		if code == cli.ExitFailed || code == cli.ExitUsage {
			t.Errorf("%v: exit code %d, %s", args, code, said)
		}
		noSecret(t, args[1], said)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 2 {
		t.Fatalf("there are %v", files)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		noSecret(t, f.Name(), string(text))
	}
}

func TestNoFailureOfAPlaceOfLettersShowsAPassword(t *testing.T) {
	t.Parallel()
	gone := strings.TrimPrefix(clitest.UnusedAddr(t), "http://")
	user, query := url.UserPassword("weir", planted).String(), url.QueryEscape(planted)
	for _, place := range []string{
		"postgres://" + user + "@" + gone + "/shop", "postgres://weir:" + planted + "@[::1/shop", "postgres://" + user + "@" + gone + "/shop?weir_prefix=a-b",
		"postgres://" + gone + "/shop?user=weir&password=" + query, "postgres://" + user + "@" + gone, "mysql://" + user + "@" + gone + "/shop",
		"mysql://" + user + "@" + gone + "/shop?tls=" + query, "mysql:weir:" + planted + "@tcp(" + gone + ")/shop", "weir:" + planted + "@tcp(" + gone + ")/shop",
		"redis://" + user + "@" + gone, "oracle://" + user + "@" + gone + "/shop", "s3://" + user + "@bucket",
	} {
		for _, args := range [][]string{
			{"dead", "list", "--dead", place}, {"dead", "retry", "--all", "--exec=cat", "--yes", "--dead", place}, {"dead", "create", "--dead", place},
			{"consume", "--app=a", "--stream=s", "--store=memory:", "--endpoint=http://" + gone, "--exec=cat", "--max-attempts=3", "--dead", place},
		} {
			said, code := process(t, nil, "", append(args, "--connect-timeout=3s")...)
			if code == cli.ExitDone || said == "" {
				t.Errorf("%v: exit code %d", args, code)
			}
			noSecret(t, strings.Join(args[:2], " "), said)
		}
	}
}
