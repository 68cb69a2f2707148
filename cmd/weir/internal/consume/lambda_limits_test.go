//go:build unix

package consume

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// beSum turns the test program into a Lambda function that sums up numbers in windows, if kind
// selects it.
func beSum(kind string) {
	if kind != "sums" {
		return
	}
	base := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/invocation/"
	for {
		res, err := http.Get(base + "next")
		if err != nil {
			os.Exit(1)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		var event struct {
			Records []struct{ Kinesis struct{ Data []byte } }
			Window  struct{ Start string }
			State   struct{ Sum int }
			ShardID string
			Final   bool `json:"isFinalInvokeForWindow"`
		}
		if err := json.Unmarshal(body, &event); err != nil {
			panic(err)
		}
		for _, r := range event.Records {
			n, _ := strconv.Atoi(string(r.Kinesis.Data))
			event.State.Sum += n
			fmt.Println("number", n)
		}
		if event.Final {
			fmt.Println("sum", event.Window.Start+event.ShardID, event.State.Sum)
		}
		res, err = http.Post(base+res.Header.Get("Lambda-Runtime-Aws-Request-Id")+"/response", "application/json", strings.NewReader(fmt.Sprintf(`{"state":{"sum":%d}}`, event.State.Sum)))
		if err == nil {
			_ = res.Body.Close()
		}
	}
}

// leak allocates more and more memory for a while, and then waits.
func leak() {
	var kept [][]byte
	for range 400 >> 3 {
		some := make([]byte, 8<<20)
		for i := 0; i < len(some); i += 4096 {
			some[i] = 1
		}
		kept = append(kept, some)
		time.Sleep(40 * time.Millisecond)
	}
	time.Sleep(time.Hour)
	fmt.Println(len(kept))
}

// sums returns the total of the sums that functions printed. If a window was printed twice, its
// last sum counts.
func sums(t *testing.T, said string) (total int) {
	t.Helper()
	of := map[string]int{}
	for _, line := range strings.Split(said, "\n") {
		if _, about, found := strings.Cut(line, "] sum "); found {
			window, sum, _ := strings.Cut(about, " ")
			n, err := strconv.Atoi(sum)
			if err != nil {
				t.Error(line)
			}
			of[window] = n
		}
	}
	for _, n := range of {
		total += n
	}
	return total
}

// A worker stops while a window is open, and the next worker continues. Its function receives the
// window's records again, so the sums include all records.
func TestAFunctionSumsUpInWindowsAcrossWorkers(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	args := []string{"consume", endpoint, "--stream=s", "--app=a", "--store=sqlite:" + filepath.Join(t.TempDir(), "s.db"),
		"--lambda-processes=1", "--tumbling-window-in-seconds=3", "--batch-size=7", "--lambda", functionCommand(t, "sums")}
	want := 0
	put := func(from, to int) {
		for n := from; n < to; n++ {
			server.Put("s", "k", []byte(strconv.Itoa(n)))
			want += n
		}
	}
	first := clitest.Start(t, "", args...)
	put(1, 50)
	first.Err.Await(t, "the function has them", func(s string) bool { return strings.Contains(s, "number 49\n") })
	if code := first.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d: %s", code, first.Err)
	}
	second := clitest.Start(t, "", args...)
	put(50, 100)
	second.Err.Await(t, "all windows have ended", func(s string) bool { return sums(t, first.Err.String()+s) >= want })
	if code := second.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d: %s", code, second.Err)
	}
	if got := sums(t, first.Err.String()+second.Err.String()); got != want {
		t.Errorf("%d, want %d", got, want)
	}
	// On a slow machine, the window may have ended before the first worker stopped.
	if !strings.Contains(first.Err.String(), "] sum ") && !strings.Contains(second.Err.String(), "number 49\n") {
		t.Errorf("the second worker began after the window's start: %s", second.Err)
	}
}

func TestAFunctionIsToldItsMemory(t *testing.T) {
	for memory, want := range map[int]string{0: "128", 512 << 20: "512"} {
		o := options{app: "a", lambda: lambdaFlags{processes: 1, memory: memory}}
		fs := o.functions(cli.Terminal{}, "eu-west-1")
		if env := strings.Join(fs.env, "\n") + "\n"; !strings.Contains(env, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE="+want+"\n") {
			t.Error(env)
		}
		_ = fs.close()
	}
}
