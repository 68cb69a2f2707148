package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// fanned is a shard of an embedded Kinesis in a bubble, and what a Fanout of it said.
type fanned struct {
	t      *testing.T
	srv    *kinesistest.Server
	shard  string
	client *kinesis.Client
	fan    *Fanout
	put    int
	got    int
	fails  []error
	modes  []error // what Changed was told
	ready  int     // consumers found
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
		p := &fanned{t: t, srv: srv, shard: srv.OpenShards("s")[0], client: srv.Client()}
		p.fan = p.reader()
		defer func() { p.fan.Close() }()
		f(t, p)
	})
}

func (p *fanned) reader() *Fanout {
	return &Fanout{
		Poll: Poll{
			Client: p.client, Caller: caller(p.t, p.client), Stream: Stream{Name: "s"}, Shard: p.shard, From: shard.Oldest,
			Limit: 10000, Idle: time.Second, Failed: func(err error, _ bool, _ time.Duration) { p.fails = append(p.fails, err) },
		},
		Consumers: &Consumers{Client: p.client, Name: "c", Found: func(Stream, string, bool) { p.ready++ }},
		Changed:   func(why error) { p.modes = append(p.modes, why) },
	}
}

// send puts a record.
func (p *fanned) send() {
	p.put++
	p.srv.Put("s", "k", fmt.Append(nil, p.put))
}

// read reads one page and checks that its records are the next ones.
func (p *fanned) read(ctx context.Context) (Page, error) {
	p.t.Helper()
	page, err := p.fan.Next(ctx)
	for _, r := range page.Records {
		if p.got++; string(r.Data) != fmt.Sprint(p.got) || r.Key != "k" || r.Arrival == 0 {
			p.t.Fatalf("got %q of key %q, arrived %d, want %d", r.Data, r.Key, r.Arrival, p.got)
		}
	}
	return page, err
}

// all reads until everything that was put has come, and returns how long that took.
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

// follow reads for a while, give or take a page.
func (p *fanned) follow(length time.Duration) {
	p.t.Helper()
	for began := time.Now(); time.Since(began) < length; {
		if _, err := p.read(p.t.Context()); err != nil {
			p.t.Fatal(err)
		}
	}
}

// faulty lets the next n subscriptions go wrong, all of them when n is negative.
func (p *fanned) faulty(n int, fault kinesistest.Fault) {
	p.srv.Control("SubscribeToShard", func(*kinesistest.Call) kinesistest.Fault {
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

// A day of five-minute ends, with records and without: every record once, in order, at once.
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

// What can go wrong with single subscriptions is mended within the bound that is stated for it, without a record lost or repeated, and
// without polling.
func TestFanOutRecovers(t *testing.T) {
	const retry = 2 * time.Second // the spacing of calls, and the first pause
	for name, test := range map[string]struct {
		fault kinesistest.Fault
		times int
		bound time.Duration
	}{
		"half-open after some events":     {stream(kinesistest.SubscriptionFault{Events: 3, HalfOpen: true}), 1, silenceTimeout + retry},
		"half-open from the start":        {stream(kinesistest.SubscriptionFault{HalfOpen: true}), 1, silenceTimeout + retry},
		"no first frame":                  {stream(kinesistest.SubscriptionFault{NoInitialResponse: true, HalfOpen: true}), 1, answerTimeout + retry},
		"the header comes late":           {stream(kinesistest.SubscriptionFault{HeaderDelay: time.Hour}), 1, answerTimeout + retry},
		"ends at once":                    {stream(kinesistest.SubscriptionFault{End: true}), 2, 2 * retry},
		"ends after an event":             {stream(kinesistest.SubscriptionFault{Events: 1, End: true}), 5, 5*retry + 25*time.Second},
		"cut in an event":                 {stream(kinesistest.SubscriptionFault{CutEvent: true}), 2, 2 * retry},
		"cut in a later event":            {stream(kinesistest.SubscriptionFault{Events: 2, CutEvent: true}), 1, retry},
		"an event with a wrong checksum":  {stream(kinesistest.SubscriptionFault{Corrupt: true}), 2, 2 * retry},
		"a protocol error":                {stream(kinesistest.SubscriptionFault{ProtocolError: &kinesistest.Error{Code: "Oops", Message: "oops"}}), 2, 2 * retry},
		"events of tomorrow":              {stream(kinesistest.SubscriptionFault{UnknownEvent: true}), -1, retry},
		"every event twice":               {stream(kinesistest.SubscriptionFault{Duplicate: true}), -1, retry},
		"throttled by KMS in the stream":  {stream(kinesistest.SubscriptionFault{Exception: &kinesistest.Error{Code: "KMSThrottlingException"}}), 2, 2 * retry},
		"internal failure in the stream":  {stream(kinesistest.SubscriptionFault{Exception: &kinesistest.Error{Code: "InternalFailureException"}}), 2, 2 * retry},
		"key disabled in the stream":      {stream(kinesistest.SubscriptionFault{Exception: &kinesistest.Error{Code: "KMSDisabledException"}}), 2, 2 * retry},
		"stale not found in the stream":   {stream(kinesistest.SubscriptionFault{Exception: &kinesistest.Error{Code: "ResourceNotFoundException"}}), 2, 2 * retry},
		"taken over in the stream":        {stream(kinesistest.SubscriptionFault{Exception: &kinesistest.Error{Code: "ResourceInUseException"}}), 2, 2 * (takeoverAfter + retry)},
		"throttled":                       {refusal("LimitExceededException"), 2, 2 * retry},
		"internal failure":                {refusal("InternalFailure"), 2, 2 * retry},
		"stale not found":                 {refusal("ResourceNotFoundException"), 2, 2 * retry},
		"in use":                          {refusal("ResourceInUseException"), 4, 4 * retry},
		"connection cut":                  {kinesistest.Fault{Cut: true}, 2, 2 * retry},
		"answer lost":                     {kinesistest.Fault{LoseAnswer: true}, 1, takeoverAfter + retry},
		"answer cut short":                {kinesistest.Fault{CutAfter: 40}, 2, 2 * retry},
		"no answer":                       {kinesistest.Fault{Delay: time.Hour}, 2, 2 * (answerTimeout + retry)},
		"junk for events":                 {kinesistest.Fault{Rewrite: func([]byte) []byte { return []byte("<html>") }}, 2, 2 * retry},
		"no end and no continuation":      {without("ContinuationSequenceNumber"), 2, 2 * retry},
		"a continuation that is none":     {with("ContinuationSequenceNumber", "soon"), 2, 2 * retry},
		"children and a continuation":     {with("ChildShards", []any{map[string]any{"ShardId": "x", "ParentShards": []string{"y"}}}), 2, 2 * retry},
		"children without a continuation": {without("ContinuationSequenceNumber", "and", "ChildShards", []any{map[string]any{"ShardId": ""}}), 2, 2 * retry},
	} {
		t.Run(name, func(t *testing.T) {
			fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
				p.faulty(test.times, test.fault)
				p.send()
				took := p.all(test.bound)
				p.send() // and whatever there is to trip over later
				took = max(took, p.all(test.bound))
				began := time.Now()
				p.follow(11 * time.Second)
				if took = max(took, time.Since(began)-16*time.Second); took > test.bound {
					t.Errorf("nothing came for %v, bound %v", took, test.bound)
				}
				p.send()
				took = max(took, p.all(test.bound))
				t.Logf("recovered within %v, bound %v; %d subscriptions", took, test.bound, p.subscriptions())
				if len(p.modes) > 0 {
					t.Errorf("it fell back: %v", p.modes)
				}
			})
		})
	}
}

// without rewrites events to lack a member, with to have another value in one.
func without(name string, more ...any) kinesistest.Fault {
	return rewrite(func(m map[string]any) {
		delete(m, name)
		if len(more) == 3 {
			m[more[1].(string)] = more[2]
		}
	})
}

func with(name string, value any) kinesistest.Fault {
	return rewrite(func(m map[string]any) { m[name] = value })
}

func rewrite(change func(map[string]any)) kinesistest.Fault {
	return kinesistest.Fault{Rewrite: func(body []byte) []byte {
		var m map[string]any
		if json.Unmarshal(body, &m) != nil {
			return body
		}
		change(m)
		out, _ := json.Marshal(m)
		return out
	}}
}

// Where fan-out does not work at all the shard is polled, and once it does again fan-out is back; told once each.
func TestFanOutFallsBackAndReturns(t *testing.T) {
	for name, test := range map[string]struct {
		fault kinesistest.Fault
		bound time.Duration // from the start to the first record by polling
	}{
		"clean ends without an event, for ever": {stream(kinesistest.SubscriptionFault{End: true}), 6 * time.Second},
		"half-open, for ever":                   {stream(kinesistest.SubscriptionFault{HalfOpen: true}), 3*silenceTimeout + 6*time.Second},
		"no first frame, ever":                  {stream(kinesistest.SubscriptionFault{NoInitialResponse: true, HalfOpen: true}), 3*answerTimeout + 6*time.Second},
		"no answer":                             {kinesistest.Fault{Delay: time.Hour}, 3*answerTimeout + 6*time.Second},
		"no permission":                         {refusal("AccessDeniedException"), time.Second},
		"an operation that is not known":        {refusal("UnknownOperationException"), 6 * time.Second},
		"in use, for ever":                      {refusal("ResourceInUseException"), refusedFor + 6*time.Second},
		"taken over again and again":            {stream(kinesistest.SubscriptionFault{Exception: &kinesistest.Error{Code: "ResourceInUseException"}}), 3*takeoverAfter + 6*time.Second},
		"broken events":                         {without("ContinuationSequenceNumber"), 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
				p.faulty(-1, test.fault)
				p.send()
				took := p.all(test.bound)
				before := p.subscriptions()
				for range 60 { // ten minutes
					p.follow(10 * time.Second)
					p.send()
					p.all(2*probeTimeout + time.Second)
				}
				if n := p.subscriptions() - before; n < 7 || n > 12 {
					t.Errorf("%d subscriptions were tried in ten minutes, want one a minute", n)
				}
				if len(p.modes) != 1 || p.modes[0] == nil {
					t.Errorf("the changes are %v, want one to polling", p.modes)
				}
				failures := len(p.fails)
				p.faulty(0, kinesistest.Fault{})
				p.follow(fallbackFor + fallbackFor/10 + 2*probeTimeout)
				if len(p.modes) != 2 || p.modes[1] != nil {
					t.Fatalf("the changes are %v, want one back", p.modes)
				}
				polls := p.srv.Requests("GetRecords")
				for range 30 {
					p.follow(20 * time.Second)
					p.send()
					p.all(2 * time.Second)
				}
				if n := p.srv.Requests("GetRecords"); n != polls {
					t.Errorf("it polled %d times after it had returned", n-polls)
				}
				t.Logf("polling after %v, bound %v; %d failures told", took, test.bound, failures)
			})
		})
	}
}

// Somebody else subscribes with the consumer's name. Within the time of the takeover rule the shard is read again; as long as the
// other goes on like that it is polled.
func TestFanOutIsTakenOver(t *testing.T) {
	for name, cfg := range map[string]kinesistest.Config{"with an exception": {}, "cleanly": {TakeoverEndsCleanly: true}} {
		t.Run(name, func(t *testing.T) {
			fanOut(t, cfg, func(t *testing.T, p *fanned) {
				p.send()
				p.all(time.Second)
				p.follow(6 * time.Second)
				stranger, err := subscribe(t.Context(), p.client, &kinesis.SubscribeToShardInput{
					ConsumerARN: &p.fan.arn, ShardId: &p.shard, StartingPosition: &types.StartingPosition{Type: types.ShardIteratorTypeLatest},
				}, answerTimeout)
				if err != nil {
					t.Fatal(err)
				}
				defer stranger.close()
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

// A new owner's subscription is refused for a while if the old one's may still be there, and is not called a failure.
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
					if !errors.Is(err, ErrSubscribed) && !Throttled(err) { // a call a second
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

func TestFanOutConsumerIsRemovedAndRegisteredAgain(t *testing.T) {
	for _, delay := range []time.Duration{0, 8 * time.Second} { // of CREATING and DELETING
		t.Run(delay.String(), func(t *testing.T) {
			fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
				p.srv.SetStateDelay(delay)
				p.send()
				p.all(delay + 4*time.Second)
				p.follow(2 * time.Second) // consumers of one second have one ARN
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

// A position that the service refuses is not skipped: the shard is polled, which says so loudly.
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
		if len(p.fails) < 5 || !errors.Is(p.fails[len(p.fails)-1], ErrNoPosition) || p.fan.Poll.From != from {
			t.Errorf("at %s: %v", p.fan.Poll.From, p.fails)
		}
	})
}

func TestFanOutOfWhatIsGone(t *testing.T) {
	fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
		p.fan.Poll.Shard = "shardId-000000000099"
		if _, err := p.fan.Next(t.Context()); !errors.Is(err, ErrNoShard) {
			t.Errorf("a shard that the stream does not have: %v", err)
		}
		p.fan.Poll.Shard = p.shard
		p.send()
		p.all(2 * time.Second)
		p.srv.DeleteStream("s")
		if _, err := p.fan.Next(t.Context()); !errors.Is(err, ErrNoStream) {
			t.Errorf("a stream that was deleted: %v", err)
		}
		fresh := p.reader()
		if _, err := fresh.Next(t.Context()); !errors.Is(err, ErrNoStream) {
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

// The context of Next does not end the subscription, and Close does.
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
		{errEnded, true, ended},
		{errSilent, true, failed},
		{errNoAnswer, false, failed},
		{errBroken, true, failed},
		{&types.ResourceInUseException{}, false, refused},
		{&types.ResourceInUseException{}, true, taken},
		{&types.ResourceNotFoundException{}, false, missing},
		{&types.ResourceNotFoundException{}, true, missing},
		{api("InvalidArgumentException"), false, misplace},
		{api("ValidationException"), false, misplace},
		{ErrNoPosition, false, misplace},
		{api("AccessDeniedException"), false, unwanted},
		{&types.KMSAccessDeniedException{}, true, failed},
		{&types.KMSThrottlingException{}, true, failed},
		{api("LimitExceededException"), false, failed},
		{fmt.Errorf("%w: %w", errNoARN, api("ResourceInUseException")), false, unwanted},
		{fmt.Errorf("%w: %w", errNoARN, fmt.Errorf("%w: %w", ErrNoStream, api("ResourceNotFoundException"))), false, lost},
		{errors.New("connection reset"), true, failed},
	} {
		if got := troubleOf(test.err, test.answered); got != test.want {
			t.Errorf("%v, answered %v: %d, want %d", test.err, test.answered, got, test.want)
		}
	}
}
