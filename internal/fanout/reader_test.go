package fanout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// fanned is a shard of an embedded Kinesis in a bubble. It also collects the reports of its Reader.
type fanned struct {
	t      *testing.T
	budget *memory.Budget
	srv    *kinesistest.Server
	shard  string
	client *kinesis.Client
	fan    *Reader
	put    int
	got    int
	fails  []error
	modes  []error // arguments of Changed
	ready  int     // number of consumers found
	asked  sync.Mutex
	proto  string // HTTP version of subscriptions; guarded by asked
}

func fanOut(t *testing.T, cfg kinesistest.Config, f func(t *testing.T, p *fanned)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.InMemory = true
		srv, err := kinesistest.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("s", 1)
		p := &fanned{t: t, budget: memory.New(128 << 20), srv: srv, shard: srv.OpenShards("s")[0], client: srv.Client()}
		p.fan = p.reader()
		defer func() {
			p.fan.Close()
			if n := p.budget.InUse(); n != 0 {
				t.Errorf("%d bytes of memory were not given back", n)
			}
		}()
		f(t, p)
	})
}

func newCaller(t *testing.T, client *kinesis.Client) *wire.Caller {
	t.Helper()
	c, err := wire.NewCaller(client, wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (p *fanned) reader() *Reader {
	return &Reader{
		Poll: polling.Poll{
			Setup: &source.Setup{Client: p.client, Caller: newCaller(p.t, p.client), Stream: streams.Stream{Name: "s"}, Idle: time.Second},
			Shard: p.shard, From: shard.Oldest, Limit: 10000, Listener: &source.ListenerFuncs{OnFailed: func(err error, _ bool, _ time.Duration) { p.fails = append(p.fails, err) }},
		},
		Share:     p.budget.Share(),
		Consumers: &Consumers{Client: p.client, Name: "c", Found: func(streams.Stream, string, bool) { p.ready++ }},
		Changed:   func(why error) { p.modes = append(p.modes, why) },
	}
}

func (p *fanned) send() {
	p.put++
	p.srv.Put("s", "k", fmt.Append(nil, p.put))
}

// read reads one page and checks that its records are the next ones.
func (p *fanned) read(ctx context.Context) (source.Page, error) {
	p.t.Helper()
	page, err := p.fan.Next(ctx)
	defer page.Release()
	for _, r := range page.Records {
		if p.got++; string(r.Data) != fmt.Sprint(p.got) || r.Key != "k" || r.Arrival == 0 {
			p.t.Fatalf("got %q of key %q, arrived %d, want %d", r.Data, r.Key, r.Arrival, p.got)
		}
	}
	return page, err
}

// all reads until every record has arrived. It returns how long that took.
func (p *fanned) all(bound time.Duration) time.Duration {
	p.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(p.t.Context(), bound)
	defer cancel()
	for p.got < p.put {
		if _, err := p.read(ctx); err != nil {
			p.t.Fatalf("%d of %d records came within %v: %v; failures: %v", p.got, p.put, bound, err, p.fails)
		}
	}
	return time.Since(began)
}

// follow reads for a while. It may end one page early or late.
func (p *fanned) follow(length time.Duration) {
	p.t.Helper()
	for began := time.Now(); time.Since(began) < length; {
		if _, err := p.read(p.t.Context()); err != nil {
			p.t.Fatal(err)
		}
	}
}

// faulty makes the next n subscriptions fail. If n is negative, all of them fail.
func (p *fanned) faulty(n int, fault kinesistest.Fault) {
	p.srv.Control("SubscribeToShard", func(call *kinesistest.Call) kinesistest.Fault {
		p.asked.Lock() // calls overlap when they take over a subscription
		defer p.asked.Unlock()
		p.proto = call.Proto
		if n == 0 {
			return kinesistest.Fault{}
		}
		n--
		return fault
	})
}

func stream(f kinesistest.SubscriptionFault) kinesistest.Fault {
	return kinesistest.Fault{Subscription: f}
}

func refusal(code string) kinesistest.Fault {
	return kinesistest.Fault{Err: &kinesistest.Error{Code: code}}
}

func (p *fanned) subscriptions() int { return p.srv.Requests("SubscribeToShard") }

// In a day of five-minute subscriptions, every record arrives once, in order and without delay.
func TestFanOutFollowsAShardThroughItsSubscriptions(t *testing.T) {
	fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
		p.send()
		p.all(time.Second)
		end := time.Now().Add(24 * time.Hour)
		for i := 0; time.Now().Before(end); i++ {
			p.follow(time.Duration(1+i%7*30) * time.Second)
			p.send()
			if took := p.all(3 * time.Second); took > 1500*time.Millisecond {
				t.Errorf("record %d came after %v", p.put, took)
			}
		}
		if n := p.subscriptions(); n < 280 || n > 300 {
			t.Errorf("%d subscriptions in 24 hours of five minutes each", n)
		}
		if len(p.fails) > 0 || len(p.modes) > 0 || p.ready != 1 {
			t.Errorf("%d consumers, failures %v, changes %v", p.ready, p.fails, p.modes)
		}
		if n := p.srv.Requests("GetRecords"); n > 0 {
			t.Errorf("it polled %d times", n)
		}
	})
}

func TestFanOutSeesTheEndOfAShard(t *testing.T) {
	for name, cfg := range map[string]kinesistest.Config{"with the last records": {}, "on an empty event": {EndOnEmptyPage: true}} {
		t.Run(name, func(t *testing.T) {
			fanOut(t, cfg, func(t *testing.T, p *fanned) {
				p.send()
				lower, upper := p.srv.Split("s", p.shard)
				for {
					page, err := p.read(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if !page.End {
						continue
					}
					var names []string
					for _, c := range page.Children {
						names = append(names, c.ID)
					}
					slices.Sort(names)
					if p.got != 1 || !slices.Equal(names, []string{lower, upper}) {
						t.Errorf("after %d records the end has the children %v, want %s and %s", p.got, names, lower, upper)
					}
					return
				}
			})
		})
	}
}

// If another program uses the consumer's name, the shard is read again in time.
func TestFanOutIsTakenOver(t *testing.T) {
	for name, cfg := range map[string]kinesistest.Config{"with an exception": {}, "cleanly": {TakeoverEndsCleanly: true}} {
		t.Run(name, func(t *testing.T) {
			fanOut(t, cfg, func(t *testing.T, p *fanned) {
				p.send()
				p.all(time.Second)
				p.follow(6 * time.Second)
				stranger, err := p.fan.Poll.Caller.Subscribe(t.Context(), wire.SubscribeRequest{
					ConsumerARN: p.fan.arn, Shard: p.shard, At: types.StartingPosition{Type: types.ShardIteratorTypeLatest},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer stranger.Close()
				p.send()
				took := p.all(takeoverAfter + 2*time.Second)
				t.Logf("read again after %v", took)
				if len(p.modes) > 0 {
					t.Errorf("it fell back: %v", p.modes)
				}
			})
		})
	}
}

// A new owner's subscription may be refused for a while, because the old subscription may still
// exist. Nothing else fails.
func TestFanOutChangesHands(t *testing.T) {
	for name, cfg := range map[string]kinesistest.Config{"as usual": {}, "to the letter": {HoldSubscriptions: true}} {
		t.Run(name, func(t *testing.T) {
			fanOut(t, cfg, func(t *testing.T, p *fanned) {
				p.send()
				p.all(time.Second)
				from := p.fan.Poll.From
				p.fan.Close()
				p.fan = p.reader()
				p.fan.Poll.From = from
				p.send()
				took := p.all(takeoverAfter + 2*time.Second)
				t.Logf("read by the next owner after %v", took)
				for _, err := range p.fails {
					// The limit is one call per second.
					if !errors.Is(err, ErrSubscribed) && !streams.Throttled(err) {
						t.Error(err)
					}
				}
				if len(p.modes) > 0 || !cfg.HoldSubscriptions && took > subscribeSpacing {
					t.Errorf("refused %d times, changes %v", len(p.fails), p.modes)
				}
			})
		})
	}
}

// Stop ends the subscription of a reader whose goroutine does not call Close.
func TestFanOutIsStoppedByOthers(t *testing.T) {
	fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
		p.fan.Stop() // no effect without a subscription
		p.send()
		p.all(time.Second)
		p.fan.Stop()
		synctest.Wait()
		select {
		case <-p.fan.sub.done:
		default:
			t.Error("the subscription is still read")
		}
	})
}

func TestFanOutConsumerIsRemovedAndRegisteredAgain(t *testing.T) {
	for _, delay := range []time.Duration{0, 8 * time.Second} { // duration of CREATING and DELETING
		t.Run(delay.String(), func(t *testing.T) {
			fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
				p.srv.SetStateDelay(delay)
				p.send()
				p.all(delay + 4*time.Second)
				// Consumers that are registered within one second have the same ARN.
				p.follow(2 * time.Second)
				arn, name, consumer := p.srv.StreamARN("s"), "c", p.fan.arn
				if _, err := p.client.DeregisterStreamConsumer(t.Context(), &kinesis.DeregisterStreamConsumerInput{StreamARN: &arn, ConsumerName: &name}); err != nil {
					t.Fatal(err)
				}
				p.send()
				took := p.all(2*delay + 6*time.Second)
				t.Logf("read by another consumer after %v", took)
				if p.ready != 2 || p.fan.arn == consumer || len(p.modes) > 0 {
					t.Errorf("%d consumers were found, the last is %s after %s; changes %v", p.ready, p.fan.arn, consumer, p.modes)
				}
			})
		})
	}
}

func TestFanOutPositions(t *testing.T) {
	fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
		_, first := p.srv.Put("s", "k", []byte("1"))
		time.Sleep(5 * time.Second)
		middle := time.Now()
		time.Sleep(5 * time.Second)
		p.srv.Put("s", "k", []byte("2"))
		after, _ := shard.After(first)
		before, _ := shard.Before(first)
		part, _ := shard.Part(first, 3)
		for _, test := range []struct {
			from shard.Position
			want string
		}{
			{shard.Oldest, "1 2"}, {after, "2"}, {before, "1 2"}, {part, "1 2"}, {shard.At(middle), "2"},
		} {
			fan := p.reader()
			fan.Poll.From = test.from
			var got []string
			for !slices.Contains(got, "2") {
				page, err := fan.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range page.Records {
					got = append(got, string(r.Data))
				}
			}
			fan.Close()
			if strings.Join(got, " ") != test.want {
				t.Errorf("from %s: got %v, want %s", test.from, got, test.want)
			}
		}
	})
}

// A position that Kinesis refuses is not skipped. The shard is polled, and polling reports it.
func TestFanOutKeepsARefusedPosition(t *testing.T) {
	fanOut(t, kinesistest.Config{RefuseTrimmed: true}, func(t *testing.T, p *fanned) {
		_, first := p.srv.Put("s", "k", []byte("1"))
		p.srv.Put("s", "k", []byte("2"))
		time.Sleep(30 * time.Hour)
		p.srv.Put("s", "k", []byte("3"))
		from, _ := shard.After(first)
		p.fan.Poll.From = from
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if page, err := p.fan.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v", page, err)
		}
		if len(p.fails) < 5 || !errors.Is(p.fails[len(p.fails)-1], source.ErrNoPosition) || p.fan.Poll.From != from {
			t.Errorf("at %s: %v", p.fan.Poll.From, p.fails)
		}
	})
}

func TestFanOutOfWhatIsGone(t *testing.T) {
	fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
		p.fan.Poll.Shard = "shardId-000000000099"
		if _, err := p.fan.Next(t.Context()); !errors.Is(err, streams.ErrNoShard) {
			t.Errorf("a shard that the stream does not have: %v", err)
		}
		p.fan.Poll.Shard = p.shard
		p.send()
		p.all(2 * time.Second)
		p.srv.DeleteStream("s")
		if _, err := p.fan.Next(t.Context()); !errors.Is(err, streams.ErrNoStream) {
			t.Errorf("a stream that was deleted: %v", err)
		}
		fresh := p.reader()
		if _, err := fresh.Next(t.Context()); !errors.Is(err, streams.ErrNoStream) {
			t.Errorf("a stream that does not exist: %v", err)
		}
	})
}

func TestFanOutLastTakesWhatIsThere(t *testing.T) {
	fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
		if _, err := p.fan.Last(t.Context()); err == nil {
			t.Error("something came before anything was asked for")
		}
		p.send()
		p.all(time.Second)
		if _, err := p.fan.Last(t.Context()); err == nil {
			t.Error("something came although nothing was put")
		}
		p.send()
		synctest.Wait()
		began := time.Now()
		page, err := p.fan.Last(t.Context())
		if err != nil || len(page.Records) != 1 || string(page.Records[0].Data) != "2" || time.Since(began) > 0 {
			t.Errorf("%d records, %v, after %v", len(page.Records), err, time.Since(began))
		}
	})
}

// The end of the context of Next does not end the subscription. Close ends it.
func TestFanOutSubscriptionOutlivesACall(t *testing.T) {
	fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
		for range 5 {
			p.send()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			for ctx.Err() == nil {
				if _, err := p.read(ctx); err != nil && ctx.Err() == nil {
					t.Fatal(err)
				}
			}
			cancel()
		}
		if n := p.subscriptions(); n != 1 || len(p.srv.Subscriptions("s")) != 1 {
			t.Errorf("%d subscriptions, %d live", n, len(p.srv.Subscriptions("s")))
		}
		p.fan.Close()
		p.fan.Close()
		synctest.Wait()
		if n := len(p.srv.Subscriptions("s")); n != 0 {
			t.Errorf("%d live after Close", n)
		}
	})
}

func TestTroubleOf(t *testing.T) {
	api := func(code string) error { return &smithy.GenericAPIError{Code: code} }
	for _, test := range []struct {
		err      error
		answered bool
		want     trouble
	}{
		{wire.ErrEnded, true, ended},
		{errRenewed, true, ended},
		{errStalled, true, ended},
		{fmt.Errorf("%w: %w", memory.ErrNoMemory, errCrowded), true, crowded},
		{wire.ErrSilent, true, failed},
		{wire.ErrNoAnswer, false, failed},
		{fmt.Errorf("subscribe: %w", wire.ErrNoEvents), false, unwanted},
		{errBroken, true, failed},
		{&types.ResourceInUseException{}, false, refused},
		{&types.ResourceInUseException{}, true, taken},
		{&types.ResourceNotFoundException{}, false, missing},
		{&types.ResourceNotFoundException{}, true, missing},
		{api("InvalidArgumentException"), false, misplace},
		{api("ValidationException"), false, misplace},
		{source.ErrNoPosition, false, misplace},
		{api("AccessDeniedException"), false, unwanted},
		{&types.KMSAccessDeniedException{}, true, failed},
		{&types.KMSThrottlingException{}, true, failed},
		{api("LimitExceededException"), false, failed},
		{fmt.Errorf("%w: %w", errNoARN, api("ResourceInUseException")), false, unwanted},
		{fmt.Errorf("%w: %w", errNoARN, fmt.Errorf("%w: %w", streams.ErrNoStream, api("ResourceNotFoundException"))), false, lost},
		{errors.New("connection reset"), true, failed},
	} {
		if got := troubleOf(test.err, test.answered); got != test.want {
			t.Errorf("%v, answered %v: %d, want %d", test.err, test.answered, got, test.want)
		}
	}
}

// pageOf never moves the position back. Only a page with children ends the shard.
func FuzzPageOf(f *testing.F) {
	f.Add("100", "101", "102", "103", "", int64(0))
	f.Add("100", "101", "", "102", "shardId-000000000001", int64(5))
	f.Add("100", "99", "-1", "", "", int64(-1))
	f.Add("100", "0101", "101", "x", "y", int64(1)<<62)
	f.Fuzz(func(t *testing.T, from, first, second, continuation, child string, behind int64) {
		at, err := shard.After(from)
		if err != nil {
			at = shard.Oldest
		}
		ev := &codec.Page{Next: continuation, Behind: time.Duration(behind)}
		ev.Append(source.Record{SequenceNumber: first, Data: []byte("x")})
		ev.Append(source.Record{SequenceNumber: second})
		if child != "" {
			ev.Children = []types.ChildShard{{ShardId: &child, ParentShards: []string{"p"}, HashKeyRange: &types.HashKeyRange{StartingHashKey: &first, EndingHashKey: &second}}}
		}
		page, to, next, err := pageOf(ev, at)
		if err != nil {
			if to != at || len(page.Records) > 0 {
				t.Errorf("a broken event moves to %s: %v", to, err)
			}
			return
		}
		if page.End != (len(page.Children) > 0) || page.End == (next != "") || page.Behind != time.Duration(behind) {
			t.Errorf("end %v, children %v, continuation %q, %v behind", page.End, page.Children, next, page.Behind)
		}
		last := at
		for _, r := range page.Records {
			p, err := shard.After(r.SequenceNumber)
			if err != nil || p.Compare(last) <= 0 {
				t.Errorf("record %q after %s: %v", r.SequenceNumber, last, err)
			}
			last = p
		}
		if to != last {
			t.Errorf("the position is %s after %s", to, last)
		}
	})
}
