package group

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
)

// description is the output of group describe.
type description struct {
	App     string         `json:"app"`
	Verdict health.Verdict `json:"verdict"`
	Leader  *leaderInfo    `json:"leader"`           // null if no living worker leads
	Paused  []string       `json:"paused,omitempty"` // streams; "" means all streams
	Pauses  []pauseInfo    `json:"pauses,omitempty"` // who paused them, and when
	Notes   []string       `json:"notes,omitempty"`  // notes about the streams that workers read
	Workers []workerInfo   `json:"workers"`
	Leases  []leaseInfo    `json:"leases"`

	led string // a sentence about a leader that is dead
}

type pauseInfo struct {
	Stream string    `json:"stream"`       // "" means all streams
	By     string    `json:"by,omitempty"` // absent if not known
	At     time.Time `json:"at,omitzero"`  // absent if not known
}

type leaderInfo struct {
	Worker  string `json:"worker"`
	Session string `json:"session"`
	Term    uint64 `json:"term"`
}

type workerInfo struct {
	Worker  string  `json:"worker"`
	Session string  `json:"session"`
	State   string  `json:"state"` // alive, silent, unknown, leaving, ended
	Leader  bool    `json:"leader"`
	Drain   bool    `json:"drain,omitempty"` // an operator is draining the worker
	Leases  int     `json:"leases"`
	Load    int64   `json:"load_bytes_per_s"` // estimated load of the leases that it holds
	Weight  float64 `json:"weight"`
	Max     int     `json:"max_leases,omitempty"`
	// Streams is absent if the worker did not report its streams, or reads very many.
	Streams          []string `json:"streams,omitempty"`
	target.TimesInfo          // defaults if the worker did not report its times

	Troubles []troubleInfo `json:"troubles,omitempty"` // the troubles that it reports

	rate string
}

type troubleInfo struct {
	Stream string `json:"stream"`
	Shard  string `json:"shard"`
	State  string `json:"state"`
	ForMS  int64  `json:"for_ms"`
	Why    string `json:"why"`

	Failing *failingInfo `json:"failing,omitempty"`
}

type leaseInfo struct {
	Stream  string   `json:"stream"`
	Shard   string   `json:"shard"`
	Parents []string `json:"parents,omitempty"`
	// State is one of: held, moving, pausing, unread (its owner sends no heartbeats), paused, free,
	// revoked, waiting, finished.
	State      string `json:"state"`
	Worker     string `json:"worker,omitempty"`
	Session    string `json:"session,omitempty"`
	Heir       string `json:"heir,omitempty"`
	Epoch      uint64 `json:"epoch"`
	Checkpoint string `json:"checkpoint"`
	Lag        *int64 `json:"lag_ms,omitempty"` // absent if the lag is not known
	Held       string `json:"held,omitempty"`   // the reason why a worker holds the checkpoint on purpose
	// Load is approximate. It is absent if no owner has reported it, or if no worker holds the
	// lease.
	Load    *int64 `json:"load_bytes_per_s,omitempty"`
	Created string `json:"stream_created,omitempty"` // creation time of the stream, according to the lease
	// Deaths is absent if no owner has died at the checkpoint.
	Deaths *deathsInfo `json:"deaths,omitempty"`

	rate string
}

// deathsInfo counts the consecutive owners that died at the current checkpoint of a lease.
type deathsInfo struct {
	Died   int    `json:"died"`
	Alone  int    `json:"alone"`            // owners that died while they handled one record of the shard by itself
	Record string `json:"record,omitempty"` // position after the record that was handled by itself
	known  bool   // some owner handled no other record when it died
}

// hold sets the reason why a worker holds the checkpoint of a shard on purpose. If the trouble
// names no shard, it concerns all leases of the worker.
func (d *description) hold(session string, by lease.Trouble) {
	for i := range d.Leases {
		l := &d.Leases[i]
		if l.Session == session && (by.Key == lease.Key{} || by.Key == lease.Key{Stream: l.Stream, Shard: l.Shard}) {
			l.Held = by.Why
		}
	}
}

// deathsOf returns information about owners that died at the checkpoint. It returns nil if none
// died.
func deathsOf(l lease.Lease) *deathsInfo {
	d := l.DeathsHere()
	if d.Count == 0 {
		return nil
	}
	return &deathsInfo{d.Count, d.Tried, d.Record.String(), d.Alone > 0}
}

func (d deathsInfo) String() string {
	text := fmt.Sprintf("%d %s died at its checkpoint, one after the other", d.Died, cli.Plural(d.Died, "worker", "workers"))
	switch {
	case d.known:
		text += fmt.Sprintf(", %d of them while they handled one record by itself, before %s", d.Alone, d.Record)
	case d.Alone > 0:
		text += fmt.Sprintf(", %d of them while they handled one record of this shard and others of others", d.Alone)
	}
	return text
}

// describe combines the observations to a description. beating contains the sessions
// whose heartbeat changed within the time looked. It is nil if the command did not wait for
// heartbeats.
func describe(app, stream string, v lease.View, beating map[string]bool, looked time.Duration, lags map[lease.Key]shardlag.Lag) description {
	d := description{App: app, Paused: v.Paused, Notes: lease.DescribeStreams(v), Workers: []workerInfo{}, Leases: []leaseInfo{}}
	for _, stream := range v.Paused {
		d.Pauses = append(d.Pauses, pauseInfo(observe.PauseOf(v, stream)))
	}
	names := map[string]string{}
	for _, w := range v.Workers {
		names[w.Session] = cmp.Or(w.Name, w.Session)
	}
	nameOf := func(session string) string { return cmp.Or(names[session], session) }
	if s := v.Leader.Session; s != "" {
		d.Leader = &leaderInfo{nameOf(s), s, v.Leader.Epoch}
	}
	over, waiting := overIn(v), waitingIn(v)
	silent := silentIn(v, beating, looked)
	group := observe.GroupOf(v, silent)
	for _, l := range v.Leases {
		if over(l.Owner) {
			l.Owner, l.Heir = "", ""
		}
		if over(l.Revoked) {
			l.Revoked = ""
		}
		if stream != "" && l.Stream != stream {
			continue
		}
		info := leaseInfo{
			Stream: l.Stream, Shard: l.Shard, Parents: l.Parents, Session: l.Owner, Epoch: l.Epoch,
			Checkpoint: l.Position.String(), rate: group.ShardRate(l),
		}
		if l.Load != 0 && group.Holder(l.Key) != "" {
			bytes := int64(observe.ThroughputOf(l).Bytes)
			info.Load = &bytes
		}
		if l.Born != 0 {
			info.Created = time.UnixMilli(l.Born).UTC().Format(time.RFC3339)
		}
		info.Deaths = deathsOf(l)
		info.State = leaseState(l, isPaused(v.Paused, l.Stream), waiting[l.Key] != nil, silent[l.Owner])
		switch info.State {
		case "pausing":
			info.Heir = "nobody"
		case "moving":
			info.Heir = nameOf(l.Heir)
		}
		if l.Owner != "" {
			info.Worker = nameOf(l.Owner)
		}
		if found, asked := lags[l.Key]; asked && found.Err == nil {
			ms := found.Age.Milliseconds()
			info.Lag = &ms
		}
		d.Leases = append(d.Leases, info)
	}
	for _, w := range v.Workers {
		info := d.worker(w, group)
		info.Leader = w.Session == v.Leader.Session
		info.State = workerState(w, beating, looked)
		d.Workers = append(d.Workers, info)
	}
	d.unlead()
	slices.SortFunc(d.Leases, func(a, b leaseInfo) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Shard, b.Shard))
	})
	slices.SortFunc(d.Workers, func(a, b workerInfo) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Session, b.Session))
	})
	return d
}

// worker describes a worker, and notes which checkpoints it holds on purpose.
func (d *description) worker(w lease.Worker, group observe.Group) workerInfo {
	info := workerInfo{
		Worker: cmp.Or(w.Name, w.Session), Session: w.Session, Drain: w.Drain,
		rate: group.WorkerRate(w.Session), Weight: w.Weight, Max: w.MaxLeases,
	}
	shards, rate := group.Holds(w.Session)
	info.Leases, info.Load = shards, int64(rate.Bytes)
	info.TimesInfo = target.TimesInfoOf(w.Times.Or(lease.DefaultTimes))
	info.Streams, _ = w.Streams.Names()
	if !group.Lives(w.Session) {
		return info // its reports are over
	}
	for _, tr := range w.Troubles {
		if tr.State == lease.OnPurpose {
			d.hold(w.Session, tr)
			continue
		}
		info.Troubles = append(info.Troubles, troubleInfo{
			tr.Stream, tr.Shard, health.ReportedWords(tr.State), tr.For.Milliseconds(), tr.Why, failingOf(tr.Failing),
		})
	}
	return info
}

// leaseState returns the word for the state of a lease.
func leaseState(l lease.Lease, paused, waiting, silent bool) string {
	switch {
	case l.Finished():
		return "finished"
	case silent && !paused && !waiting:
		return "unread"
	case silent && paused:
		return "paused"
	case silent:
		return "waiting"
	case l.Heir == lease.Nobody:
		return "pausing"
	case l.Heir != "":
		return "moving"
	case l.Owner != "":
		return "held"
	case l.Revoked != "":
		return "revoked"
	case paused:
		return "paused"
	case waiting:
		return "waiting"
	}
	return "free"
}

// workerState returns the word for the state of a worker.
func workerState(w lease.Worker, beating map[string]bool, looked time.Duration) string {
	switch {
	case w.Ended:
		return "ended"
	case w.Leaving && (beating == nil || beating[w.Session]):
		return "leaving"
	case beating == nil:
		return "unknown"
	case beating[w.Session]:
		return "alive"
	case looked < 2*w.Times.Or(lease.DefaultTimes).Heartbeat:
		return "unknown"
	}
	return "silent"
}

// unlead removes the leader from the description if that worker is silent, has ended or is gone.
// The store keeps the name of a dead leader until another worker takes over.
func (d *description) unlead() {
	if d.Leader == nil {
		return
	}
	i := slices.IndexFunc(d.Workers, func(w workerInfo) bool { return w.Session == d.Leader.Session })
	now := "is gone"
	switch {
	case i < 0:
	case d.Workers[i].State == "silent":
		now = "is silent"
	case d.Workers[i].State == "ended":
		now = "has ended"
	default:
		return
	}
	d.led = fmt.Sprintf("%s led (epoch %d) and %s", d.Leader.Worker, d.Leader.Term, now)
	d.Leader = nil
	if i >= 0 {
		d.Workers[i].Leader = false
	}
}

func lagText(l leaseInfo) string {
	switch {
	case l.State == "finished":
		return "-"
	case l.Lag == nil:
		return "?"
	case l.Held != "" && *l.Lag > 0:
		return age(*l.Lag) + ", held " + explain.OneLine(l.Held)
	}
	return age(*l.Lag)
}

// age formats a number of milliseconds as a duration.
func age(ms int64) string { return figures.Duration(time.Duration(ms) * time.Millisecond) }

func isPaused(paused []string, stream string) bool {
	return slices.Contains(paused, "") || slices.Contains(paused, stream)
}

// pausesText returns a sentence about pauses and who began them, like pausedText.
func pausesText(pauses []pauseInfo) string {
	var names []string
	for _, p := range pauses {
		by := health.Pause(p).String()
		if p.Stream == "" {
			return strings.TrimRight(" It is paused "+by, " ") + "."
		}
		if by != "" {
			by = " (" + by + ")"
		}
		names = append(names, p.Stream+by)
	}
	if len(names) == 0 {
		return ""
	}
	return " Paused: " + cli.List(names) + "."
}

// pausedText returns a sentence about paused streams, with a leading space. It returns "" if
// nothing is paused.
func pausedText(paused []string) string {
	switch {
	case len(paused) == 0:
		return ""
	case slices.Contains(paused, ""):
		return " It is paused."
	}
	return " Paused: " + cli.List(paused) + "."
}
