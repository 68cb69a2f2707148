package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// slots is the number of slots in a cluster.
const slots = 16384

// RedisCluster is a cluster of Redis servers.
type RedisCluster struct {
	Masters  []*Database // masters at the start
	Replicas []*Database // Replicas[i] follows Masters[i]; may be empty
}

// NewRedisCluster starts a cluster. The masters share all slots. If replicated is true, each has a
// replica. timeout is how long a server may be silent before the others declare it dead.
func NewRedisCluster(t testing.TB, start RedisKind, masters int, replicated bool, timeout time.Duration, settings ...string) *RedisCluster {
	t.Helper()
	settings = append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", strconv.FormatInt(timeout.Milliseconds(), 10),
		"--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no"}, settings...)
	c := &RedisCluster{}
	for i := range masters {
		m := start(t, settings...)
		m.ask("CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1)
		m.ask("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		c.Masters = append(c.Masters, m)
	}
	if replicated {
		for range masters {
			c.Replicas = append(c.Replicas, start(t, settings...))
		}
	}
	all := c.Servers()
	for _, d := range all[1:] {
		bus := strings.Split(strings.Fields(d.ask("CLUSTER", "NODES").(string))[1], "@")[1]
		all[0].ask("CLUSTER", "MEET", "127.0.0.1", d.Port(), strings.Split(bus, ",")[0])
	}
	together := func(info string) bool {
		return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", len(all)))
	}
	for _, d := range all {
		d.until("in the cluster", together, "CLUSTER", "INFO")
	}
	for i, r := range c.Replicas {
		r.ask("CLUSTER", "REPLICATE", c.Masters[i].ask("CLUSTER", "MYID"))
	}
	c.Settle()
	return c
}

// Servers returns all servers.
func (c *RedisCluster) Servers() []*Database {
	return append(append([]*Database{}, c.Masters...), c.Replicas...)
}

// Addrs returns the addresses of all servers.
func (c *RedisCluster) Addrs() []string { return addrs(c.Servers()) }

func addrs(all []*Database) []string {
	var addrs []string
	for _, d := range all {
		addrs = append(addrs, d.Addr)
	}
	return addrs
}

// Settle waits until the cluster is complete: every slot has a master, and every replica has all
// data of its master.
func (c *RedisCluster) Settle() {
	for _, d := range c.Servers() {
		d.until("whole", func(info string) bool { return strings.Contains(info, "cluster_state:ok") }, "CLUSTER", "INFO")
		d.until("in step", c.inStep, "INFO", "replication")
	}
}

// inStep checks what a server reports about replication.
func (c *RedisCluster) inStep(info string) bool {
	if strings.Contains(info, "role:master") {
		return len(c.Replicas) == 0 || strings.Contains(info, "state=online")
	}
	return strings.Contains(info, "master_link_status:up")
}

// Owner returns the master of a key's slot, as the cluster reports it.
func (c *RedisCluster) Owner(key string) *Database {
	for _, d := range c.Servers() {
		d.t.Helper()
		if d.process.Load() == nil {
			continue
		}
		slot := d.ask("CLUSTER", "KEYSLOT", key).(int64)
		for _, some := range d.ask("CLUSTER", "SLOTS").([]any) {
			some := some.([]any)
			if some[0].(int64) <= slot && slot <= some[1].(int64) {
				port := fmt.Sprint(some[2].([]any)[1])
				for _, d := range c.Servers() {
					if d.Port() == port {
						return d
					}
				}
			}
		}
		d.t.Fatalf("slot %d has no master", slot)
	}
	return nil
}

// Failover kills the master of a key and waits until its replica has taken over. It then restarts
// the killed server as a replica.
func (c *RedisCluster) Failover(key string) {
	old, other := c.Owner(key), (*Database)(nil)
	for i, m := range c.Masters {
		switch old {
		case m:
			other = c.Replicas[i]
		case c.Replicas[i]:
			other = m
		}
	}
	old.Kill()
	other.until("master", func(info string) bool { return strings.Contains(info, "role:master") }, "INFO", "replication")
	old.Start()
	c.Settle()
}

// Move moves the slot of a key to another master, with all its keys. It calls meanwhile at each
// step.
func (c *RedisCluster) Move(key string, to *Database, meanwhile func(step string)) {
	from := c.Owner(key)
	slot := from.ask("CLUSTER", "KEYSLOT", key)
	fromID, toID := from.ask("CLUSTER", "MYID"), to.ask("CLUSTER", "MYID")
	to.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
	from.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
	meanwhile("nothing has moved")
	for {
		keys := from.ask("CLUSTER", "GETKEYSINSLOT", slot, 1).([]any)
		if len(keys) == 0 {
			break
		}
		from.ask("MIGRATE", "127.0.0.1", to.Port(), keys[0], 0, 5000)
		meanwhile(fmt.Sprintf("%v has moved", keys[0]))
	}
	to.ask("CLUSTER", "SETSLOT", slot, "NODE", toID)
	meanwhile("the new master knows")
	from.ask("CLUSTER", "SETSLOT", slot, "NODE", toID)
}

// RedisSentinels contains the sentinels that watch a primary and its replica. If the primary fails,
// they promote the replica.
type RedisSentinels struct {
	Name      string // name of the watched group
	Sentinels []*Database
	both      []*Database
}

// NewRedisSentinels starts a primary, its replica, and three sentinels. The sentinels declare a
// server dead after it was silent for the given time.
func NewRedisSentinels(t testing.TB, start RedisKind, silent time.Duration, settings ...string) *RedisSentinels {
	t.Helper()
	s := &RedisSentinels{Name: "weir", both: []*Database{start(t, settings...), start(t, settings...)}}
	primary, replica := s.both[0], s.both[1]
	replica.ask("REPLICAOF", "127.0.0.1", primary.Port())
	s.Settle()
	for range 3 {
		s.Sentinels = append(s.Sentinels, sentinel(t, primary, s.Name, silent))
	}
	for _, d := range s.Sentinels {
		d.until("aware of all", func(said string) bool {
			return strings.Contains(said, "num-slaves 1 ") && strings.Contains(said, "num-other-sentinels 2 ")
		}, "SENTINEL", "MASTER", s.Name)
	}
	return s
}

// sentinel starts a server as a sentinel.
func sentinel(t testing.TB, watched *Database, name string, silent time.Duration) *Database {
	d := newDatabase(t, "Sentinel", false)
	like := watched.command()
	d.command = func() *exec.Cmd {
		program := like.Args[:slices.Index(like.Args, "--bind")]
		config := filepath.Join(d.Dir, "sentinel-"+d.Port()+".conf") // the sentinel writes to this file
		if _, err := os.Stat(config); err != nil {
			text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor %s 127.0.0.1 %s 2\nsentinel down-after-milliseconds %s %d\n"+
				"sentinel failover-timeout %s 5000\n", d.Port(), d.Dir, name, watched.Port(), name, silent.Milliseconds(), name)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(program[0], slices.Concat(program[1:], []string{config, "--sentinel"})...)
		cmd.Env = like.Env
		return cmd
	}
	d.ready = readyRedis(d)
	d.boot()
	return d
}

// Addrs returns the addresses of the sentinels.
func (s *RedisSentinels) Addrs() []string { return addrs(s.Sentinels) }

// Primary returns the server that the sentinels report as the primary.
func (s *RedisSentinels) Primary() *Database {
	port := s.Sentinels[0].ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.Name).([]any)[1]
	for _, d := range s.both {
		if d.Port() == port {
			return d
		}
	}
	s.Sentinels[0].t.Fatalf("the primary is at port %v", port)
	return nil
}

// Other returns the other one of the two servers.
func (s *RedisSentinels) Other(d *Database) *Database {
	if d == s.both[0] {
		return s.both[1]
	}
	return s.both[0]
}

// Promoted waits until all sentinels report that a server was promoted.
func (s *RedisSentinels) Promoted(d *Database) {
	for _, sentinel := range s.Sentinels {
		sentinel.until("of the new primary", func(said string) bool { return strings.Contains(said, d.Port()) },
			"SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.Name)
	}
}

// Failover kills the primary and waits until the replica is promoted. It then restarts the killed
// server as a replica.
func (s *RedisSentinels) Failover() {
	old := s.Primary()
	old.Kill()
	s.Promoted(s.Other(old))
	old.Start()
	s.Settle()
}

// Settle waits until one of the two servers follows the other.
func (s *RedisSentinels) Settle() {
	following := func(info string) bool {
		return strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up") ||
			strings.Contains(info, "role:master") && strings.Contains(info, "state=online")
	}
	for _, d := range s.both {
		d.until("in step", following, "INFO", "replication")
	}
}
