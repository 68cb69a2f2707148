package exporter

import (
	"context"
	"encoding/binary"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

func TestShardsAreReadTheLessOftenTheMoreThereAre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n     int
		every time.Duration
		share float64
		want  time.Duration
	}{
		{0, 15 * time.Second, 0.05, 15 * time.Second},
		{300, 15 * time.Second, 0.05, 15 * time.Second},
		{1000, 15 * time.Second, 0.05, 50 * time.Second},
		{1, time.Second, 1, time.Second},
		{1, time.Second, 0.05, 8 * time.Second},
		{1, time.Second, 0.001, 400 * time.Second},
	} {
		if got := readEvery(c.n, c.every, c.share); got != c.want {
			t.Errorf("%d shards each %v, share %v: %v, want %v", c.n, c.every, c.share, got, c.want)
		}
	}
}

func TestALagAgesUntilItsShardIsReadAgain(t *testing.T) {
	t.Parallel()
	key := func(id string) lease.Key { return lease.Key{Stream: "s", Shard: id} }
	at := func(seq string) shard.Position {
		p, err := shard.After(seq)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	lags := map[lease.Key]observe.Lag{key("stands"): {Behind: time.Minute}, key("moved"): {Behind: time.Minute}, key("tip"): {}, key("gone"): {Behind: time.Hour}}
	v := lease.View{Leases: []lease.Lease{{Key: key("stands"), Position: at("1")}, {Key: key("moved"), Position: at("2")}, {Key: key("tip"), Position: at("1")}, {Key: key("unread")}}}
	was := map[lease.Key]moved{key("stands"): {to: at("1")}, key("moved"): {to: at("1")}, key("tip"): {to: at("1")}}
	got := since(lags, v, was, 10*time.Second)
	want := map[lease.Key]time.Duration{key("stands"): 70 * time.Second, key("moved"): time.Minute, key("tip"): 0}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	for k, lag := range want {
		if got[k].Behind != lag {
			t.Errorf("%s: %v, want %v", k, got[k].Behind, lag)
		}
	}
}

func TestExporterTellsWhatItSeesFromTheOutside(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	text, _ := clitest.Numbered(20)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	clitest.Consume(t, 20, endpoint, store)
	x := clitest.Start(t, "", "exporter", endpoint, store, "--addr=0", "--every=1s", "--read-share=1")
	link := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
	x.Err.Await(t, "the address", link.MatchString)
	base := link.FindString(x.Err.String())
	get := func(path string) (int, string) { return clitest.Get(t, base+path) }
	until := func(what, path string, want ...string) string {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; {
			_, body := get(path)
			missing := false
			for _, w := range want {
				missing = missing || !strings.Contains(body, w)
			}
			if !missing {
				return body
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %s has not %q:\n%s", what, path, want, body)
			}
		}
	}
	until("handled, and its worker has left", "metrics", `weir_up{app="a"} 1`, `weir_workers{app="a"} 0`, `stream="s"} 0`, `state="unread"`, `weir_checkpoint_lag_seconds{app="a"`)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	answer := clitest.Decode[lagAnswer](t, until("records came, and nobody reads", "lag.json?app=a", `"state":"unread"`, ` behind, `))
	if answer.Shards != 2 || answer.Held != 0 || answer.Workers != 0 || answer.Verdict.State != health.Unread || !strings.Contains(answer.Verdict.Sentence, "no worker lives") {
		t.Errorf("%+v", answer)
	}
	if code, _ := get("lag.json?app=b"); code != http.StatusNotFound {
		t.Errorf("an application that is not there: %d", code)
	}
	if code, _ := get("else"); code != http.StatusNotFound {
		t.Errorf("another path: %d", code)
	}
	request, err := http.NewRequest(http.MethodGet, base+"metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "evil.example"
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("a page that points its name here gets %s", resp.Status)
	}
	clitest.Consume(t, 20, endpoint, store)
	until("all is handled", "lag.json", `"lag_seconds":0,`)
	if _, body := get("metrics"); strings.Contains(body, "key") || strings.Contains(body, "sequence") {
		t.Errorf("no key and no sequence number is told: %s", body)
	}
	if code := x.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, x.Err)
	}
}

func TestExporterWithoutKinesisSaysThatLagIsNotKnown(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	text, _ := clitest.Numbered(5)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	clitest.Consume(t, 5, endpoint, store)
	x := clitest.Start(t, "", "exporter", store, "--no-kinesis", "--addr=0", "--every=1s")
	link := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
	x.Err.Await(t, "the address", link.MatchString)
	for end := time.Now().Add(time.Minute); ; {
		_, told := clitest.Get(t, link.FindString(x.Err.String())+"metrics")
		if strings.Contains(told, "weir_checkpoint_age_seconds{") && strings.Contains(told, "weir_leases_unheld{") {
			if strings.Contains(told, "weir_checkpoint_lag_seconds{") {
				t.Errorf("it tells a lag: %s", told)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("nothing is told: %s", told)
		}
	}
	if code := x.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, x.Err)
	}
}

// An exporter that was restarted reports the same as before, because it reads the history.
func TestAnExporterThatStartsKnowsThePast(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	key, now := lease.Key{Stream: "s", Shard: "shardId-000000000000"}, time.Now()
	if _, err := store.Apply(t.Context(), "a", []lease.Action{{Kind: lease.Create, Lease: lease.Lease{Key: key, Epoch: 1, Position: shard.Oldest}}}); err != nil {
		t.Fatal(err)
	}
	c := lease.HistoryChunk{Session: "s1", Since: now.Unix()/60 - 30}
	// The chunk contains 21 minutes of a worker without a name, which held shard 0 of stream s.
	c.Data = append(binary.AppendUvarint([]byte{1}, uint64(c.Since)), 0)
	c.Data = append(c.Data, 0, 1, 0, 1, 's', 1, 0x80)
	for range 20 {
		c.Data = append(c.Data, 1, 0, 0x80)
	}
	if err := store.PutHistory(t.Context(), "a", c); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w := &watcher{store: stores.Shown{Store: stores.Store{Store: store}}, opts: &options{every: time.Second}, apps: map[string]*watchedApp{"a": {name: "a"}}}
		w.visit(t.Context(), w.apps["a"])
		got := w.judge(now)[0].answer()
		if got.Verdict.State != health.Unread || !regexp.MustCompile(`^unread: .*, no worker lives for at least (8|9) min$`).MatchString(got.Verdict.Sentence) {
			t.Errorf("%+v", got)
		}
	}
}

// downStore answers no call.
type downStore struct{ lease.Store }

func (downStore) View(context.Context, string, string) (lease.View, error) {
	return lease.View{}, errors.New("no answer")
}

// While the store does not answer, no state of a shard is known.
func TestNoStateIsKnownWhileTheStoreIsDown(t *testing.T) {
	t.Parallel()
	store, key := memstore.New(), lease.Key{Stream: "s", Shard: "shardId-000000000000"}
	if _, err := store.Apply(t.Context(), "a", []lease.Action{{Kind: lease.Create, Lease: lease.Lease{Key: key, Epoch: 1, Position: shard.Oldest}}}); err != nil {
		t.Fatal(err)
	}
	w := &watcher{store: stores.Shown{Store: stores.Store{Store: store}}, opts: &options{every: time.Second}, apps: map[string]*watchedApp{"a": {name: "a"}}}
	w.visit(t.Context(), w.apps["a"])
	w.store.Store.Store = downStore{store}
	w.visit(t.Context(), w.apps["a"])
	time.Sleep(1100 * time.Millisecond)
	w.visit(t.Context(), w.apps["a"])
	got := w.judge(time.Now())[0]
	want := regexp.MustCompile(`^unknown: the store has not answered since \d\d:\d\d:\d\d UTC; before, it was unread: `)
	if a := got.answer(); a.Verdict.State != health.NotKnown || !want.MatchString(a.Verdict.Sentence) || a.Lag != nil || a.Error == "" {
		t.Errorf("%+v", a)
	}
	if s := got.shards[0]; s.State != health.NotKnown || s.Lag() != health.Unknown || s.Text() != "the store does not answer (before, it was unread)" {
		t.Errorf("%+v", s)
	}
}

func TestAPauseIsAMetric(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	for _, stream := range []string{"s", "r"} {
		of := lease.Lease{Key: lease.Key{Stream: stream, Shard: "shardId-000000000000"}, Epoch: 1, Position: shard.Oldest}
		if _, err := store.Apply(t.Context(), "a", []lease.Action{{Kind: lease.Create, Lease: of}}); err != nil {
			t.Fatal(err)
		}
	}
	w := &watcher{store: stores.Shown{Store: stores.Store{Store: store}}, opts: &options{every: time.Second}, apps: map[string]*watchedApp{"a": {name: "a"}}}
	for _, c := range []struct {
		pause lease.Action
		s, r  string
	}{
		{lease.Action{Kind: lease.Pause, Stream: "x"}, "0", "0"},
		{lease.Action{Kind: lease.Pause, Stream: "s", On: true}, "1", "0"},
		{lease.Action{Kind: lease.Pause, On: true}, "1", "1"},
	} {
		if _, err := store.Apply(t.Context(), "a", []lease.Action{c.pause}); err != nil {
			t.Fatal(err)
		}
		w.visit(t.Context(), w.apps["a"])
		answer := httptest.NewRecorder()
		w.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for stream, want := range map[string]string{"s": c.s, "r": c.r} {
			if line := `weir_paused{app="a",stream="` + stream + `"} ` + want; !strings.Contains(answer.Body.String(), line+"\n") {
				t.Errorf("%+v: there is no %s", c.pause, line)
			}
		}
	}
}
