package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/errtext"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
)

// Diagnose returns the findings that follow from the facts, the worst first.
func Diagnose(f Facts) []Finding {
	p := newPatient(f)
	p.outOfReach()
	p.permissions()
	p.workers()
	p.times()
	p.streams()
	p.leader()
	p.given()
	p.held()
	p.deaths()
	p.troubles()
	p.paused()
	p.old()
	for _, s := range f.Streams {
		p.stream(s)
	}
	p.blocked()
	p.sum()
	slices.SortStableFunc(p.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.Code, b.Code), cmp.Compare(a.About, b.About), cmp.Compare(a.Text, b.Text))
	})
	return p.findings
}

func rank(s Severity) int { return slices.Index([]Severity{Error, Warning, Intended, Info}, s) }

// patient contains the facts about the application, indexed for the checks.
type patient struct {
	Facts
	first    map[lease.Key]lease.Lease
	second   map[lease.Key]lease.Lease
	waiting  map[lease.Key][]lease.Key
	names    map[string]string
	taking   int // workers with heartbeats that take leases
	room     int // leases that these workers may still take; -1 means no limit
	running  int // workers with heartbeats, or whose next heartbeat is not due yet
	stuck    map[lease.Key]bool
	lives    map[string]bool // sessions that have a row and have not ended
	findings []Finding
	likes    map[int]like // findings that can be combined with similar ones, by index

	unreachable bool // the service answers no call
}

func newPatient(f Facts) *patient {
	p := &patient{Facts: f, first: map[lease.Key]lease.Lease{}, second: map[lease.Key]lease.Lease{}, names: map[string]string{}, stuck: map[lease.Key]bool{}, likes: map[int]like{}, lives: map[string]bool{}}
	held := map[string]int{}
	for _, l := range f.First.Leases {
		p.first[l.Key] = l
	}
	for _, l := range f.Second.Leases {
		p.second[l.Key] = l
		held[l.Owner]++
	}
	gone := map[lease.Key]bool{}
	for _, s := range f.Streams {
		if s.Err != "" {
			continue
		}
		here := map[string]bool{}
		for _, sh := range s.Shards {
			here[sh.ID] = true
		}
		for _, l := range f.Second.Leases {
			for _, parent := range l.Parents {
				if l.Stream == s.Name && !here[parent] {
					gone[lease.Key{Stream: s.Name, Shard: parent}] = true
				}
			}
		}
	}
	for _, w := range f.Second.Workers {
		p.lives[w.Session] = !w.Ended
	}
	named := slices.Clone(f.Second.Leases)
	for i := range named {
		if p.over(named[i].Revoked) {
			named[i].Revoked = "" // the session will not acknowledge, so no worker waits for it
		}
	}
	p.waiting = lease.Waiting(named, gone)
	for _, w := range slices.Concat(f.First.Workers, f.Second.Workers) {
		p.names[w.Session] = cmp.Or(w.Name, w.Session)
	}
	for _, w := range f.Second.Workers {
		if !p.beats(w) && !p.unseen(w) {
			continue
		}
		p.running++
		if w.Leaving || w.Drain {
			continue
		}
		p.taking++
		switch {
		case w.MaxLeases <= 0:
			p.room = -1
		case p.room >= 0:
			p.room += max(w.MaxLeases-held[w.Session], 0)
		}
	}
	return p
}

func (p *patient) found(s Severity, code, about, do, text string, args ...any) {
	p.findings = append(p.findings, Finding{Severity: s, Code: code, About: about, Text: fmt.Sprintf(text, args...), Do: do})
}

func (p *patient) beats(w lease.Worker) bool { return !w.Ended && p.Beats[w.Session] }

// over reports whether a session has ended or has no row. Such a session holds nothing and
// acknowledges nothing. An empty session counts as over.
func (p *patient) over(session string) bool { return !p.lives[session] }

// unseen reports whether the time between the two reads was too short to see a heartbeat of the
// worker.
func (p *patient) unseen(w lease.Worker) bool {
	return !w.Ended && !p.Beats[w.Session] && p.Apart < 2*timesOf(w).Heartbeat
}

func timesOf(w lease.Worker) lease.Times { return w.Times.Or(lease.DefaultTimes) }

func (p *patient) isPaused(stream string) bool {
	return slices.Contains(p.Second.Paused, "") || slices.Contains(p.Second.Paused, stream)
}

// toRead returns the sorted leases that workers should hold.
func (p *patient) toRead() []lease.Lease {
	var all []lease.Lease
	for _, l := range p.Second.Leases {
		if !l.Finished() && p.waiting[l.Key] == nil && !p.isPaused(l.Stream) {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b lease.Lease) int { return a.Key.Compare(b.Key) })
	return all
}

func (p *patient) permissions() {
	for _, d := range p.Denied {
		p.found(Error, "permission", d.On, "allow "+d.Action+" on it in the IAM policy; workers also need it if they use the same policy",
			"the user of this command has no permission for %s on %s", d.Action, d.On)
	}
}

func (p *patient) workers() {
	switch {
	case len(p.Second.Leases) == 0 && p.running > 0:
		p.found(Error, "no-leases", p.App, "look at the leader's log: it cannot list the shards of its streams, or they have none",
			"%s run, but the application has no leases", count(p.running, "worker"))
	case p.running == 0 && len(p.toRead()) > 0:
		p.found(Error, "no-workers", p.App, "start workers",
			"no worker is alive, so the %s that could be read are not read", count(len(p.toRead()), "shard"))
	}
	named := map[string]int{}
	for _, l := range p.toRead() { // the other leases are free on purpose
		named[l.Owner]++
	}
	was := map[string]lease.Worker{}
	for _, w := range p.First.Workers {
		was[w.Session] = w
	}
	for _, w := range p.Second.Workers {
		name := p.names[w.Session]
		before, known := was[w.Session]
		switch {
		case w.Ended && known && before.Ended && named[w.Session] > 0 && p.running > 0:
			p.alike(Warning, "ended-session", "worker", name, "find out why its leases are not assigned: see the other findings, or \"weir group plan\"", "their sessions have ended, and they still own leases",
				"worker %s (session %s) has ended, and %s still assigned to it after %v", name, w.Session, count(named[w.Session], "lease")+cli.Plural(named[w.Session], " is", " are"), figures.Duration(p.Apart))
		case w.Ended || !known || p.beats(w):
		case p.Apart < timesOf(w).Failover || p.unseen(w):
			p.silent(w, name)
		case p.running > 0:
			p.alike(Warning, "dead-worker", "worker", name, "nothing if it was killed: the leader ends its session; if it runs, it cannot reach the store",
				"without a heartbeat for so long that they count as dead",
				"worker %s (session %s) has sent no heartbeat for %v, and counts as dead after %v", name, w.Session, figures.Duration(p.Apart), figures.Duration(timesOf(w).Failover))
		default:
			p.alike(Info, "dead-worker", "worker", name, "nothing: the next worker that starts removes it", "they no longer run, and did not stop in order",
				"worker %s (session %s) no longer runs, and did not stop in order", name, w.Session)
		}
		if p.beats(w) && w.Drain {
			p.alike(Intended, "draining", "worker", name, "\"weir group drain --off "+name+"\" when it may work again", "drained, so they take no leases",
				"worker %s is drained, and takes no leases", name)
		}
	}
}

func (p *patient) leader() {
	a, b := p.First.Leader, p.Second.Leader
	switch {
	case p.running == 0:
	case b.Session == "" && a.Session == "":
		p.found(Error, "no-leader", p.App, "look at the workers' logs: they cannot take the lead in the store",
			"there is no leader although %s send heartbeats, so no lease is assigned and new shards are not found", count(p.running, "worker"))
	case p.unseen(p.workerOf(b.Session)):
	case a.Session == b.Session && a.Epoch == b.Epoch && a.Heartbeats == b.Heartbeats:
		p.found(Warning, "leader-silent", p.names[b.Session], "if this does not change, look at the workers' logs: another worker should take the lead within their failover time",
			"the leader, %s, has sent no heartbeat for %v", p.names[b.Session], figures.Duration(p.Apart))
	}
}

// given finds leases that a worker should hold, but that no worker holds.
func (p *patient) given() {
	var free []lease.Lease
	unread := lease.Unread(p.live())
	for _, l := range p.toRead() {
		if slices.Contains(unread, l.Stream) {
			continue // streams reports this
		}
		before, known := p.first[l.Key]
		if l.Owner == "" && p.over(l.Revoked) && known && before.Owner == "" && before.Epoch == l.Epoch {
			free = append(free, l)
		}
	}
	if len(free) == 0 || p.running == 0 {
		return
	}
	example := fmt.Sprintf("%s without an owner, %s among them", count(len(free), "lease")+cli.Plural(len(free), " is", " are"), free[0].Key)
	switch {
	case p.taking == 0:
		p.found(Error, "no-taker", p.App, "end a drain with \"weir group drain --off WORKER\", or start workers",
			"%s, and no worker takes leases: all of them stop or are drained", example)
	case p.room >= 0 && p.room < len(free):
		p.found(Error, "max-leases", p.App, "start more workers, or raise MaxLeases",
			"%s, and the workers have room for %d by their MaxLeases", example, p.room)
	default:
		p.found(Error, "not-given-out", p.App, "look at the leader's log, and at \"weir group plan\"",
			"%s, although workers have room", example)
	}
}

// held finds shards that are held but make no progress.
func (p *patient) held() {
	failed := map[failure][]lease.Key{}
	var stood []stand
	for _, l := range p.toRead() {
		seen, asked := p.Shards[l.Key]
		if !asked {
			continue
		}
		p.readable(l, seen, failed)
		before, known := p.first[l.Key]
		if !known || seen.First.Err != "" || seen.Second.Err != "" || l.Owner == "" || before.Owner != l.Owner || before.Epoch != l.Epoch || !p.Beats[l.Owner] {
			continue
		}
		if l.Position == before.Position && seen.First.Waits && seen.Second.Waits {
			stood = append(stood, stand{l.Key, l.Owner, seen.Second.Age})
		}
	}
	p.unreadable(failed)
	p.stood(stood)
}

// failure is the reason why shards of a stream cannot be read. Usually all shards share one reason.
type failure struct {
	stream, why string
	kms         bool
}

// readable adds findings about refused and expired checkpoints. It adds other errors of reads to
// failed.
func (p *patient) readable(l lease.Lease, seen Shard, failed map[failure][]lease.Key) {
	look := seen.Second
	switch {
	case strings.HasPrefix(look.Code, "KMS"):
		failed[failure{l.Stream, look.Err, true}] = append(failed[failure{l.Stream, look.Err, true}], l.Key)
	case look.Code == "InvalidArgumentException":
		p.alike(Error, "expired-checkpoint", "shard", l.Key.String(), "decide where to continue: with \"weir group reset --shard\", or with Options.Expired",
			"the service refuses their checkpoints, so they have expired or the stream was recreated",
			"the service refuses the checkpoint %s of %s, so it has expired or the stream was recreated: %s", l.Position, l.Key, look.Err)
	case look.Err != "" && look.Code != "ResourceNotFoundException" && !strings.Contains(look.Code, "AccessDenied"):
		failed[failure{l.Stream, look.Err, false}] = append(failed[failure{l.Stream, look.Err, false}], l.Key)
	case seen.First.Expired && seen.Second.Expired && seen.First.Waits && seen.Second.Waits:
		p.alike(Warning, "expired-checkpoint", "shard", l.Key.String(), "start workers or make them faster, and increase the retention; expired records are lost",
			"all records up to the checkpoint have left the stream, so later ones may have expired as well",
			"all records up to the checkpoint of %s have left the stream, so later ones may have expired as well", l.Key)
	}
}

func (p *patient) unreadable(failed map[failure][]lease.Key) {
	if p.unreachable {
		return // outOfReach reports this
	}
	severity := Warning
	if p.allFailed(failed) {
		severity = Error // no worker can read
	}
	for why, keys := range failed {
		which := keys[0].String()
		if len(keys) > 1 {
			which = fmt.Sprintf("%d shards of stream %s, %s among them,", len(keys), why.stream, keys[0].Shard)
		}
		switch {
		case why.kms:
			p.found(Error, "kms", why.stream, "allow the readers to use the key (kms:Decrypt), and check that it is enabled",
				"%s cannot be decrypted: %s", which, why.why)
		case slices.ContainsFunc(p.Streams, func(s Stream) bool { return s.Name == why.stream && s.Err != "" }):
			// The finding about the stream covers this.
		default:
			p.alike(severity, "unreadable", "stream", why.stream, "if this does not change, check the service's status and the network", "shards could not be read: "+why.why,
				"%s could not be read: %s", which, why.why)
		}
	}
}

// allFailed reports whether all shards to be read failed for the same reason.
func (p *patient) allFailed(failed map[failure][]lease.Key) bool {
	reasons, n := map[string]bool{}, 0
	for why, keys := range failed {
		reasons[why.why] = true
		n += len(keys)
	}
	return len(reasons) == 1 && n == len(p.toRead())
}

func (p *patient) troubles() {
	severity := Warning
	if p.cutOff() {
		severity = Error // no worker can read
	}
	for _, w := range p.Second.Workers {
		if !p.beats(w) {
			continue
		}
		for _, t := range w.Troubles {
			if t.State == lease.OnPurpose {
				continue // the findings about checkpoints that do not move mention it
			}
			if (p.unreachable || w.CutOff() && t.Key != (lease.Key{})) && isOfReading(t) {
				continue // a more severe finding covers this
			}
			says := health.ReportedWords(t.State)
			if t.Key == (lease.Key{}) {
				p.alike(severity, "worker-trouble", "worker", p.names[w.Session], "check its network, its credentials and its log; other workers get its shards until it can read again",
					says+", as they report: "+oneLine(t.Why),
					"worker %s reports that it is %s for %s: %s", p.names[w.Session], says, rough(t.For), oneLine(t.Why))
				continue
			}
			if p.failing(w, t) {
				continue
			}
			if p.stuck[t.Key] {
				continue // a more severe finding covers this
			}
			p.alike(Warning, "worker-trouble", "shard", t.Key.String(), remedy(t)+"look at the log of "+p.names[w.Session], says+", as workers report: "+reason(t.Key, t.Why),
				"worker %s reports of %s: %s for %s: %s", p.names[w.Session], t.Key, says, rough(t.For), oneLine(t.Why))
		}
	}
}

// remedy returns what an operator can do about the reason of a report, and a semicolon. It returns
// "" if nothing is known to help.
func remedy(t lease.Trouble) string {
	action, resource := errtext.Denied(t.Why)
	switch {
	case !isOfReading(t):
	case action != "":
		return strings.TrimSuffix("allow "+action+" on "+resource, " on ") + " in the IAM policy of the workers; "
	case errtext.Unknown(t.Why):
		return "check whether stream " + t.Stream + " exists in the account and region of the workers; "
	case errtext.Refused(t.Why):
		return "if stream " + t.Stream + " was created again, wait a few seconds; "
	}
	if r := health.ReportedReason(t.State); r > health.OtherReason && r.Remedy() != "" {
		return r.Remedy() + "; "
	}
	return ""
}

// deaths adds findings about workers that died one after the other at the checkpoint of a shard.
func (p *patient) deaths() {
	for _, l := range p.Second.Leases {
		switch d := l.DeathsHere(); {
		case l.Finished():
		case d.Alone > 0:
			p.alike(Error, "killer", "shard", l.Key.String(),
				"fix the handler, so that it survives that record; Options.OnFailure dead-letters such records, and \"weir group reset\" with the shard skips them",
				"a record kills the worker that handles it",
				"%s died one after the other at %s, %d of them while they handled a single record: the one before %s", count(d.Count, "worker"), l.Key, d.Tried, d.Record)
		case d.Count > 1:
			p.alike(Warning, "deaths", "shard", l.Key.String(), "find out how those workers ended: out of memory, or by an error that ends the process?",
				"their owners died one after the other, and none made progress",
				"%s died one after the other while they had %s, and none made progress", count(d.Count, "worker"), l.Key)
		}
	}
}

func (p *patient) paused() {
	for _, stream := range p.Second.Paused {
		if stream == "" {
			p.found(Intended, "paused", p.App, "\"weir group resume\" when it may continue", "the application is paused%s, so no worker reads", p.pausedBy(stream))
		} else {
			p.alike(Intended, "paused", "stream", stream, "\"weir group resume --stream "+stream+"\" when it may continue", "paused, so no worker reads them", "stream %s is paused%s, so no worker reads it", stream, p.pausedBy(stream))
		}
	}
}

// pausedBy returns who paused a stream and when, in parentheses, or "".
func (p *patient) pausedBy(stream string) string {
	if text := observe.PauseOf(p.Second, stream).String(); text != "" {
		return " (" + text + ")"
	}
	return ""
}

// blocked finds shards whose parent shards are not finished.
func (p *patient) blocked() {
	parents := map[lease.Key]int{}
	for _, blockers := range p.waiting {
		for _, k := range blockers {
			parents[k]++
		}
	}
	for k, n := range parents {
		children := count(n, "shard") + cli.Plural(n, " waits", " wait")
		l, there := p.second[k]
		switch {
		case !there:
			p.alike(Warning, "parent-unknown", "shard", k.String(), "nothing: the leader repairs it when it lists the stream; if this does not change, look at the leader's log", "others wait for them, and they have no lease",
				"%s for %s, which has no lease", children, k)
		case p.over(l.Owner) && p.running > 0:
			p.alike(Info, "waiting", "shard", k.String(), "nothing: the order of records requires it; see the other findings about "+k.String(), "others wait for their end, and they have no owner now", "%s for the end of %s, which has no owner now", children, k)
		default:
			behind := ""
			if seen, asked := p.Shards[k]; asked && seen.Second.Err == "" && seen.Second.Waits {
				behind = ", which is " + rough(seen.Second.Age) + " behind"
			}
			p.alike(Info, "waiting", "shard", k.String(), "nothing: the order of records requires it", "others wait for their end", "%s for the end of %s%s", children, k, behind)
		}
	}
}

func count(n int, one string) string { return fmt.Sprintf("%d %s", n, cli.Plural(n, one, one+"s")) }

// rough formats a duration with low precision.
func rough(d time.Duration) string {
	if d < 2*time.Second {
		return figures.Duration(d.Round(time.Millisecond))
	}
	return figures.Duration(d.Round(time.Second))
}
