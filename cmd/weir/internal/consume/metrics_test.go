package consume

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

func TestConsumeTellsPrometheusWhatItHandles(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	for i := range 10 {
		server.Put("s", fmt.Sprint(i), []byte("x"))
	}
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	c := clitest.Start(t, "", "consume", endpoint, store, "--stream=s", "--app=a", "--metrics=0")
	link := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
	c.Err.Await(t, "the address", link.MatchString)
	base := link.FindString(c.Err.String())
	for end := time.Now().Add(time.Minute); ; {
		code, body := clitest.Get(t, base+"metrics")
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, body)
		}
		if strings.Contains(body, `weir_handled_records_total{app="a",stream="s"} 10`) && strings.Contains(body, `weir_shard_state{app="a",shard="shardId-000000000000",state="ok",stream="s"} 1`) {
			if !strings.Contains(body, "go_goroutines ") {
				t.Errorf("nothing about the process: %s", body)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal(body)
		}
	}
	if code, _ := clitest.Get(t, base+"livez"); code != http.StatusNotFound {
		t.Errorf("/livez: %d without --health", code)
	}
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, c.Err)
	}
}

// If two flags have the same address, one server serves both.
func TestMetricsAndHealthShareAnAddress(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(addr)
	c := clitest.Start(t, "", "consume", endpoint, "--store=memory:", "--stream=s", "--app=a", "--health="+port, "--metrics="+addr)
	c.Err.Await(t, "the address", func(s string) bool { return strings.Contains(s, "health and metrics: http://"+addr) })
	for _, path := range []string{"/livez", "/metrics"} {
		if code, body := clitest.Get(t, "http://"+addr+path); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, c.Err)
	}
}

func TestWrongMetricsFlags(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	args := []string{"consume", endpoint, "--stream=s", "--app=a", "--store=memory:"}
	if _, said := clitest.MustExit(t, cli.ExitUsage, append(args, "--metrics=x")...); !strings.Contains(said, `--metrics "127.0.0.1:x"`) {
		t.Errorf("an address that is none: %s", said)
	}
	if _, said := clitest.MustExit(t, cli.ExitUsage, append(args, "--metrics-by-shard=false")...); !strings.Contains(said, "add --metrics ADDR") {
		t.Errorf("a flag without effect: %s", said)
	}
}
