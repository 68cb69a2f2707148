package redisstore

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestNewRefusesWhatMakesNoSense(t *testing.T) {
	good := redis.NewClient(&redis.Options{ContextTimeoutEnabled: true})
	defer good.Close()
	deaf := redis.NewClient(&redis.Options{})
	defer deaf.Close()
	deafCluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer deafCluster.Close()
	for _, c := range []struct {
		client redis.UniversalClient
		o      Options
		want   []string
	}{
		{nil, Options{}, []string{"client is nil"}},
		{deaf, Options{}, []string{"ContextTimeoutEnabled"}},
		{deafCluster, Options{}, []string{"ContextTimeoutEnabled"}},
		{good, Options{Prefix: "a{b"}, []string{"Prefix"}},
		{good, Options{Prefix: strings.Repeat("p", 101)}, []string{"Prefix"}},
		{good, Options{Replicas: -1}, []string{"Replicas"}},
		{deaf, Options{Prefix: "}", ReplicaTimeout: -time.Second}, []string{"ContextTimeoutEnabled", "Prefix", "ReplicaTimeout"}},
	} {
		_, err := New(c.client, c.o)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("New(%+v) = %v, want an error with %q", c.o, err, want)
			}
		}
	}
	if s, err := New(good, Options{}); err != nil || s.key("a{b}*", "app") != "weir:{a%7Bb%7D%2A}:app" {
		t.Errorf("New = %v, %v", s, err)
	}
}

func TestLeasesAreReadAsTheyWereWritten(t *testing.T) {
	k := lease.Key{Stream: "s", Shard: "shardId-000000000001"}
	long, err := shard.Part(strings.Repeat("9", 129), 12)
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]lease.Lease{
		"the least": {Key: k},
		"all of it": {Key: k, Parents: []string{"a", `b"'\`}, Range: shard.HashRange{Start: shard.HashKey{Lo: 7}, End: shard.MaxHashKey}, Epoch: math.MaxInt64,
			Owner: "o", Heir: lease.Nobody, Revoked: "r", Last: "l", Shunned: "u", Position: long, Load: lease.MaxLoad, Born: math.MaxInt64},
		"a time": {Key: k, Position: shard.At(time.UnixMilli(-1))},
		"an end": {Key: k, Position: shard.End},
	} {
		s, err := encodeLease(l)
		if err != nil {
			t.Fatal(err)
		}
		text, err := marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decodeLease(k.Stream+"\x00"+k.Shard, text); err != nil || !reflect.DeepEqual(back, l) {
			t.Errorf("%s: %s = %+v, %v", name, text, back, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("s\x001", `{"f":"{\"start\":\"0\",\"end\":\"7\"}","e":"3","o":"a","p":"17+3","k":"4:002:17:0000000003","w":"3","b":"0"}`)
	f.Add("s\x00", `{"b":"1","e":"0","d":"1","x":"{\"weight\":2,\"troubles\":[{\"why\":\"\"}]}"}`)
	f.Add("s", `{"b":"1","e":"0","d":"0","t":"1s/5s/30s","x":"{}"}`)
	f.Add("", `[]`)
	// The following rows have an invalid value.
	f.Add("s", `{"b":"1","e":"0","d":"0","t":"1s/5s/30s","x":"{\"weight\":-1}"}`)
	f.Add("s", `{"b":"1","e":"0","d":"0","t":"1s/5s/30s","x":"{\"max\":-1}"}`)
	f.Fuzz(func(t *testing.T, field, value string) {
		if l, err := decodeLease(field, value); err == nil {
			s, err := encodeLease(l)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := decodeLease(field, string(text)); err != nil || !reflect.DeepEqual(back, l) {
				t.Errorf("%+v became %+v, %v", l, back, err)
			}
		} else if !reflect.DeepEqual(l, lease.Lease{}) {
			t.Errorf("an error and a lease: %v", l)
		}
		if w, err := decodeSession(field, value); err != nil && w.Session != "" {
			t.Errorf("an error and a worker: %v", w)
		} else if err == nil && (!(w.Weight > 0) || w.MaxLeases < 0 || w.Times != (lease.Times{}) && w.Times.Failover < w.Times.Heartbeat) {
			t.Errorf("%q is read as %+v", value, w)
		}
		d := decoder{values: []any{field, value, int64(3), nil, []any{value}}}
		d.leader()
		d.number()
		d.texts()
		d.leases()
		if d.err == nil {
			t.Error("an answer of nonsense is no error")
		}
	})
}

func TestTimesOfASession(t *testing.T) {
	for times, want := range map[string]lease.Times{`"1s/5s/30s"`: lease.DefaultTimes, `""`: {}, `null`: {}} {
		w, err := decodeSession("a", `{"b":"1","e":"0","d":"0","t":`+times+`,"x":"{}"}`)
		if err != nil || w.Times != want {
			t.Errorf("%s is read as %+v, %v", times, w, err)
		}
	}
	for _, times := range []string{`"1s"`, `"1s/0s/30s"`, `5`} {
		if w, err := decodeSession("a", `{"b":"1","e":"0","d":"0","t":`+times+`,"x":"{}"}`); err == nil || w.Session != "" {
			t.Errorf("%s is read as %+v, %v", times, w, err)
		}
	}
}

func TestAnAnswerThatIsShortIsAnError(t *testing.T) {
	for n := range 3 {
		d := decoder{values: make([]any, n)}
		d.leader()
		if d.err == nil {
			t.Errorf("%d values are no error", n)
		}
	}
}
