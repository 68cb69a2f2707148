package servers

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisKind starts a server with the Redis protocol. The server logs every write to a file before
// it answers. settings contains more settings in the form of its command line, for example
// "--appendonly", "no".
type RedisKind func(t testing.TB, settings ...string) *Database

// Redis starts a Redis server.
func Redis(t testing.TB, settings ...string) *Database {
	t.Helper()
	dir := fetched(t, "debian")
	return redisServer(t, "Redis", []string{program(t, dir, "usr/bin/redis-server", "usr/bin/valkey-server")}, environment(t, dir), settings)
}

// Valkey starts a Valkey server.
func Valkey(t testing.TB, settings ...string) *Database {
	t.Helper()
	return redisServer(t, "Valkey", released(t, fetched(t, "valkey"), "usr/bin/valkey-server"), nil, settings)
}

func redisServer(t testing.TB, name string, server, env, settings []string) *Database {
	t.Helper()
	d := newDatabase(t, name, false)
	bus, busOf := "", ""
	d.command = func() *exec.Cmd {
		if busOf != d.Addr { // the first start on this port
			bus, busOf = portOf(freeAddr(t)), d.Addr
		}
		args := slices.Concat(server, []string{"--bind", "127.0.0.1", "--port", d.Port(), "--dir", d.Dir, "--save", "",
			"--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"}, settings)
		if slices.Contains(settings, "--cluster-enabled") {
			args = append(args, "--cluster-port", bus)
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = env
		return cmd
	}
	d.ready = readyRedis(d)
	d.boot()
	return d
}

// readyRedis returns a function that checks whether a server answers.
func readyRedis(d *Database) func(context.Context) error {
	return func(ctx context.Context) error {
		c := redisClient(d.Addr)
		defer c.Close()
		return c.Ping(ctx).Err()
	}
}

func redisClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, ContextTimeoutEnabled: true, MaxRetries: -1})
}

// ask sends a command that must succeed, and returns the answer.
func (d *Database) ask(command ...any) any {
	d.t.Helper()
	c := redisClient(d.Addr)
	defer c.Close()
	answer, err := c.Do(d.t.Context(), command...).Result()
	if err != nil {
		d.t.Fatalf("%s: %v: %v", d.Name, command, err)
	}
	return answer
}

// until repeats a command until its answer satisfies a condition. The condition receives the answer
// as text.
func (d *Database) until(what string, satisfies func(string) bool, command ...any) {
	d.t.Helper()
	every := time.NewTicker(healthEvery)
	defer every.Stop()
	ctx, cancel := context.WithTimeout(d.t.Context(), startWithin)
	defer cancel()
	c := redisClient(d.Addr)
	defer c.Close()
	for {
		answer, err := c.Do(ctx, command...).Result()
		if err == nil && satisfies(fmt.Sprint(answer)) {
			return
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			d.t.Fatalf("%s: after %s not yet %s: %v, %v", d.Name, startWithin, what, answer, err)
		}
	}
}
