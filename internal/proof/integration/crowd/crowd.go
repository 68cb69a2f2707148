// Package crowd runs many processes that use one store concurrently. It kills the processes at
// random times, and disturbs the server of the store in the meantime. Then it checks what the
// processes observed. No lease may have two owners at the same epoch, no confirmed data may be
// lost, and no value may go back.
package crowd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
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
	workers = 4
	kills   = 40
	bound   = 6 * time.Second // after this time, a few kills are enough
	jump    = 1 << 20         // jump of epochs with which a store signals a possible loss of data
)

// Run tests a store, which must be empty and set up. place is the address of the store for the
// processes. The disturb functions run one after the other while the processes work. Without
// disturb functions, no call of the processes may fail.
func Run(t *testing.T, s lease.Store, place string, disturb ...func()) {
	run(t, s, place, []string{os.Args[0]}, disturb...)
}

// Mixed tests a store like Run, without disturb functions. Half of the processes run the program
// older: the same test in an older version of weir.
func Mixed(t *testing.T, s lease.Store, place, older string) {
	run(t, s, place, []string{os.Args[0], older})
}

func run(t *testing.T, s lease.Store, place string, programs []string, disturb ...func()) {
	var actions []lease.Action
	for i := range leases {
		l := lease.Lease{Key: lease.Key{Stream: "orders", Shard: strconv.Itoa(i)}, Epoch: 1, Position: shard.Oldest}
		actions = append(actions, lease.Action{Kind: lease.Create, Lease: l})
	}
	if _, err := s.Apply(t.Context(), app, actions); err != nil {
		t.Fatal(err)
	}

	c := &confirmations{
		T: t, programs: programs, owner: map[string]string{}, at: map[string]uint64{}, beat: make(chan struct{}, 1), steady: len(disturb) == 0,
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := time.Now()
	var all sync.WaitGroup
	var killed, disturbed atomic.Int32
	var server sync.Mutex
	for w := range workers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// The number is part of each position, so no two processes write the same position.
				c.life(ctx, place, w+n*workers)
				n := killed.Add(1)
				if d := int(disturbed.Load()); d < len(disturb) && int(n) > (d+1)*kills/(len(disturb)+2) && server.TryLock() {
					if d == int(disturbed.Load()) {
						disturb[d]()
						disturbed.Add(1)
					}
					server.Unlock()
				}
				enough := n >= kills || n >= workers && time.Since(begun) > bound
				if enough && int(disturbed.Load()) == len(disturb) {
					cancel()
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()

	// In the meantime, no value in the store may go back.
	seen := &sights{confirmations: c, epochs: map[string]uint64{}, positions: map[string]uint64{}}
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-c.beat:
		}
		seen.look(s)
	}
	t.Logf("%d kills, %d disturbances, %d confirmed heartbeats, %d looks", killed.Load(), disturbed.Load(), c.beats, seen.looks)
	for shard, at := range c.at {
		if seen.positions[shard] < at {
			t.Errorf("shard %s stands at %d, but %d was confirmed", shard, seen.positions[shard], at)
		}
	}
	if c.beats == 0 || len(c.at) == 0 {
		t.Errorf("too little happened: %d heartbeats, %d leases with progress", c.beats, len(c.at))
	}
}

// confirmations contains the reports of all workers, and what was seen in the store.
type confirmations struct {
	*testing.T
	mu    sync.Mutex
	owner map[string]string // owner by shard and epoch
	at    map[string]uint64 // the furthest confirmed position of each shard
	beats int
	beat  chan struct{} // signals a recent heartbeat

	programs []string // programs of the processes, in turn
	steady   bool     // the server is not disturbed
}

// own records the owner of a shard at an epoch. There must be only one owner at each epoch, with
// one exception. After a failover of Redis, a lease has no owner for a while. The store then shows
// a placeholder name, and the old server and the new one use different placeholders.
func (c *confirmations) own(shard string, epoch uint64, session string) {
	k := fmt.Sprintf("%s at epoch %d", shard, epoch)
	nobody := strings.HasPrefix(c.owner[k], "lost:") && strings.HasPrefix(session, "lost:")
	if was, ok := c.owner[k]; ok && was != session && !nobody {
		c.Errorf("%s was owned by %s and %s", k, was, session)
	}
	c.owner[k] = session
}

// sights contains the values that were seen in the store.
type sights struct {
	*confirmations
	epochs, positions map[string]uint64
	looks             int
}

func (s *sights) look(store lease.Store) {
	s.mu.Lock()
	confirmed := maps.Clone(s.at)
	s.mu.Unlock()
	var v lease.View
	if err := insisting(s.steady)("View", func(ctx context.Context) (err error) { v, err = store.View(ctx, app, ""); return err }); err != nil {
		s.Fatal(err)
	}
	s.looks++
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(v.Leases) != leases {
		s.Errorf("%d leases", len(v.Leases))
	}
	for _, l := range v.Leases {
		at, err := uint64(0), error(nil)
		if l.Position != shard.Oldest {
			if at, err = strconv.ParseUint(l.Position.String(), 10, 64); err != nil {
				s.Error(err)
			}
		}
		// A view may show data that a failover then loses. Confirmed data must not be lost.
		failedOver := l.Epoch >= s.epochs[l.Shard]+jump
		if l.Epoch < s.epochs[l.Shard] || at < s.positions[l.Shard] && !failedOver {
			s.Errorf("%s went back from epoch %d, position %d", l, s.epochs[l.Shard], s.positions[l.Shard])
		}
		if at < confirmed[l.Shard] {
			s.Errorf("%s: position %d was confirmed before", l, confirmed[l.Shard])
		}
		s.epochs[l.Shard], s.positions[l.Shard] = l.Epoch, at
		if l.Owner != "" {
			s.own(l.Shard, l.Epoch, l.Owner)
		}
		if epoch := at / 1000 / 100_000; at > 0 {
			owner, known := s.owner[fmt.Sprintf("%s at epoch %d", l.Shard, epoch)]
			if epoch > l.Epoch || known && !strings.HasPrefix(owner, fmt.Sprintf("w%d-", at%1000)) {
				s.Errorf("%s: the position is of process %d at epoch %d, owned by %s", l, at%1000, epoch, owner)
			}
		}
	}
}

// life runs one worker process. It kills the process at a random time after a random number of
// heartbeats.
func (c *confirmations) life(ctx context.Context, place string, number int) {
	cmd := exec.CommandContext(ctx, c.programs[number%len(c.programs)])
	cmd.Env = append(os.Environ(), placeVariable+"="+place, numberVariable+"="+strconv.Itoa(number))
	if c.steady {
		cmd.Env = append(cmd.Env, steadyVariable+"=1")
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		c.Error(err)
		return
	}
	if err := cmd.Start(); err != nil {
		if ctx.Err() == nil { // otherwise another process has ended the test
			c.Error(err)
		}
		return
	}
	beats := 1 + rand.IntN(40)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // an incomplete line was cut off
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
