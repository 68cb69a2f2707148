package polling

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// polled is a shard of an embedded Kinesis in a bubble. It also collects the reports of its Poll.
type polled struct {
	t     *testing.T
	srv   *kinesistest.Server
	shard string
	poll  *Poll
	fails []error
}

// served runs f in a bubble with an embedded Kinesis with the stream "s".
func served(t *testing.T, cfg kinesistest.Config, shards int, f func(t *testing.T, srv *kinesistest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.InMemory = true
		srv, err := kinesistest.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("s", shards)
		f(t, srv)
	})
}

func bubble(t *testing.T, cfg kinesistest.Config, f func(p *polled)) {
	t.Helper()
	served(t, cfg, 1, func(t *testing.T, srv *kinesistest.Server) {
		p := &polled{t: t, srv: srv, shard: srv.OpenShards("s")[0]}
		client := srv.Client()
		p.poll = &Poll{
			Setup: &source.Setup{Client: client, Caller: caller(t, client), Stream: streams.Stream{Name: "s"}, Idle: time.Second},
			Shard: p.shard, From: shard.Oldest, Limit: 10000,
		}
		p.poll.Listener = &source.ListenerFuncs{OnFailed: func(err error, _ bool, _ time.Duration) { p.fails = append(p.fails, err) }}
		f(p)
	})
}

// next returns the data of the next page that contains records or ends the shard.
func (p *polled) next() (string, source.Page) {
	p.t.Helper()
	for range 1000 {
		page, err := p.poll.Next(p.t.Context())
		if err != nil {
			p.t.Fatal(err)
		}
		if len(page.Records) > 0 || page.End {
			var all []string
			for _, r := range page.Records {
				all = append(all, string(r.Data))
			}
			return strings.Join(all, " "), page
		}
	}
	p.t.Fatal("nothing came")
	return "", source.Page{}
}

func (p *polled) want(data string) source.Page {
	p.t.Helper()
	got, page := p.next()
	if got != data {
		p.t.Errorf("got %q, want %q", got, data)
	}
	return page
}

// once makes the first n calls of an action fail.
func (p *polled) once(action string, n int, fault kinesistest.Fault) {
	var calls atomic.Int64 // the first call and its retry may overlap
	p.srv.Control(action, func(*kinesistest.Call) kinesistest.Fault {
		if calls.Add(1) <= int64(n) {
			return fault
		}
		return kinesistest.Fault{}
	})
}

func TestFailuresLoseAndRepeatNothing(t *testing.T) {
	answer := func(code string) kinesistest.Fault { return kinesistest.Fault{Err: &kinesistest.Error{Code: code}} }
	for name, fault := range map[string]kinesistest.Fault{
		"throttled":         answer("ProvisionedThroughputExceededException"),
		"throttled by KMS":  answer("KMSThrottlingException"),
		"iterator expired":  answer("ExpiredIteratorException"),
		"iterator unknown":  answer("InvalidArgumentException"),
		"server error":      answer("InternalFailure"),
		"no permission":     answer("AccessDeniedException"),
		"key disabled":      answer("KMSDisabledException"),
		"stale not found":   answer("ResourceNotFoundException"),
		"connection cut":    {Cut: true},
		"answer lost":       {LoseAnswer: true},
		"answer cut short":  {CutAfter: 40},
		"no answer at all":  {Delay: time.Hour},
		"an answer of junk": {Rewrite: func([]byte) []byte { return []byte("<html>") }},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 2
			if fault.Delay > 0 {
				calls = 4 // each call is retried
			}
			for _, action := range []string{"GetRecords", "GetShardIterator"} {
				bubble(t, kinesistest.Config{}, func(p *polled) {
					p.srv.Put("s", "k", []byte("1"))
					p.once(action, calls, fault)
					p.want("1")
					p.srv.Put("s", "k", []byte("2"))
					p.once(action, calls, fault)
					p.want("2")
					if len(p.fails) < 2 {
						t.Errorf("%d failures were reported, want at least 2: %v", len(p.fails), p.fails)
					}
				})
			}
		})
	}
}

func TestThrottlesAreWaitedOutAndSaidSo(t *testing.T) {
	bubble(t, kinesistest.Config{}, func(p *polled) {
		p.srv.Put("s", "k", []byte("1"))
		p.once("GetRecords", 3, kinesistest.Fault{Err: &kinesistest.Error{Code: "ProvisionedThroughputExceededException"}})
		throttles := 0
		p.poll.Listener = &source.ListenerFuncs{OnFailed: func(_ error, throttled bool, next time.Duration) {
			if throttled {
				throttles++
			}
			if next < time.Second {
				t.Errorf("waits only %v after a throttle", next)
			}
		}}
		p.want("1")
		if throttles != 3 {
			t.Errorf("%d throttles were reported, want 3", throttles)
		}
		if n := p.srv.Requests("GetShardIterator"); n != 1 {
			t.Errorf("%d iterators were made: a throttled one does not expire", n)
		}
	})
}

func TestTheServicesOwnLimitsAreKept(t *testing.T) {
	// The server enforces the limits of five reads and 2 MiB per second.
	bubble(t, kinesistest.Config{}, func(p *polled) {
		data := make([]byte, 900<<10)
		read := 0
		for range 60 {
			for range 2 {
				p.srv.Put("s", "k", data)
			}
			page, err := p.poll.Next(p.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			read += len(page.Records)
		}
		if len(p.fails) > 0 {
			t.Errorf("reading as fast as allowed was throttled %d times: %v", len(p.fails), p.fails[0])
		}
		if read < 100 {
			t.Errorf("only %d records in 60 reads", read)
		}
	})
}

func TestReadsAreSparseAtTheTipAndDenseBehindIt(t *testing.T) {
	bubble(t, kinesistest.Config{}, func(p *polled) {
		p.poll.Limit = 1
		for i := range 20 {
			p.srv.Put("s", "k", []byte{byte('a' + i)})
		}
		time.Sleep(time.Second) // so that the shard falls behind
		began := time.Now()
		for range 20 {
			p.next()
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("20 pages behind the tip took %v, want about 200 ms each", took)
		}
		before, began := p.srv.Requests("GetRecords"), time.Now()
		ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
		defer cancel()
		for {
			if _, err := p.poll.Next(ctx); err != nil {
				break
			}
		}
		calls := p.srv.Requests("GetRecords") - before
		if calls < 55 || calls > 80 {
			t.Errorf("%d reads in %v at the tip with an idle interval of 1 s", calls, time.Since(began))
		}
	})
}

func TestTheEndOfAShardInAllItsForms(t *testing.T) {
	strip := func(field string) func([]byte) []byte {
		return func(body []byte) []byte {
			var m map[string]any
			if json.Unmarshal(body, &m) != nil || m[field] == nil {
				return body
			}
			if _, ends := m["ChildShards"]; !ends {
				return body
			}
			delete(m, field)
			out, _ := json.Marshal(m)
			return out
		}
	}
	for name, test := range map[string]struct {
		cfg    kinesistest.Config
		remove string
	}{
		"with the last records":                   {},
		"on an empty page":                        {cfg: kinesistest.Config{EndOnEmptyPage: true}},
		"without children, which the listing has": {remove: "ChildShards"},
		"without children and on an empty page":   {cfg: kinesistest.Config{EndOnEmptyPage: true}, remove: "ChildShards"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, test.cfg, func(p *polled) {
				p.srv.Put("s", "k", []byte("1"))
				lower, upper := p.srv.Split("s", p.shard)
				if test.remove != "" {
					p.srv.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Rewrite: strip(test.remove)} })
				}
				page := p.want("1")
				if !page.End {
					page = p.want("")
				}
				var names []string
				for _, c := range page.Children {
					names = append(names, c.ID)
					if !slices.Equal(c.Parents, []string{p.shard}) {
						t.Errorf("child %s has parents %v", c.ID, c.Parents)
					}
				}
				slices.Sort(names)
				if !page.End || !slices.Equal(names, []string{lower, upper}) {
					t.Errorf("end %v, children %v, want %s and %s", page.End, names, lower, upper)
				}
			})
		})
	}
}

func TestPositions(t *testing.T) {
	bubble(t, kinesistest.Config{}, func(p *polled) {
		_, first := p.srv.Put("s", "k", []byte("1"))
		time.Sleep(5 * time.Second)
		middle := time.Now()
		time.Sleep(5 * time.Second)
		p.srv.Put("s", "k", []byte("2"))
		after, _ := shard.After(first)
		before, _ := shard.Before(first)
		for _, test := range []struct {
			from shard.Position
			want string
		}{
			{shard.Oldest, "1 2"}, {after, "2"}, {before, "1 2"}, {shard.At(middle), "2"},
		} {
			p.poll = &Poll{Setup: p.poll.Setup, Shard: p.shard, From: test.from, Limit: 100}
			p.want(test.want)
			time.Sleep(2 * time.Second)
		}
	})
}

func TestARefusedPositionStaysAndIsLoud(t *testing.T) {
	bubble(t, kinesistest.Config{RefuseTrimmed: true}, func(p *polled) {
		_, first := p.srv.Put("s", "k", []byte("1"))
		p.srv.Put("s", "k", []byte("2"))
		time.Sleep(30 * time.Hour) // both expire, and the second was not read
		p.srv.Put("s", "k", []byte("3"))
		from, _ := shard.After(first)
		p.poll.From = from
		ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
		defer cancel()
		if page, err := p.poll.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v: nobody decided to skip what expired", page, err)
		}
		if len(p.fails) < 3 || !errors.Is(p.fails[len(p.fails)-1], source.ErrNoPosition) {
			t.Errorf("reported: %v", p.fails)
		}
		if p.poll.From != from {
			t.Errorf("the position moved to %s", p.poll.From)
		}
	})
}

func TestWhatIsGone(t *testing.T) {
	bubble(t, kinesistest.Config{}, func(p *polled) {
		p.poll.Shard = "shardId-000000000099"
		if _, err := p.poll.Next(p.t.Context()); !errors.Is(err, streams.ErrNoShard) {
			t.Errorf("a shard that the stream does not have: %v", err)
		}
		p.srv.DeleteStream("s")
		if _, err := p.poll.Next(p.t.Context()); !errors.Is(err, streams.ErrNoStream) {
			t.Errorf("a stream that does not exist: %v", err)
		}
	})
}

func TestLastReadsOnceWithoutWaitingForTheIdleInterval(t *testing.T) {
	bubble(t, kinesistest.Config{}, func(p *polled) {
		p.poll.Idle = time.Minute
		if _, err := p.poll.Next(p.t.Context()); err != nil {
			t.Fatal(err)
		}
		p.srv.Put("s", "k", []byte("1"))
		began := time.Now()
		page, err := p.poll.Last(p.t.Context())
		if err != nil || len(page.Records) != 1 || time.Since(began) > time.Second {
			t.Errorf("%d records, %v, after %v", len(page.Records), err, time.Since(began))
		}
		p.once("GetRecords", 1, kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure"}})
		if _, err := p.poll.Last(p.t.Context()); err == nil {
			t.Error("a failed last read is tried again")
		}
	})
}

// caller returns a [wire.Caller] for a Poll. Its idle connections are closed at the end of the
// test, because a bubble cannot end before that.
func caller(t *testing.T, client *kinesis.Client) *wire.Caller {
	t.Helper()
	c, err := wire.NewCaller(client, wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
