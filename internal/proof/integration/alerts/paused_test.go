package alerts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
)

// A pause fires no alert in a real Prometheus, and after the end of the pause alerts fire again.
func TestAPauseFiresNoAlert(t *testing.T) {
	t.Parallel()
	worker, exporter := freePort(t), freePort(t)
	prometheus := scraping(t, worker, exporter)
	kinesis := kinesistest.NewServer(t)
	kinesis.CreateStream("orders", 4)
	program, store := built(t), "sqlite:"+filepath.Join(t.TempDir(), "weir.db")
	w := &workers{t: t, program: program, running: map[int]*exec.Cmd{}, args: []string{
		"consume", "--endpoint", kinesis.URL(), "--stream", "orders", "--app", "billing", "--store", store, "--exec", "cat >/dev/null",
	}}
	t.Cleanup(w.killAll)
	weir := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, append(args, "--app", "billing", "--store", store)...)
		cmd.Env = append(os.Environ(), "AWS_REGION="+servers.Region)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	alerts := watcher{t, prometheus.URL}
	w.start(worker)
	time.Sleep(5 * time.Second)
	w.run(exporter, "exporter", "--store", store, "--endpoint", kinesis.URL(), "--addr", strconv.Itoa(exporter), "--every", "1s", "--read-share", "1")
	all := []string{"WeirLagHigh", "WeirLagGrowing", "WeirUnread", "WeirShardStalled", "WeirNoLeader", "WeirStoreDown"}
	alerts.until(false, time.Minute, all...)

	weir("group", "pause")
	kinesis.Put("orders", "k", []byte("x"))
	time.Sleep(5 * time.Second) // until the exporter has seen it
	for range 50 {              // three times as long as an alert waits
		fires, err := alerts.firing(t.Context())
		if err != nil || len(fires) > 0 {
			t.Fatalf("while it is paused, these fire: %v, %v", fires, err)
		}
		time.Sleep(time.Second)
	}
	weir("group", "resume")
	alerts.until(false, time.Minute, all...)
	w.end(worker)
	alerts.until(true, 2*time.Minute, "WeirUnread")
}

// end kills the process with a port.
func (w *workers) end(port int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cmd := w.running[port]
	delete(w.running, port)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
