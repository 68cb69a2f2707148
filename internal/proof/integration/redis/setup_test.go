package redis_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/redisstore"
)

func TestSetupErrorsSayWhatToDo(t *testing.T) {
	d := servers.Redis(t)
	admin := client(t, d.Addr)
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T) *redis.Client
		want    string
	}{
		{"a server that evicts", func(t *testing.T) *redis.Client {
			say(t, admin, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
			t.Cleanup(func() { admin.Do(context.Background(), "CONFIG", "SET", "maxmemory-policy", "noeviction") })
			return client(t, d.Addr)
		}, "set it to noeviction"},
		{"keys of somebody else", func(t *testing.T) *redis.Client {
			say(t, admin, "SET", "weir:{app}:app", "mine")
			t.Cleanup(func() { admin.Do(context.Background(), "DEL", "weir:{app}:app") })
			return client(t, d.Addr)
		}, "another Options.Prefix"},
		{"a user that may not", func(t *testing.T) *redis.Client {
			say(t, admin, "ACL", "SETUSER", "reader", "on", ">secret", "~*", "+get")
			c := redis.NewClient(&redis.Options{Addr: d.Addr, Username: "reader", Password: "secret", ContextTimeoutEnabled: true})
			t.Cleanup(func() { c.Close() })
			return c
		}, "the user may not do this"},
		{"a wrong password", func(t *testing.T) *redis.Client {
			c := redis.NewClient(&redis.Options{Addr: d.Addr, Username: "reader", Password: "guess", ContextTimeoutEnabled: true})
			t.Cleanup(func() { c.Close() })
			return c
		}, "does not take the user and password"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := redisstore.New(c.prepare(t), redisstore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for name, call := range map[string]func() error{
				"Heartbeat": func() error {
					_, err := s.Heartbeat(t.Context(), "app", lease.Report{Session: "a", First: true})
					return err
				},
				"View":  func() error { _, err := s.View(t.Context(), "app", ""); return err },
				"Apply": func() error { _, err := s.Apply(t.Context(), "app", []lease.Action{create("1")}); return err },
				"Lead":  func() error { _, err := s.Lead(t.Context(), "app", "a", 0); return err },
				"Leave": func() error { return s.Leave(t.Context(), "app", lease.Report{Session: "a"}) },
			} {
				if err := call(); !errors.Is(err, lease.ErrSetup) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s = %v, want ErrSetup with %q", name, err, c.want)
				}
			}
		})
	}
}

func TestWarningsSayWhatCouldBeLost(t *testing.T) {
	kept, forgetful := servers.Redis(t), servers.Redis(t, "--appendonly", "no")
	for addr, want := range map[string]string{kept.Addr: "", forgetful.Addr: "appendonly is no"} {
		got, err := open(t, addr, redisstore.Options{}).Warnings(t.Context())
		if err != nil || !strings.HasPrefix(strings.Join(got, "; "), want) || (want == "") != (len(got) == 0) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	replicate(t, kept, forgetful)
	for replicas, want := range map[int]string{0: "Options.Replicas", 1: ""} {
		got, err := open(t, kept.Addr, redisstore.Options{Replicas: replicas}).Warnings(t.Context())
		if err != nil || !strings.HasSuffix(strings.Join(got, "; "), want) || (want == "") != (len(got) == 0) {
			t.Errorf("with replicas and Options.Replicas=%d: %q, %v", replicas, got, err)
		}
	}
}

func TestKeysOfAnApplicationShareOneSlot(t *testing.T) {
	d := servers.Redis(t)
	admin := client(t, d.Addr)
	s := open(t, d.Addr, redisstore.Options{Prefix: "w*[:"})
	apps := []string{"app", "app}", "{app", "a{b}c", "", "a*", "ä b"}
	for _, app := range apps {
		if app == "" {
			continue
		}
		if _, err := s.Heartbeat(t.Context(), app, lease.Report{Session: "a", First: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Apply(t.Context(), app, []lease.Action{create("1"), assign("1", 1, "a"), {Kind: lease.Pause, Stream: "x", On: true}}); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := admin.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 5*(len(apps)-1) {
		t.Fatalf("keys %q, %v", keys, err)
	}
	slots := map[string]map[string]bool{}
	for _, key := range keys {
		_, rest, _ := strings.Cut(key, "{")
		tag, _, _ := strings.Cut(rest, "}")
		if slots[tag] == nil {
			slots[tag] = map[string]bool{}
		}
		slots[tag][key] = true
	}
	if len(slots) != len(apps)-1 {
		t.Errorf("tags %v", slots)
	}
	got, err := s.Apps(t.Context())
	want := slices.DeleteFunc(slices.Sorted(slices.Values(apps)), func(s string) bool { return s == "" })
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Apps = %q, %v, want %q", got, err, want)
	}
	if other, err := open(t, d.Addr, redisstore.Options{}).Apps(t.Context()); err != nil || len(other) != 0 {
		t.Errorf("under another prefix: %q, %v", other, err)
	}
}

func TestValuesOfOthersAreNamed(t *testing.T) {
	d := servers.Redis(t)
	admin := client(t, d.Addr)
	for _, c := range []struct{ key, field, value, want string }{
		{"leases", "orders\x001", `{}`, "orders/1"},
		{"leases", "orders\x001", `{"f":"{}","e":"-1"}`, "orders/1"},
		{"leases", "nonsense", `{}`, "nonsense"},
		{"sessions", "a", `{"b":"many","e":"0","d":"0","x":"{}"}`, `"a"`},
		{"sessions", "a", `7`, `"a"`},
	} {
		t.Run(c.value, func(t *testing.T) {
			say(t, admin, "FLUSHALL")
			s := open(t, d.Addr, redisstore.Options{})
			scene(t, s)
			say(t, admin, "HSET", "weir:{app}:"+c.key, c.field, c.value)
			if c.key == "sessions" && c.value == "7" {
				say(t, admin, "HSET", "weir:{app}:app", "leader", "")
			}
			if v, err := s.View(t.Context(), "app", ""); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("View = %+v, %v, want an error that names %s", v, err, c.want)
			}
		})
	}
}

func TestANewerFormatIsRefused(t *testing.T) {
	d := servers.Redis(t)
	s := open(t, d.Addr, redisstore.Options{})
	scene(t, s)
	say(t, client(t, d.Addr), "HSET", "weir:{app}:app", "format", "2")
	_, seen := s.View(t.Context(), "app", "")
	_, beaten := s.Heartbeat(t.Context(), "app", lease.Report{Session: "new", First: true})
	for what, err := range map[string]error{"View": seen, "Heartbeat": beaten} {
		if !errors.Is(err, lease.ErrFormat) || !errors.Is(err, lease.ErrSetup) || !strings.Contains(err.Error(), "format 2") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestEpochsCountWhereNumbersOfScriptsAreNotExact(t *testing.T) {
	s := open(t, servers.Redis(t).Addr, redisstore.Options{})
	for _, epoch := range []uint64{0, 9, 999_999_999_999_999, 1_000_000_000_000_000, 1_999_999_999_999_999, 9_007_199_254_740_993,
		99_999_999_999_999_999, 999_999_999_999_999_999, 9_223_372_036_854_775_806} {
		l := lease.Lease{Key: key(fmt.Sprint(epoch)), Epoch: epoch, Position: shard.Oldest}
		apply(t, s, lease.Action{Kind: lease.Create, Lease: l}, lease.Action{Kind: lease.Assign, Key: l.Key, Epoch: epoch, Session: "a"})
		held := beat(t, s, lease.Report{Session: "a", First: true}).Held
		i := slices.IndexFunc(held, func(h lease.Lease) bool { return h.Key == l.Key })
		if i < 0 || held[i].Epoch != epoch+1 {
			t.Errorf("after epoch %d: %v", epoch, held)
		}
	}
}
