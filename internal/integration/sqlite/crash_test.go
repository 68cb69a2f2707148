package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

const (
	crashFile    = "WEIR_TEST_SQLITE_FILE" // set in worker processes
	crashWorker  = "WEIR_TEST_SQLITE_WORKER"
	crashApp     = "crash"
	crashLeases  = 8
	crashWorkers = 4
	crashKills   = 40
	crashTime    = 6 * time.Second // after which a few kills will do
)

func TestMain(m *testing.M) {
	if path := os.Getenv(crashFile); path != "" {
		if err := crashLoop(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// crashLoop is a worker process. It beats, with progress on what it holds, and plays the leader a little, until it is
// killed. After each beat that was answered it says on standard output what the store confirmed.
func crashLoop(path string) error {
	worker, err := strconv.ParseUint(os.Getenv(crashWorker), 10, 32)
	if err != nil {
		return err
	}
	t := processT{}
	s, _ := open(t, path)
	held := map[lease.Key]lease.Lease{}
	for n, first, session := uint64(1), true, ""; ; n++ {
		if first {
			session = fmt.Sprintf("w%d-%d", worker, n)
		}
		r := lease.Report{Session: session, First: first}
		at := map[lease.Key]uint64{}
		for k, l := range held {
			p := lease.Progress{Key: k, Epoch: l.Epoch, Release: l.Heir != "" && rand.IntN(2) == 0 || rand.IntN(20) == 0}
			at[k] = crashPlace(l.Epoch, n, worker)
			if p.Position, err = shard.After(strconv.FormatUint(at[k], 10)); err != nil {
				return err
			}
			r.Progress = append(r.Progress, p)
		}
		o, err := s.Beat(context.Background(), crashApp, r)
		if errors.Is(err, lease.ErrSessionOver) {
			first, held = true, map[lease.Key]lease.Lease{}
			continue
		}
		if err != nil {
			return err
		}
		first = false
		now := map[lease.Key]lease.Lease{}
		var out strings.Builder
		for _, l := range o.Held {
			confirmed := uint64(0)
			if old, ok := held[l.Key]; ok && old.Epoch == l.Epoch {
				confirmed = at[l.Key]
			}
			fmt.Fprintf(&out, "held %s %d %d %s\n", l.Shard, l.Epoch, confirmed, session)
			now[l.Key] = l
		}
		held = now
		fmt.Fprintln(&out, "beat")
		if _, err := os.Stdout.WriteString(out.String()); err != nil {
			return err
		}
		if err := crashDirect(s); err != nil {
			return err
		}
	}
}

// crashPlace is a position that tells by whom and at which epoch it was reported.
func crashPlace(epoch, n, worker uint64) uint64 { return (epoch*100_000+n%100_000)*1000 + worker }

// crashDirect does what a leader does, without much sense.
func crashDirect(s lease.Store) error {
	v, err := s.View(context.Background(), crashApp, "")
	if err != nil {
		return err
	}
	var live, ended []string
	for _, w := range v.Workers {
		if w.Ended {
			ended = append(ended, w.Session)
		} else {
			live = append(live, w.Session)
		}
	}
	var actions []lease.Action
	for _, w := range v.Workers {
		if w.Ended && !slices.ContainsFunc(v.Leases, func(l lease.Lease) bool { return l.Owner == w.Session }) {
			actions = append(actions, lease.Action{Kind: lease.Forget, Session: w.Session})
		} else if !w.Ended && rand.IntN(20*len(live)) == 0 { // also now and then one that lives
			actions = append(actions, lease.Action{Kind: lease.EndSession, Session: w.Session, Beat: w.Beat})
		}
	}
	for _, l := range v.Leases {
		if len(live) == 0 {
			break
		}
		to := live[rand.IntN(len(live))]
		switch {
		case l.Owner == "" || slices.Contains(ended, l.Owner):
			actions = append(actions, lease.Action{Kind: lease.Assign, Key: l.Key, Epoch: l.Epoch, Session: to})
		case rand.IntN(10) == 0:
			actions = append(actions, lease.Action{Kind: lease.Handoff, Key: l.Key, Epoch: l.Epoch, Session: to})
		case rand.IntN(20) == 0:
			actions = append(actions, lease.Action{Kind: lease.Revoke, Key: l.Key, Epoch: l.Epoch})
		}
	}
	_, err = s.Apply(context.Background(), crashApp, actions)
	return err
}

// processT is the testing.TB of a worker process, which has none.
type processT struct{ testing.TB }

func (processT) Helper()        {}
func (processT) Cleanup(func()) {}
func (processT) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	os.Exit(1)
}

// confirmations are what all workers said, and what the file showed.
type confirmations struct {
	*testing.T
	mu    sync.Mutex
	owner map[string]string // of a shard and epoch
	at    map[string]uint64 // the furthest confirmed position of a shard
	beats int
	beat  chan struct{} // there was one lately
}

// own notes who owned a shard at an epoch, which can only be one.
func (c *confirmations) own(shard string, epoch uint64, session string) {
	k := fmt.Sprintf("%s at epoch %d", shard, epoch)
	if was, ok := c.owner[k]; ok && was != session {
		c.Errorf("%s was owned by %s and %s", k, was, session)
	}
	c.owner[k] = session
}

func TestProcessesThatAreKilledAtAnyInstantHarmNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	s, db := open(t, path)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var actions []lease.Action
	for i := range crashLeases {
		l := lease.Lease{Key: key(strconv.Itoa(i)), Epoch: 1, Position: shard.Oldest}
		actions = append(actions, lease.Action{Kind: lease.Create, Lease: l})
	}
	if _, err := s.Apply(t.Context(), crashApp, actions); err != nil {
		t.Fatal(err)
	}

	c := &confirmations{T: t, owner: map[string]string{}, at: map[string]uint64{}, beat: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := time.Now()
	var workers sync.WaitGroup
	var kills atomic.Int32
	for w := range crashWorkers {
		workers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// The number is part of each position: no two processes have the same one.
				c.life(ctx, path, w+n*crashWorkers)
				if n := kills.Add(1); n >= crashKills || n >= crashWorkers && time.Since(begun) > crashTime {
					cancel()
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { workers.Wait(); close(done) }()

	// Meanwhile nothing that the file shows ever goes back.
	epochs, positions := map[string]uint64{}, map[string]uint64{}
	looks := 0
	look := func() {
		v, err := s.View(t.Context(), crashApp, "")
		if err != nil {
			t.Fatal(err)
		}
		looks++
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(v.Leases) != crashLeases {
			t.Errorf("%d leases", len(v.Leases))
		}
		for _, l := range v.Leases {
			position := uint64(0)
			if l.Position != shard.Oldest {
				if position, err = strconv.ParseUint(l.Position.String(), 10, 64); err != nil {
					t.Error(err)
				}
			}
			if l.Epoch < epochs[l.Shard] || position < positions[l.Shard] {
				t.Errorf("%s went back from epoch %d, position %d", l, epochs[l.Shard], positions[l.Shard])
			}
			epochs[l.Shard], positions[l.Shard] = l.Epoch, position
			if l.Owner != "" {
				c.own(l.Shard, l.Epoch, l.Owner)
			}
			if epoch := position / 1000 / 100_000; position > 0 {
				owner, known := c.owner[fmt.Sprintf("%s at epoch %d", l.Shard, epoch)]
				if epoch > l.Epoch || known && !strings.HasPrefix(owner, fmt.Sprintf("w%d-", position%1000)) {
					t.Errorf("%s: the position is of process %d at epoch %d, owned by %s", l, position%1000, epoch, owner)
				}
			}
		}
	}
	for running := true; running; look() {
		select {
		case <-done:
			running = false
		case <-c.beat:
		}
	}
	t.Logf("%d kills, %d confirmed beats, %d looks at the file", kills.Load(), c.beats, looks)
	look()
	for shard, at := range c.at {
		if positions[shard] < at {
			t.Errorf("shard %s stands at %d, but %d was confirmed", shard, positions[shard], at)
		}
	}
	if c.beats == 0 || len(c.at) == 0 {
		t.Errorf("too little happened: %d beats, %d leases with progress", c.beats, len(c.at))
	}
	if got := text(t, db, "PRAGMA integrity_check"); got != "ok" {
		t.Errorf("the file is damaged: %s", got)
	}
}

// life runs one worker process and kills it at a random instant after a random number of beats.
func (c *confirmations) life(ctx context.Context, path string, number int) {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), crashFile+"="+path, crashWorker+"="+strconv.Itoa(number))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		c.Error(err)
		return
	}
	if err := cmd.Start(); err != nil {
		c.Error(err)
		return
	}
	beats := 1 + rand.IntN(40)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // a line without an end was cut off
		}
		fields := strings.Fields(line)
		if len(fields) == 1 && fields[0] == "beat" {
			c.mu.Lock()
			c.beats++
			c.mu.Unlock()
			select {
			case c.beat <- struct{}{}:
			default:
			}
			if beats--; beats == 0 {
				time.AfterFunc(rand.N(5*time.Millisecond), func() { _ = cmd.Process.Kill() })
			}
			continue
		}
		if len(fields) != 5 {
			c.Errorf("process %d says %q", number, line)
			continue
		}
		epoch, _ := strconv.ParseUint(fields[2], 10, 64)
		at, _ := strconv.ParseUint(fields[3], 10, 64)
		c.mu.Lock()
		c.own(fields[1], epoch, fields[4])
		c.at[fields[1]] = max(c.at[fields[1]], at)
		c.mu.Unlock()
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		c.Errorf("process %d ended by itself: %v %s", number, err, stderr.String())
	}
}
