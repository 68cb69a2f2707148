package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// page is what is answered to a GET.
func page(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestConsumeTellsPrometheusWhatItHandles(t *testing.T) {
	server, endpoint := kinesisServer(t)
	server.CreateStream("s", 1)
	for i := range 10 {
		server.Put("s", fmt.Sprint(i), []byte("x"))
	}
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	c := start(t, "", "consume", endpoint, store, "--stream=s", "--app=a", "--metrics=0")
	link := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
	c.err.await(t, "the address", link.MatchString)
	base := link.FindString(c.err.String())
	for end := time.Now().Add(time.Minute); ; {
		code, body := page(t, base+"metrics")
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
	if code, _ := page(t, base+"livez"); code != http.StatusNotFound {
		t.Errorf("/livez: %d without --health", code)
	}
	if code := c.interrupt(t); code != exitDone {
		t.Errorf("exit code %d, %s", code, c.err)
	}
}

// Two flags with one address are one server.
func TestMetricsAndHealthShareAnAddress(t *testing.T) {
	server, endpoint := kinesisServer(t)
	server.CreateStream("s", 1)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(addr)
	c := start(t, "", "consume", endpoint, "--store=memory:", "--stream=s", "--app=a", "--health="+port, "--metrics="+addr)
	c.err.await(t, "the address", func(s string) bool { return strings.Contains(s, "health and metrics: http://"+addr) })
	for _, path := range []string{"/livez", "/metrics"} {
		if code, body := page(t, "http://"+addr+path); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code := c.interrupt(t); code != exitDone {
		t.Errorf("exit code %d, %s", code, c.err)
	}
}

func TestWrongMetricsFlags(t *testing.T) {
	server, endpoint := kinesisServer(t)
	server.CreateStream("s", 1)
	args := []string{"consume", endpoint, "--stream=s", "--app=a", "--store=memory:"}
	if _, said := refused(t, exitUsage, append(args, "--metrics=x")...); !strings.Contains(said, `--metrics "127.0.0.1:x"`) {
		t.Errorf("an address that is none: %s", said)
	}
	if _, said := refused(t, exitUsage, append(args, "--metrics-by-shard=false")...); !strings.Contains(said, "say --metrics ADDR") {
		t.Errorf("a flag without effect: %s", said)
	}
}
