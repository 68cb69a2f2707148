package redisstore

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/lease"
)

var (
	//go:embed lua/common.lua
	common string
	//go:embed lua/beat.lua
	beat string
	//go:embed lua/view.lua
	view string
	//go:embed lua/apply.lua
	apply string
	//go:embed lua/lead.lua
	lead string
	//go:embed lua/leave.lua
	leave string

	beatScript  = redis.NewScript(common + beat)
	viewScript  = redis.NewScript(common + view)
	applyScript = redis.NewScript(common + apply)
	leadScript  = redis.NewScript(common + lead)
	leaveScript = redis.NewScript(common + leave)
)

// run runs a script on an application and returns its answer as a list.
func (s *Store) run(ctx context.Context, script *redis.Script, app string, args ...any) ([]any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := lease.CheckApp(app); err != nil {
		return nil, err
	}
	keys := s.keys(app)
	args = append([]any{rand.Text()[:16]}, args...)
	var answer any
	err := s.lend(ctx, func() (err error) {
		if err := s.check(ctx, app); err != nil {
			return err
		}
		if s.options.Replicas == 0 || script == viewScript {
			answer, err = script.Run(ctx, s.client, keys, args...).Result()
		} else {
			answer, err = s.runAndWait(ctx, script, keys, args)
		}
		return explain(ctx, err)
	})
	if err != nil {
		return nil, err
	}
	if list, ok := answer.([]any); ok {
		return list, nil
	}
	return []any{answer}, nil
}

// runAndWait runs a script and waits until the replicas have its writes. It takes one round trip if
// the server knows the script.
func (s *Store) runAndWait(ctx context.Context, script *redis.Script, keys []string, args []any) (any, error) {
	node, err := s.node(ctx, keys[0])
	if err != nil {
		return nil, err
	}
	both := func(run func(redis.Scripter) *redis.Cmd) (any, error) {
		var answer *redis.Cmd
		var reached *redis.Cmd
		_, err := node.Pipelined(ctx, func(p redis.Pipeliner) error {
			answer = run(p)
			reached = p.Do(ctx, "WAIT", s.options.Replicas, s.options.ReplicaTimeout.Milliseconds())
			return nil
		})
		if answer.Err() != nil || err != nil {
			return nil, errors.Join(answer.Err(), err)
		}
		if n, err := reached.Int64(); err != nil {
			return nil, err
		} else if n < int64(s.options.Replicas) {
			return nil, fmt.Errorf("%d replicas have the write after %s, Options.Replicas wants %d", n, s.options.ReplicaTimeout,
				s.options.Replicas)
		}
		return answer.Val(), nil
	}
	answer, err := both(func(c redis.Scripter) *redis.Cmd { return script.EvalSha(ctx, c, keys, args...) })
	if redis.HasErrorPrefix(err, "NOSCRIPT") || err != nil && strings.Contains(err.Error(), "NOSCRIPT") {
		answer, err = both(func(c redis.Scripter) *redis.Cmd { return script.Eval(ctx, c, keys, args...) })
	}
	if cluster, ok := s.client.(*redis.ClusterClient); ok && err != nil {
		// The client notices the new master of a slot only when it routes a command itself. Without
		// this call, it would notice only after a minute.
		cluster.ReloadState(ctx)
	}
	return answer, err
}

// node returns the client of the server that stores a key. In a cluster, commands without a key go
// to any server.
func (s *Store) node(ctx context.Context, key string) (redis.Cmdable, error) {
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key)
	}
	return s.client, nil
}

// check verifies once that the server does not evict leases. If the settings cannot be read, it
// assumes that they are right.
func (s *Store) check(ctx context.Context, app string) error {
	if s.checked.Load() {
		return nil
	}
	node, err := s.node(ctx, s.key(app, parts[0]))
	if err != nil {
		return explain(ctx, err)
	}
	settings, err := node.ConfigGet(ctx, "maxmemory-policy").Result()
	if err != nil && !isReply(err) {
		return explain(ctx, err)
	}
	if policy := settings["maxmemory-policy"]; strings.HasPrefix(policy, "allkeys-") {
		return fmt.Errorf("%w: the Redis server may evict leases (its maxmemory-policy is %s): set it to noeviction", lease.ErrSetup, policy)
	}
	s.checked.Store(true)
	return nil
}

// Warnings returns one sentence for each server setting that could cause lost progress or a second
// owner of a lease. Print the sentences in commands and logs. Warnings covers only settings that
// the client may read.
func (s *Store) Warnings(ctx context.Context) ([]string, error) {
	node, err := s.node(ctx, s.key("warnings", parts[0]))
	if err != nil {
		return nil, explain(ctx, err)
	}
	var warnings []string
	settings, err := node.ConfigGet(ctx, "append*").Result()
	switch {
	case err == nil && settings["appendonly"] == "no":
		warnings = append(warnings, "appendonly is no: a restart goes back to the last snapshot, or to nothing; set it to yes")
	case err != nil && !isReply(err):
		return nil, explain(ctx, err)
	}
	info, err := node.Info(ctx, "server").Result()
	switch {
	case err != nil && !isReply(err):
		return nil, explain(ctx, err)
	case !strings.Contains(info, "run_id:"):
		warnings = append(warnings, "the server does not report its run_id: after a failover two workers may own a lease for the failover time")
	}
	replication, err := node.Info(ctx, "replication").Result()
	if err == nil && s.options.Replicas == 0 && strings.Contains(replication, "connected_slaves:") && !strings.Contains(replication, "connected_slaves:0") {
		warnings = append(warnings, "the server has replicas and writes do not wait for them: if it is cut off from them but not from workers, "+
			"two workers may own a lease; set Options.Replicas")
	}
	return warnings, nil
}

// isReply reports whether the server answered. Errors from the server are answers too.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// argumentsOf is the text that precedes the quoted arguments in errors about unknown commands. The
// arguments of HELLO and AUTH contain the password, so the rest of the text must not be logged.
const argumentsOf = "with args beginning with:"

// discreet is an error whose text omits a part of the original text.
type discreet struct {
	text string
	err  error
}

func (d discreet) Error() string { return d.text }

func (d discreet) Unwrap() error { return d.err }

// explain converts an error of the client to an error of the contract.
func explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if before, _, quotes := strings.Cut(text, argumentsOf); quotes {
		err = discreet{before + argumentsOf + " …", err}
	}
	if _, format, newer := strings.Cut(text, "WEIRFORMAT "); newer && isReply(err) {
		return lease.NewerFormat(fmt.Sprintf("it has format %.20s, and this program knows formats up to %d", format, lease.Format))
	}
	for _, h := range [...]struct{ reply, what string }{
		{"NOAUTH", "the server wants a password: give the client one"},
		{"WRONGPASS", "the server does not take the user and password"},
		{"NOPERM", "the user may not do this: it needs evalsha, eval, info and all commands on keys of this prefix"},
		{"WRONGTYPE", "keys of these names belong to another program: choose another Options.Prefix"},
		{"DB index is out of range", "the server has no database with this number: choose another one"},
		{"cluster support disabled", "the server is not part of a cluster: use a client for one server"},
		{"unknown command 'sentinel'", "the server is not a sentinel: name the sentinels, or use a client for one server"},
		{"unknown command", "the server does not know scripts: Redis 6.2 or newer is needed"},
		{"DENIED Redis is running in protected mode", "the server refuses clients from other machines: see its protected-mode"},
	} {
		if isReply(err) && strings.Contains(text, h.reply) {
			return fmt.Errorf("%w: %s (%w)", lease.ErrSetup, h.what, err)
		}
	}
	if end := ctx.Err(); end != nil && !errors.Is(err, end) {
		return fmt.Errorf("redisstore: %w (%w)", end, err)
	}
	if isReply(err) && strings.HasPrefix(text, "OOM ") { // this may be temporary
		return fmt.Errorf("redisstore: the server has no memory left: raise its maxmemory (%w)", err)
	}
	return fmt.Errorf("redisstore: %w", err)
}
