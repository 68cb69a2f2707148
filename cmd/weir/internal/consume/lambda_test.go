//go:build unix

package consume

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// asFunction is the environment variable that turns the test program into a Lambda function. Its
// value selects the function.
const asFunction = "WEIR_TEST_AS_FUNCTION"

func init() {
	otherRole = func() {
		if kind := os.Getenv(asFunction); kind != "" {
			beSum(kind)
			beFunction(kind)
		}
	}
}

// beFunction runs a runtime client with a function that prints its records. kind selects how the
// function misbehaves. Most kinds misbehave only at the first event. The process that receives this
// event creates the file named by WEIR_TEST_ONCE. The function always reports a record with the
// data "poison" as failed.
func beFunction(kind string) {
	base := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/"
	post := func(path, body string) {
		if res, err := http.Post(base+path, "application/json", strings.NewReader(body)); err == nil {
			_ = res.Body.Close()
		}
	}
	if kind == "unable" {
		post("init/error", `{"errorMessage":"no module named app","errorType":"Runtime.ImportModuleError"}`)
		os.Exit(1)
	}
	for {
		res, err := http.Get(base + "invocation/next")
		if err != nil {
			os.Exit(1)
		}
		var event struct {
			Records []struct {
				Kinesis struct {
					SequenceNumber string
					Data           []byte
				}
			}
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		id := res.Header.Get("Lambda-Runtime-Aws-Request-Id")
		if err := json.Unmarshal(body, &event); err != nil {
			panic(err)
		}
		if once, err := os.OpenFile(os.Getenv("WEIR_TEST_ONCE"), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_ = once.Close()
			switch kind {
			case "hangs":
				time.Sleep(time.Hour)
			case "dies":
				os.Exit(3)
			case "leaks":
				leak()
			case "throws":
				post("invocation/"+id+"/error", `{"errorMessage":"first time","errorType":"ValueError"}`)
				continue
			}
		}
		answer := `{}`
		for _, r := range event.Records {
			if string(r.Kinesis.Data) == "poison" {
				answer = fmt.Sprintf(`{"batchItemFailures":[{"itemIdentifier":%q}]}`, r.Kinesis.SequenceNumber)
				break
			}
			fmt.Printf("got %s\n", r.Kinesis.Data)
		}
		post("invocation/"+id+"/response", answer)
		if kind == "leaves" {
			os.Exit(0)
		}
	}
}

// functionCommand returns a command line that runs a function. Because of exec, the function
// replaces the shell.
func functionCommand(t *testing.T, kind string) string {
	t.Helper()
	return fmt.Sprintf("%s=%s WEIR_TEST_ONCE=%s exec %s", asFunction, kind, filepath.Join(t.TempDir(), "once"), os.Args[0])
}

func TestAFunctionThatFailsOnceHandlesAll(t *testing.T) {
	t.Parallel()
	// Only the function that hangs has a short time. On a slow machine, the others may need more.
	for kind, c := range map[string]struct{ timeout, why string }{
		"throws": {"1m", "ValueError: first time"}, "dies": {"1m", "exit status 3"}, "hangs": {"2s", "did not answer in time"},
	} {
		t.Run(kind, func(t *testing.T) {
			server, endpoint := clitest.Kinesis(t)
			server.CreateStream("s", 1)
			for i := range 10 {
				server.Put("s", "k", fmt.Appendf(nil, "%d;", i))
			}
			run := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--lambda-processes=1", "--lambda-timeout="+c.timeout, "--lambda", functionCommand(t, kind))
			run.Err.Await(t, "all records", func(s string) bool { return strings.Count(s, "got ") >= 10 })
			if code := run.Interrupt(t); code != cli.ExitDone {
				t.Errorf("exit code %d", code)
			}
			said, at := run.Err.String(), 0
			for i := range 10 {
				line := fmt.Sprintf("[function 1] got %d;\n", i)
				found := strings.Index(said[at:], line)
				if found < 0 {
					t.Fatalf("%q is not in order in %s", line, said)
				}
				at += found
			}
			if !strings.Contains(said, c.why) {
				t.Errorf("standard error lacks %q: %s", c.why, said)
			}
		})
	}
}

func TestAProcessThatEndsAfterItsAnswerFailsAtNothing(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	for i := range 10 {
		server.Put("s", "k", fmt.Appendf(nil, "%d;", i))
	}
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--lambda-processes=1", "--batch-size=1", "--lambda", functionCommand(t, "leaves"))
	c.Err.Await(t, "all records", func(s string) bool { return strings.Contains(s, "got 9;") })
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
	if said := c.Err.String(); strings.Contains(said, "the handler failed") || strings.Count(said, "got ") != 10 {
		t.Error(said)
	}
}

func TestARecordThatAFunctionNamesIsGivenUpAlone(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	for _, data := range []string{"0;", "poison", "1;"} {
		server.Put("s", "k", []byte(data))
	}
	dead := filepath.Join(t.TempDir(), "dead.ndjson")
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--lambda", functionCommand(t, "reports"),
		"--function-response-types=ReportBatchItemFailures", "--maximum-retry-attempts=1", "--outage-grace=0", "--dead=file:"+dead)
	c.Err.Await(t, "the record behind it", func(s string) bool { return strings.Contains(s, "got 1;") })
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
	letters, err := os.ReadFile(dead)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(letters), "\n"); n != 1 || !strings.Contains(string(letters), `"attempts":2`) {
		t.Errorf("%d letters: %s", n, letters)
	}
}

func TestAFunctionThatCannotStartIsTold(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	server.Put("s", "k", []byte("x"))
	c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--lambda", functionCommand(t, "unable"))
	c.Err.Await(t, "the reason", func(s string) bool { return strings.Contains(s, "Runtime.ImportModuleError: no module named app") })
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
}

func TestAFunctionDoesNotGetCredentialsUnlessTheyArePassed(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv(cli.StoreVariable, "secret store")
	o := options{app: "a", lambda: lambdaFlags{processes: 1, pass: []string{cli.StoreVariable}}}
	fs := o.functions(cli.Terminal{}, "eu-west-1")
	defer func() { _ = fs.close() }()
	env := strings.Join(fs.env, "\n")
	if strings.Contains(env, "AWS_SECRET_ACCESS_KEY=") || !strings.Contains(env, cli.StoreVariable+"=secret store") || !strings.Contains(env, "AWS_REGION=eu-west-1") {
		t.Error(env)
	}
}

func TestWrongFlagsOfFunctions(t *testing.T) {
	const consume = "consume --endpoint=http://127.0.0.1:1 --stream=s --app=a --store=memory: "
	for _, c := range []struct{ args, says string }{
		{"--lambda=", "--lambda is blank"},
		{"--batch-size=5", "add --lambda"},
		{"--pass-env=A", "add --lambda"},
		{"--lambda=x --exec=y", "two ways"},
		{"--lambda=x --to=file:y", "two ways"},
		{"--lambda=x --output=json", "leave it out"},
		{"--lambda=x --lambda-processes=0", "1 to 1000"},
		{"--lambda=x --lambda-timeout=25h", "up to 24h"},
		{"--lambda=x --function-response-types=Report", "ReportBatchItemFailures"},
		{"--lambda=x --pass-env=A=B", "not the name of a variable"},
		{"--lambda=x --batch=5 --batch-size=5", "two names of the same setting"},
		{"--lambda=x --batch-size=0", "1 to 10000"},
		{"--lambda=x --maximum-retry-attempts=3", "--maximum-retry-attempts needs a destination for dead letters"},
		{"--lambda=x --maximum-retry-attempts=-2", "-1 to 9999"},
		{"--lambda=x --maximum-record-age-in-seconds=60", "needs a destination for dead letters"},
		{"--lambda=x --maximum-record-age-in-seconds=59 --dead=file:x", "60 to 604800"},
		{"--lambda=x --maximum-record-age-in-seconds=0 --dead=file:x", "60 to 604800"},
		{"--lambda=x --maximum-record-age-in-seconds=60s --dead=file:x", "60 to 604800"},
		{"--lambda=x --maximum-record-age-in-seconds=604801 --dead=file:x", "60 to 604800"},
		{"--lambda=x --maximum-record-age-in-seconds=60 --max-age=1m --dead=file:x", "give one of them"},
		{"--exec=x --maximum-record-age-in-seconds=60", "add --lambda"},
		{"--exec=x --lambda-memory=64MiB", "add --lambda"},
		{"--lambda=x --lambda-memory=1MiB", "16MiB to 1024GiB"},
		{"--lambda=x --lambda-memory=much", "16MiB to 1024GiB"},
		{"--invoke=http://h --lambda-memory=64MiB", "--invoke starts no processes"},
		{"--invoke=http://h --lambda-output=64KiB", "--invoke starts no processes"},
		{"--exec=x --lambda-output=64KiB", "add --lambda"},
		{"--lambda=x --lambda-output=1000", "1KiB to 1GiB"},
		{"--exec=x --tumbling-window-in-seconds=60", "add --lambda"},
		{"--lambda=x --tumbling-window-in-seconds=901", "0 to 900"},
		{"--lambda=x --tumbling-window-in-seconds=60 --dead=file:x", "none is dead-lettered"},
		{"--lambda=x --tumbling-window-in-seconds=60 --maximum-retry-attempts=0 --dead=file:x", "--maximum-retry-attempts cannot be combined with"},
		{"--lambda=x --tumbling-window-in-seconds=60 --bisect-batch-on-function-error --dead=file:x", "--bisect-batch-on-function-error cannot be combined with"},
		{"--lambda=x --tumbling-window-in-seconds=60 --maximum-record-age-in-seconds=60 --dead=file:x", "--maximum-record-age-in-seconds cannot be combined with"},
		{"--lambda=x --tumbling-window-in-seconds=60 --parallelization-factor=2", "one after the other"},
		{"--lambda=x --tumbling-window-in-seconds=60 --parallel=2", "one after the other"},
		{`--lambda=x --tumbling-window-in-seconds=60 --filter={"data":{"a":[1]}} --filter-not-json=fail`, "pass or drop"},
		{"--lambda=x --bisect-batch-on-function-error", "--dead"},
		{"--lambda=x --exec-results", "--exec"},
		{"--invoke=x --lambda=y", "two ways to reach"},
		{"--invoke=x", "write it like http://"},
		{"--invoke=http://u:p@h", "write it like http://"},
		{"--invoke=http://h --pass-env=A", "--invoke starts no processes"},
		{"--filter-criteria={}", "add --lambda"},
		{"--lambda=x --filter-criteria={}", "no Filters"},
		{"--lambda=x --filter-criteria=[]", "not Lambda's JSON"},
		{`--lambda=x --filter-criteria={"Filters":[{"Pattern":""}]}`, "Filters[0]"},
		{`--lambda=x --filter-criteria={"Filters":[{"Pattern":"{}"}]} --filter={}`, "two names of the same setting"},
		{"--lambda=x --maximum-batching-window-in-seconds=301", "0 to 300"},
		{"--lambda=x --starting-position=FIRST", "TRIM_HORIZON"},
		{"--lambda=x --starting-position=AT_TIMESTAMP", "go together"},
		{"--lambda=x --starting-position=AT_TIMESTAMP --starting-position-timestamp=noon", "seconds since 1970"},
		{"--lambda=x --starting-position=LATEST --from=oldest", "two names of the same setting"},
	} {
		if _, said := clitest.MustExit(t, cli.ExitUsage, strings.Fields(consume+c.args)...); !strings.Contains(said, c.says) {
			t.Errorf("%s: %s", c.args, said)
		}
	}
}

func TestOutputOfProcessesIsWholeLines(t *testing.T) {
	out := clitest.NewOutput()
	p := &prefixed{w: out, prefix: "[1] "}
	for _, part := range []string{"a", "b\nc", "\n\n", strings.Repeat("x", 3*longestOutputLine), "\nend"} {
		if n, err := p.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	p.flush()
	want := []string{"[1] ab", "[1] c", "[1] " + strings.Repeat("x", longestOutputLine) + " …", "[1] end"}
	if got := out.Lines(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d lines", len(got))
	}
}

// A process of --lambda handles the records of a queue.
func TestAFunctionHandlesAQueue(t *testing.T) {
	t.Parallel()
	s, args := startQueue(t, "1;", "2;", "3;")
	c := clitest.Start(t, "", append(args, "--retry-min=10ms", "--batch-size=2", "--lambda-processes=2", "--lambda", functionCommand(t, "throws"))...)
	waitFor(t, func() bool { return s.QueueState("billing").Acknowledged == 3 })
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"got 1;", "got 2;", "got 3;", "ValueError: first time"} {
		if said := c.Err.String(); !strings.Contains(said, want) {
			t.Errorf("standard error lacks %q: %s", want, said)
		}
	}
}
