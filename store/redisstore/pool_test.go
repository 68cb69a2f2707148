package redisstore

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// network connects a client with servers that answer 1 to every script after a delay. All existing
// connections can die silently. After that, written data is lost and nothing arrives.
type network struct {
	mu      sync.Mutex
	dead    chan struct{} // closed when the existing connections have died
	made    int
	servers sync.WaitGroup
}

func (n *network) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made++
	n.servers.Go(func() { serve(server) })
	return &mortal{client, n.dead}, nil
}

func (n *network) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.dead)
	n.dead = make(chan struct{})
}

func (n *network) dials() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.made
}

type mortal struct {
	net.Conn
	dead chan struct{}
}

func (c *mortal) Write(p []byte) (int, error) {
	select {
	case <-c.dead:
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}

const scriptTakes = 10 * time.Millisecond

func serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	number := func() int {
		line, _ := in.ReadString('\n')
		n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimLeft(line, "*$")))
		return n
	}
	for {
		command := ""
		for i := range number() {
			word := make([]byte, number()+2)
			_, _ = io.ReadFull(in, word)
			if i == 0 {
				command = strings.ToLower(strings.TrimSpace(string(word)))
			}
		}
		answer := "-ERR unknown command\r\n"
		switch command {
		case "":
			return
		case "ping":
			answer = "+PONG\r\n"
		case "evalsha":
			time.Sleep(scriptTakes)
			answer = ":1\r\n"
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

// However many connections of a pool have died, only one call is lost, and the next call takes
// slightly longer.
func TestConnectionsThatDiedCostOneCall(t *testing.T) {
	const together = 10
	synctest.Test(t, func(t *testing.T) {
		n := &network{dead: make(chan struct{})}
		defer n.servers.Wait()
		client := redis.NewClient(&redis.Options{
			Addr:   "127.0.0.1:6379", // a name would be looked up outside the bubble
			Dialer: n.dial, ContextTimeoutEnabled: true, ReadTimeout: time.Minute, PoolSize: 2 * together, DisableIdentity: true,
		})
		defer client.Close()
		s, err := New(client, Options{})
		if err != nil {
			t.Fatal(err)
		}
		call := func() (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			began := time.Now()
			_, err := s.run(ctx, leadScript, "app")
			return time.Since(began), err
		}
		var calls sync.WaitGroup
		for range together {
			calls.Go(func() {
				if _, err := call(); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if n.dials() != together || client.PoolStats().IdleConns != together {
			t.Fatalf("%d connections were made, %d are idle", n.dials(), client.PoolStats().IdleConns)
		}
		n.kill()
		if took, err := call(); !errors.Is(err, context.DeadlineExceeded) || took != 5*time.Second {
			t.Errorf("the call that finds out: %v, %v", took, err)
		}
		if took, err := call(); err != nil || took != lookWithin+scriptTakes {
			t.Errorf("the next call: %v, %v", took, err)
		}
		if took, err := call(); err != nil || took != scriptTakes {
			t.Errorf("the call after that: %v, %v", took, err)
		}
		if got := client.PoolStats().TotalConns; got != 1 {
			t.Errorf("%d connections, not 1", got)
		}
	})
}
