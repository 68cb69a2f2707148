package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
)

// wide returns the facts of a healthy application with many shards. Two workers hold the shards
// alternately.
func wide(t testing.TB, shards int) *Facts {
	f := healthy(t)
	f.Streams = []Stream{{Name: "s", Err: "to be replaced"}}
	f.Shards = map[lease.Key]Shard{}
	for _, v := range []*lease.View{&f.First, &f.Second} {
		v.Leases = nil
		for i := range shards {
			k := key(fmt.Sprintf("shardId-%012d", i))
			v.Leases = append(v.Leases, lease.Lease{Key: k, Epoch: 1, Owner: []string{"A", "B"}[i%2], Position: at(t, "100")})
			f.Shards[k] = Shard{}
		}
	}
	return f
}

func (f *Facts) lookAll(l Look) {
	for k := range f.Shards {
		f.Shards[k] = Shard{l, l}
	}
}

// complain makes each worker report a problem for each of its first eight shards.
func (f *Facts) complain(state string, why func(lease.Key) string) {
	for _, w := range []string{"A", "B"} {
		f.worker(w, func(w *lease.Worker) {
			for _, l := range f.Second.Leases {
				if l.Owner == w.Session && len(w.Troubles) < 8 {
					w.Troubles = append(w.Troubles, lease.Trouble{Key: l.Key, State: state, For: time.Minute + time.Duration(len(w.Troubles))*time.Second, Why: why(l.Key)})
				}
			}
		})
	}
}

// A problem that all subjects share is one finding. The finding has the severity error if no worker
// makes progress.
func TestOneTroubleOfAllIsOneFinding(t *testing.T) {
	for name, c := range map[string]struct {
		shards int
		change func(*Facts)
		want   []string // lines with severity, code and text, one for each finding
	}{
		"the service answers nothing": {12, func(f *Facts) {
			f.Streams = []Stream{{Name: "r", Err: "no answer"}, {Name: "s", Err: "no answer"}}
			f.lookAll(Look{Err: "no answer"})
			f.complain("backing off", func(lease.Key) string { return "i/o timeout" })
		}, []string{"error service-unreachable none of 2 streams and 12 shards can be described: no answer; 2 workers say so, too"}},
		"the service answers nothing, and workers are cut off": {12, func(f *Facts) {
			f.Streams = []Stream{{Name: "s", Err: "no answer"}}
			f.lookAll(Look{Err: "no answer"})
			for _, w := range []string{"A", "B"} {
				f.worker(w, func(w *lease.Worker) {
					w.Troubles = []lease.Trouble{{State: lease.CutOff, For: time.Minute, Why: "timeout"}}
				})
			}
		}, []string{"error service-unreachable none of 1 stream and 12 shards can be described: no answer; 2 workers say so, too"}},
		"the service fails every read": {12, func(f *Facts) {
			f.Streams = nil
			f.lookAll(Look{Err: "it failed", Code: "InternalFailure"})
		}, []string{"error unreadable 12 shards of stream s, shardId-000000000000 among them, could not be read: it failed"}},
		"it fails some": {12, func(f *Facts) {
			f.Streams = nil
			f.Shards[key("shardId-000000000003")] = Shard{Look{Err: "it failed"}, Look{Err: "it failed"}}
		}, []string{"warning unreadable s/shardId-000000000003 could not be read: it failed"}},
		"workers alone are cut off": {12, func(f *Facts) {
			f.Streams = nil
			f.complain("backing off", func(lease.Key) string { return "timeout" })
			for _, w := range []string{"A", "B"} {
				f.worker(w, func(w *lease.Worker) {
					w.Troubles = append([]lease.Trouble{{State: lease.CutOff, For: time.Minute, Why: "timeout"}}, w.Troubles...)
				})
			}
		}, []string{"error worker-trouble 2 workers: cut off, as they report: timeout, first ann"}},
		"every handler fails for one reason": {12, func(f *Facts) {
			f.Streams = nil
			f.complain("waiting to handle again", func(k lease.Key) string { return k.Shard + ": the database is full" })
		}, []string{"error worker-trouble 12 shards: waiting to handle again, as workers report: the shard: the database is full, first s/shardId-000000000000"}},
		"handlers fail for two reasons": {12, func(f *Facts) {
			f.Streams = nil
			f.complain("waiting to handle again", func(k lease.Key) string {
				return map[bool]string{true: "full", false: "gone"}[k.Shard < "shardId-000000000003"]
			})
		}, []string{
			"warning worker-trouble 3 shards: waiting to handle again, as workers report: full, first s/shardId-000000000000",
			"warning worker-trouble 9 shards: waiting to handle again, as workers report: gone, first s/shardId-000000000003",
		}},
		"every checkpoint stands still": {12, func(f *Facts) {
			f.Streams = nil
			f.Apart = stallAfter
			f.lookAll(Look{Waits: true, Age: time.Hour})
		}, []string{"error stuck-shard 12 shards: their checkpoints have not moved although records wait, first s/shardId-000000000000"}},
		"every checkpoint has expired": {12, func(f *Facts) {
			f.Streams = nil
			f.lookAll(Look{Err: "the number 100 of no shard", Code: "InvalidArgumentException"})
		}, []string{"error expired-checkpoint 12 shards: the service refuses their checkpoints, so they have expired or the stream was recreated, first s/shardId-000000000000"}},
		"one of one": {1, func(f *Facts) {
			f.Streams = nil
			f.complain("waiting to handle again", func(lease.Key) string { return "full" })
		}, []string{"warning worker-trouble worker ann reports of s/shardId-000000000000: waiting to handle again for 60 s: full"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := wide(t, c.shards)
			c.change(f)
			findings := Diagnose(*f)
			var got []string
			for _, found := range findings {
				got = append(got, fmt.Sprintf("%s %s %s", found.Severity, found.Code, found.Text))
			}
			if !slices.Equal(got, c.want) {
				t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			for _, found := range findings { // the output for programs names all subjects
				if n := 0; strings.Contains(found.Text, ", first ") {
					if _, err := fmt.Sscan(found.Text, &n); err != nil || n != 1+len(found.Others) {
						t.Errorf("%q has %d others", found.Text, len(found.Others))
					}
				}
			}
		})
	}
}
