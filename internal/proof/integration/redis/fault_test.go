package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/internal/proof/integration/chaos/cut"
	"github.com/weir-go/weir/internal/proof/integration/crowd"
	"github.com/weir-go/weir/internal/proof/integration/older"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/redisstore"
)

func TestProcessesThatAreKilledAndAServerThatRestartsHarmNothing(t *testing.T) {
	kinds(t, func(t *testing.T, start servers.RedisKind) {
		d := start(t)
		crowd.Run(t, place(d.Addr).open(t), d.Addr, d.Restart, func() { d.Kill(); d.Start() })
	})
}

func TestProcessesOfTwoVersionsShareAServer(t *testing.T) {
	program := older.Unpack(t).Tests(t)
	kinds(t, func(t *testing.T, start servers.RedisKind) {
		d := start(t)
		crowd.Mixed(t, place(d.Addr).open(t), d.Addr, program)
	})
}

func TestLostAnswersHarmNothing(t *testing.T) {
	d := servers.Redis(t)
	p := servers.NewProxy(t, d.Addr)
	lose, lost := crowd.Losing(p)
	crowd.LostAnswers(t, open(t, d.Addr, redisstore.Options{}), open(t, p.Addr, redisstore.Options{}), lose, lost)
}

// say sends a command that must succeed.
func say(t testing.TB, c *redis.Client, command ...any) any {
	t.Helper()
	answer, err := c.Do(t.Context(), command...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatalf("%v: %v", command, err)
	}
	return answer
}

// scene creates an application with three leases. Session a leads, and holds lease 1 at epoch 2 and
// position 5. Lease 2 is free, and lease 3 is finished.
func scene(t testing.TB, s lease.Store) {
	t.Helper()
	beat(t, s, lease.Report{Session: "a", First: true})
	beat(t, s, lease.Report{Session: "b", First: true})
	apply(t, s, create("1"), create("2"), create("3"), assign("1", 1, "a"), assign("3", 1, "a"))
	beat(t, s, lease.Report{Session: "a", Progress: []lease.Progress{at(t, "1", 2, "5"), {Key: key("3"), Epoch: 2, Position: shard.End}}})
	if won, err := s.Lead(t.Context(), "app", "a", 0); err != nil || !won {
		t.Fatal(won, err)
	}
}

func key(id string) lease.Key { return lease.Key{Stream: "orders", Shard: id} }

func create(id string) lease.Action {
	return lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: key(id), Epoch: 1, Position: shard.Oldest}}
}

func assign(id string, epoch uint64, to string) lease.Action {
	return lease.Action{Kind: lease.Assign, Key: key(id), Epoch: epoch, Session: to}
}

func at(t testing.TB, id string, epoch uint64, seq string) lease.Progress {
	p, err := shard.After(seq)
	if err != nil {
		t.Fatal(err)
	}
	return lease.Progress{Key: key(id), Epoch: epoch, Position: p}
}

func beat(t testing.TB, s lease.Store, r lease.Report) lease.Orders {
	t.Helper()
	o, err := s.Heartbeat(t.Context(), "app", r)
	if err != nil {
		t.Fatalf("Heartbeat of %s: %v", r.Session, err)
	}
	return o
}

func over(t testing.TB, s lease.Store, session string) {
	t.Helper()
	if o, err := s.Heartbeat(t.Context(), "app", lease.Report{Session: session}); !errors.Is(err, lease.ErrSessionOver) {
		t.Errorf("Heartbeat of %s = %v, %v, want ErrSessionOver", session, o, err)
	}
}

func apply(t testing.TB, s lease.Store, actions ...lease.Action) {
	t.Helper()
	done, err := s.Apply(t.Context(), "app", actions)
	if err != nil || strings.Contains(fmt.Sprint(done), "false") {
		t.Fatalf("Apply = %v, %v", done, err)
	}
}

func view(t testing.TB, s lease.Store, since string) lease.View {
	t.Helper()
	v, err := s.View(t.Context(), "app", since)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const jump = 1 << 20

// settled reads the rows like a leader until the leases of previous owners are no longer valid.
// Then it assigns all leases to a new session.
func settled(t testing.TB, s lease.Store) {
	t.Helper()
	beat(t, s, lease.Report{Session: "c", First: true})
	watch := lease.NewWatch(lease.Times{Failover: 5 * time.Second, Handoff: time.Minute, Heartbeat: time.Second}, lease.Leader{})
	now := time.Unix(0, 0)
	waited := time.Duration(0)
	for {
		beat(t, s, lease.Report{Session: "c"})
		v := view(t, s, "")
		facts := watch.See(v, now, now)
		given := false
		for _, a := range lease.Plan(v, facts, lease.Limits{}) {
			given = given || a.Kind == lease.Assign
			apply(t, s, a)
		}
		if given {
			break
		}
		if waited > 20*time.Second {
			t.Fatalf("after %s nothing is given out: %+v", waited, v)
		}
		now = now.Add(500 * time.Millisecond)
		waited += 500 * time.Millisecond
	}
	if waited < 5*time.Second {
		t.Errorf("leases were given out after %s, but they may be valid for their old owners for 5s", waited)
	}
	if held := beat(t, s, lease.Report{Session: "c"}).Held; len(held) != 2 {
		t.Errorf("c holds %v", held)
	}
}

func TestARestartEndsAllSessionsAndNobodyOwnsAnythingUntilNoLeaseIsValid(t *testing.T) {
	for name, restart := range map[string]func(*servers.Database){
		"in order": (*servers.Database).Restart, "a crash": func(d *servers.Database) { d.Kill(); d.Start() },
	} {
		t.Run(name, func(t *testing.T) {
			d := servers.Redis(t)
			s := open(t, d.Addr, redisstore.Options{})
			scene(t, s)
			known := view(t, s, "")
			restart(d)
			v := view(t, s, known.Revision)
			if v.Same || len(v.Leases) != 3 {
				t.Fatalf("view %+v", v)
			}
			if len(v.Workers) != 1 || !strings.HasPrefix(v.Workers[0].Session, "lost:") || !v.Workers[0].Leaving {
				t.Fatalf("workers %+v", v.Workers)
			}
			ghost := v.Workers[0].Session
			for i, want := range []string{
				fmt.Sprintf("orders/1 epoch=%d owner=%s at=5", 2+jump, ghost),
				fmt.Sprintf("orders/2 epoch=%d owner=%s at=oldest", 1+jump, ghost),
				fmt.Sprintf("orders/3 epoch=%d at=end", 3+jump),
			} {
				if got := v.Leases[i].String(); got != want {
					t.Errorf("lease %s, want %s", got, want)
				}
			}
			if v.Leader != (lease.Leader{Epoch: 1 + jump}) {
				t.Errorf("leader %+v", v.Leader)
			}
			over(t, s, "a")
			over(t, s, "b")
			if again := view(t, s, v.Revision); !again.Same || len(again.Workers) != 1 {
				t.Errorf("a second look %+v", again)
			}
			settled(t, s)
		})
	}
}

// replicate makes a server follow another one. It returns when a write has reached the follower.
// The servers report the connection as up too early: the follower may still wait up to a second for
// data. WAIT also succeeds too early, if nothing was written.
func replicate(t testing.TB, primary, replica *servers.Database) {
	t.Helper()
	host, port, _ := strings.Cut(primary.Addr, ":")
	p, follower := client(t, primary.Addr), client(t, replica.Addr)
	say(t, follower, "REPLICAOF", host, port)
	defer say(t, p, "DEL", "follows")
	for deadline := time.Now().Add(30 * time.Second); ; {
		// A follower that is online has the initial dump, which does not contain the key.
		if strings.Contains(say(t, p, "INFO", "replication").(string), "state=online") {
			say(t, p, "SET", "follows", "yes")
			if say(t, p, "WAIT", 1, 1000) == int64(1) && say(t, follower, "GET", "follows") == "yes" {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the replica does not follow")
		}
	}
}

func TestAFailoverThatLosesWritesLosesNoRecordAndGivesNothingTwice(t *testing.T) {
	primary, replica := servers.Redis(t), servers.Redis(t)
	before := open(t, primary.Addr, redisstore.Options{})
	scene(t, before)
	replicate(t, primary, replica)
	// From here on, nothing reaches the replica. A checkpoint, a new owner, a new lease and a new
	// leader are lost.
	say(t, client(t, replica.Addr), "REPLICAOF", "127.0.0.1", "1")
	beat(t, before, lease.Report{Session: "a", Progress: []lease.Progress{at(t, "1", 2, "9")}})
	apply(t, before, assign("2", 1, "b"), create("4"))
	lost := beat(t, before, lease.Report{Session: "b"}).Held
	if len(lost) != 1 || lost[0].Epoch != 2 {
		t.Fatalf("b holds %v", lost)
	}
	if won, err := before.Lead(t.Context(), "app", "b", 1); err != nil || !won {
		t.Fatal(won, err)
	}
	primary.Kill()
	say(t, client(t, replica.Addr), "REPLICAOF", "NO", "ONE")

	after := open(t, replica.Addr, redisstore.Options{})
	over(t, after, "a")
	over(t, after, "b") // its leases may still be valid
	v := view(t, after, "")
	for _, l := range v.Leases {
		if l.Epoch <= jump || !l.Finished() && !strings.HasPrefix(l.Owner, "lost:") {
			t.Errorf("lease %s", l)
		}
	}
	if len(v.Leases) != 3 || v.Leases[0].Position.String() != "5" {
		t.Errorf("leases %v: want those of before, 1 at 5, from where records are handled again", v.Leases)
	}
	if v.Leader.Epoch <= 2 {
		t.Errorf("leader %+v: terms are given out twice", v.Leader)
	}
	settled(t, after)
	if won, err := after.Lead(t.Context(), "app", "b", 2); err != nil || won {
		t.Errorf("a candidate with a term of before: %t, %v", won, err)
	}
}

func TestReplicasHaveToHaveWhatACallWrote(t *testing.T) {
	primary, replica := servers.Redis(t), servers.Redis(t)
	s := open(t, primary.Addr, redisstore.Options{Replicas: 1, ReplicaTimeout: 200 * time.Millisecond})
	replicate(t, primary, replica)
	scene(t, s)
	if v, err := open(t, replica.Addr, redisstore.Options{}).View(t.Context(), "app", ""); err == nil {
		t.Errorf("a replica, which may be behind, answers %+v", v)
	}
	replica.Suspend()
	_, err := s.Heartbeat(t.Context(), "app", lease.Report{Session: "a", Progress: []lease.Progress{at(t, "1", 2, "9")}})
	if err == nil || errors.Is(err, lease.ErrSessionOver) || !strings.Contains(err.Error(), "0 replicas have the write") {
		t.Errorf("without the replica: %v", err)
	}
	if _, err := s.View(t.Context(), "app", ""); err != nil {
		t.Errorf("a look without the replica: %v", err)
	}
	replica.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for err != nil && ctx.Err() == nil {
		_, err = s.Heartbeat(ctx, "app", lease.Report{Session: "a"})
	}
	if err != nil {
		t.Errorf("with the replica again: %v", err)
	}
	if l := view(t, s, "").Leases[0]; l.Position.String() != "9" {
		t.Errorf("lease %s", l)
	}
}

func TestCallsEndWithTheirContext(t *testing.T) {
	d := servers.Redis(t)
	s := open(t, d.Addr, redisstore.Options{})
	scene(t, s)
	d.Suspend()
	defer d.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Heartbeat(ctx, "app", lease.Report{Session: "a"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that hangs: %v", err)
	}
}

// A vanished server, or a gateway that has dropped connections, sends no signal. One call detects
// this for all connections of the pool, however many there are.
func TestConnectionsThatDiedCostOneCall(t *testing.T) {
	const idle = 10
	d := servers.Redis(t)
	p, err := cut.New(d.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	c := client(t, p.Addr())
	s, err := redisstore.New(c, redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	beat := func(first bool) error {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		_, err := s.Heartbeat(ctx, "app", lease.Report{Session: "a", First: first})
		return err
	}
	if err := beat(true); err != nil {
		t.Fatal(err)
	}
	var conns [idle]*redis.Conn
	for i := range conns {
		conns[i] = c.Conn()
		if err := conns[i].Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range conns {
		conn.Close()
	}
	if got := c.PoolStats().IdleConns; got != idle {
		t.Fatalf("%d idle connections, not %d", got, idle)
	}
	if err := p.Set(cut.HalfOpen); err != nil {
		t.Fatal(err)
	}
	if err := beat(false); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the heartbeat that finds out: %v", err)
	}
	if err := beat(false); err != nil {
		t.Errorf("the next heartbeat: %v", err)
	}
}
