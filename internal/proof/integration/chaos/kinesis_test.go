package main

import (
	"fmt"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
)

func TestWhoSubscribes(t *testing.T) {
	for _, c := range []struct{ wish, want string }{
		{byPolling, "[off off off]"},
		{byFanOut, "[register register register]"},
		{byBoth, "[register off register]"},
	} {
		s := &stage{}
		var all []weir.FanOutMode
		for n := range 3 {
			w := &slot{reading: readingOf(c.wish, n+1), life: &life{name: fmt.Sprint("w", n+1)}}
			all, s.slots = append(all, w.reading), append(s.slots, w)
		}
		if got := fmt.Sprint(all); got != c.want {
			t.Errorf("%s: %s", c.wish, got)
		}
		for n, w := range s.slots {
			if got, want := s.pushed([]string{w.life.name}), w.reading == weir.FanOutRegister; got != want {
				t.Errorf("%s: worker %d: fan-out is %t", c.wish, n+1, got)
			}
		}
		if got, want := s.pushed(nil), c.wish != byPolling; got != want {
			t.Errorf("%s: fan-out is %t for all", c.wish, got)
		}
	}
}

func TestWhichCallsFail(t *testing.T) {
	const get, sub, list = "GetRecords", "SubscribeToShard", "ListShards"
	for _, c := range []struct {
		how, action string
		fails       bool
	}{
		{"", get, false},
		{"", sub, false},
		{throttled, get, true},
		{throttled, sub, true},
		{throttled, list, false},
		{failing, get, true},
		{failing, sub, true},
		{failing, list, true},
		{lost, get, true},
		{lost, sub, true},
		{torn, get, true},
		{torn, sub, true},
		{torn, list, false},
	} {
		u := newUnwell()
		u.fail(c.how, 1)
		f := u.call(&kinesistest.Call{Action: c.action, Shard: "shardId-000000000001", Proto: "HTTP/2.0"})
		if fails := f.Err != nil || f.LoseAnswer || f.CutAfter > 0; fails != c.fails {
			t.Errorf("%s: %s: %+v", c.how, c.action, f)
		}
		u.fail("", 0)
		if f := u.call(&kinesistest.Call{Action: c.action}); f.Err != nil || f.LoseAnswer || f.CutAfter > 0 {
			t.Errorf("%s: %s afterwards: %+v", c.how, c.action, f)
		}
	}
}

func TestSubscriptionsEndInPartsOfTheShards(t *testing.T) {
	u := newUnwell()
	const shards = 6
	ask := func() (all [shards]kinesistest.SubscriptionFault) {
		for n := range all {
			all[n] = u.call(&kinesistest.Call{Action: "SubscribeToShard", Shard: fmt.Sprintf("shardId-%012d", n), Proto: "HTTP/2.0"}).Subscription
		}
		return all
	}
	over := func(f kinesistest.SubscriptionFault) bool {
		select {
		case <-f.Trigger:
			return true
		default:
			return false
		}
	}
	before := ask()
	u.end(exception)
	after := ask()
	for n := range before {
		if got, want := over(before[n]), n%4 == 1; got != want {
			t.Errorf("shard %d: its subscription ends: %t", n, got)
		}
		if over(after[n]) {
			t.Errorf("shard %d: its next subscription ends too", n)
		}
		f := before[n]
		if got := [...]bool{f.CutEvent, f.Exception != nil, f.End, f.HalfOpen}; !got[n%4] || f.Events > 0 {
			t.Errorf("shard %d: %+v", n, f)
		}
	}
	if f := u.call(&kinesistest.Call{Action: "SubscribeToShard", Shard: "else", Proto: "HTTP/1.1"}); f.Subscription != (kinesistest.SubscriptionFault{}) {
		t.Errorf("a shard without a number: %+v", f)
	}
	if subscribed, outdated := u.counted(); subscribed != 2*shards || outdated != 1 {
		t.Errorf("%d subscriptions over HTTP/2, %d over something else", subscribed, outdated)
	}
}
