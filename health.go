package weir

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/hostcheck"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// Live returns an error if a restart of the process would help: the heartbeats are stuck, handlers
// ignore the end of their contexts, or Run has returned. It returns nil during an outage of the
// store or of the service, while a handler fails or is slow, and before Run. Live and Ready are
// cheap and may be called at any time.
func (c *Consumer) Live() error {
	now, times := time.Now(), c.opts.times()
	workers, returned := c.runs.Workers()
	var all []error
	if len(workers) == 0 && returned {
		all = append(all, errors.New("Run has returned"))
	}
	for i := range workers {
		all = append(all, workers[i].Dead(now, times)...)
	}
	return errors.Join(all...)
}

// Ready returns nil while this worker takes part in its application: it has joined and is not
// stopping, and the store has answered within Options.Timing.FailoverAfter. A leader also has to be
// able to list the shards of each stream: Ready returns an error when that has failed for a minute.
// The error says which condition is not met.
func (c *Consumer) Ready() error {
	now, times := time.Now(), c.opts.times()
	workers, _ := c.runs.Workers()
	var all []error
	if len(workers) == 0 {
		all = append(all, errors.New("Run was not called, or has returned"))
	}
	for i := range workers {
		all = append(all, workers[i].Unready(now, times)...)
	}
	return errors.Join(all...)
}

// StoreAnswered returns the time at which this worker sent the last heartbeat that the store has
// answered. It is zero before the first answer, and after Run has returned. StoreAnswered may be
// called at any time.
func (c *Consumer) StoreAnswered() (last time.Time) { return c.runs.StoreAnswered() }

// Health returns a verdict on each shard that this consumer holds, the worst first, and one verdict
// on all of them together. It uses the rules of package health, as the weir command, the metrics
// exporter and the web page do. Lags and reasons are known at once. To tell whether a lag falls,
// and since when a shard stands still, Health needs several observations over some minutes. Each
// call is one observation, so let metrics or probes call it regularly. Health does not report that
// a shard is close to the end of retention, because a consumer does not know the retention of a
// stream. It may be called concurrently.
func (c *Consumer) Health() (health.Application, []health.Named) {
	now, shards := time.Now(), c.Shards()
	all := make([]supervise.Observed, 0, len(shards))
	for i := range shards {
		if s := &shards[i]; s.Reason != health.Abandoned { // it may be another worker's
			all = append(all, supervise.Observed{
				Key: lease.Key{Stream: s.Stream, Shard: s.Shard}, Epoch: s.Epoch, Observation: s.observation(c.opts.Worker, now),
			})
		}
	}
	return c.judge.Judge(all, now)
}

// observation returns the current observation of a shard.
func (s *ShardStatus) observation(worker string, now time.Time) health.Observation {
	o := health.Observation{
		At: now, Handled: s.At, Saved: s.Saved, ReadLag: s.ReadLag, HandledLag: s.HandledLag, SavedLag: s.SavedLag,
		Owner: cmp.Or(worker, "this worker"), Reason: s.Reason, Since: s.Since, Attempts: s.Attempt, Held: s.Held, Expired: s.Expired,
	}
	if s.Err != nil {
		o.Err = s.Err.Error()
	}
	return o
}

// HealthHandler returns an HTTP handler that serves [Consumer.Live] under paths that end in /livez,
// and [Consumer.Ready] under paths that end in /readyz. The status is 200 or 503. The JSON body
// says whether the check passed, why not, how many shards this worker holds, and the verdict of
// [Consumer.Health]: the state of the worst shard, and a sentence. The verdict does not change the
// status, because a restart does not reduce lag. The reasons and the sentence contain only names of
// streams and shards, reasons of package health, and times.
//
// Other paths get 404, and methods other than GET and HEAD get 405. On a connection to a loopback
// address, requests for a host name other than localhost get 403, because a web page may have
// pointed that name at this machine. The answer contains nothing from the request.
func (c *Consumer) HealthHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !hostcheck.Allows(req) {
			http.Error(w, "over a loopback address, health checks are served only to requests for localhost and IP addresses", http.StatusForbidden)
			return
		}
		var check func() error
		switch path.Base(req.URL.Path) {
		case "livez":
			check = c.Live
		case "readyz":
			check = c.Ready
		default:
			http.NotFound(w, req)
			return
		}
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		answer := healthAnswer{OK: true, Reasons: []string{}, Shards: len(c.runs.Loops())}
		answer.State, answer.Sentence = c.stand()
		status := http.StatusOK
		if err := check(); err != nil {
			status, answer.OK, answer.Reasons = http.StatusServiceUnavailable, false, reasons(err)
		}
		body, err := json.Marshal(answer)
		if err != nil { // cannot be
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		if req.Method == http.MethodGet {
			_, _ = w.Write(append(body, '\n')) // the caller may have left
		}
	})
}

type healthAnswer struct {
	OK       bool         `json:"ok"`
	Reasons  []string     `json:"reasons"`
	Shards   int          `json:"shards"`
	State    health.State `json:"state"`
	Sentence string       `json:"sentence"`
}

// stand returns the state of all shards together, and a sentence about it. The sentence contains no
// texts of errors, because they come from the user's code.
func (c *Consumer) stand() (health.State, string) {
	_, all := c.Health()
	for i := range all {
		all[i].Err = ""
	}
	sum := health.Sum(all)
	return sum.State, sum.Sentence
}

// reasons returns the texts of joined errors.
func reasons(err error) []string {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []string{err.Error()}
	}
	var all []string
	for _, e := range joined.Unwrap() {
		all = append(all, e.Error())
	}
	return all
}
