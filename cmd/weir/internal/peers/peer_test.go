package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/lease"
)

// told runs the calls of a command in virtual time and returns the messages that it prints.
func told(in context.Context, t *testing.T, do func(context.Context)) []string {
	t.Helper()
	var out bytes.Buffer
	ctx, end := WithWaits(in, func(_ slog.Level, format string, args ...any) { fmt.Fprintf(&out, "weir: "+format+"\n", args...) })
	do(ctx)
	end()
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func TestSilenceIsToldAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := told(t.Context(), t, func(ctx context.Context) {
			c := New(ctx, "the store", 0).begin(ctx)
			time.Sleep(5*time.Minute + time.Second/2)
			c.end()
		})
		want := []string{"5s", "10s", "20s", "40s", "1m20s", "2m20s", "3m20s", "4m20s"}
		if len(got) != len(want) {
			t.Fatalf("%d words, want %d: %q", len(got), len(want), got)
		}
		for i, silent := range want {
			if word := fmt.Sprintf("weir: waiting for the store, %s so far", silent); got[i] != word {
				t.Errorf("got %q, want %q", got[i], word)
			}
		}
	})
}

// These cases are not a silence: slow answers, a command that makes no calls, and a call that fails
// immediately.
func TestWhatIsNotSilenceIsNotTold(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, p *Peer){
		"answers that are slow": func(ctx context.Context, p *Peer) {
			for range 10 {
				c := p.begin(ctx)
				time.Sleep(4900 * time.Millisecond)
				c.hears()
				c.end()
			}
		},
		"an answer that comes in parts": func(ctx context.Context, p *Peer) {
			c := p.begin(ctx)
			for range 10 {
				time.Sleep(4 * time.Second)
				c.hears()
			}
			c.end()
		},
		"nothing to ask": func(ctx context.Context, p *Peer) {
			c := p.begin(ctx)
			c.hears()
			c.end()
			time.Sleep(time.Hour)
		},
		"a call that failed, and a later one": func(ctx context.Context, p *Peer) {
			p.begin(ctx).end()
			time.Sleep(time.Hour)
			c := p.begin(ctx)
			time.Sleep(3 * time.Second)
			c.hears()
			c.end()
		},
		"one that is silent beside others that are answered": func(ctx context.Context, p *Peer) {
			silent := p.begin(ctx)
			for range 30 {
				c := p.begin(ctx)
				time.Sleep(time.Second)
				c.hears()
				c.end()
			}
			silent.end()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := told(t.Context(), t, func(ctx context.Context) {
					do(ctx, New(ctx, "the store", time.Minute))
				})
				if got[0] != "" {
					t.Errorf("it says %q", got)
				}
			})
		})
	}
}

// Several calls that time out one after another count as one silence. Its end is reported.
func TestSilenceOutlastsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := told(t.Context(), t, func(ctx context.Context) {
			p := New(ctx, "the store", 0)
			for range 6 {
				c := p.begin(ctx)
				time.Sleep(2500 * time.Millisecond)
				c.end()
				time.Sleep(500 * time.Millisecond)
			}
			c := p.begin(ctx)
			c.hears()
			c.end()
			time.Sleep(10 * time.Second)
		})
		want := "weir: waiting for the store, 5s so far|weir: waiting for the store, 10s so far|weir: the store answers, after 18s"
		if strings.Join(got, "|") != want {
			t.Errorf("it says %q", got)
		}
	})
}

func TestTheFirstAnswerIsWaitedForNoLongerThanAsked(t *testing.T) {
	silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	late := func(t *testing.T, err error, began time.Time, after time.Duration) {
		t.Helper()
		if took := time.Since(began); !errors.As(err, new(noAnswer)) || took != after {
			t.Errorf("after %v: %v", took, err)
		}
		if text := explain.Error(fmt.Errorf("something: %w", err)); !strings.Contains(text, "the store did not answer within 30s: check") {
			t.Errorf("it says %q", text)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		p, began := New(t.Context(), "the store", 30*time.Second), time.Now()
		late(t, p.Ask(t.Context(), silent), began, 30*time.Second)
		late(t, p.Ask(t.Context(), silent), began, 30*time.Second) // immediately
	})
	synctest.Test(t, func(t *testing.T) {
		p, began := New(t.Context(), "the store", 30*time.Second), time.Now()
		err := p.Ask(t.Context(), func(context.Context) error { time.Sleep(4 * time.Second); return syscall.ETIMEDOUT })
		late(t, err, began, 32*time.Second) // the client gives up sooner and ignores the context
	})
	synctest.Test(t, func(t *testing.T) {
		p, began := New(t.Context(), "the store", 30*time.Second), time.Now()
		if err := p.Ask(t.Context(), func(context.Context) error { return lease.ErrSetup }); !errors.Is(err, lease.ErrSetup) {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := p.Ask(ctx, silent); errors.As(err, new(noAnswer)) || time.Since(began) != time.Hour {
			t.Errorf("a store that has answered once, with an error, was abandoned after %v: %v", time.Since(began), err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // an interrupt ends the wait
		p, began := New(t.Context(), "the store", 30*time.Second), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := p.Ask(ctx, silent); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(noAnswer)) || time.Since(began) != 10*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// With --wait, only an answer ends the wait.
func TestPersistOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := New(t.Context(), "the store", 30*time.Second), time.Now()
		p.Wait = true
		back := began.Add(10 * time.Minute)
		ask := func() error {
			return p.Ask(t.Context(), func(ctx context.Context) error {
				switch left := time.Until(back); {
				case left <= 0:
					return lease.ErrSetup
				case left < 5*time.Minute:
					return syscall.ECONNREFUSED
				}
				<-ctx.Done()
				return ctx.Err()
			})
		}
		err := Persist(t.Context(), true, p, ask)
		if over := time.Since(back); !errors.Is(err, lease.ErrSetup) || over < 0 || over > 10*time.Second {
			t.Errorf("%v, %v after it was back", err, over)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := New(t.Context(), "the store", 30*time.Second)
		calls := 0
		err := Persist(t.Context(), false, p, func() error { calls++; return syscall.ECONNREFUSED })
		if !errors.Is(err, syscall.ECONNREFUSED) || calls != 1 {
			t.Errorf("%d calls without --wait: %v", calls, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Hour, cancel)
		var err error
		got := told(ctx, t, func(ctx context.Context) {
			p := New(ctx, "the store", 30*time.Second)
			err = Persist(ctx, true, p, func() error { return p.Ask(ctx, func(context.Context) error { return syscall.ECONNREFUSED }) })
		})
		if explain.Orderly(ctx, err) != nil {
			t.Errorf("Ctrl-C is no error: %v", err)
		}
		if len(got) < 60 || !strings.Contains(got[1], "waiting for the store, 10s so far: the store does not answer") {
			t.Errorf("%d words in an hour: %.300q", len(got), got)
		}
	})
}

// The SDK does not retry a call that was ended. The error names the service that did not answer.
func TestACallOfTheSDKIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(t.Context(), "Kinesis", 30*time.Second)
		bodies := 0
		client := kinesis.New(kinesis.Options{
			Region: "us-east-1", BaseEndpoint: aws.String("http://kinesis.test:4567"), Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
			HTTPClient: Client{httpFunc(func(r *http.Request) (*http.Response, error) {
				switch bodies {
				case 0:
					<-r.Context().Done()
					return nil, r.Context().Err()
				case 1: // half of an answer
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(endless{r.Context()})}, nil
				}
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
			}), p, "Kinesis"},
		})
		for range 2 {
			began := time.Now()
			_, err := client.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("s")})
			if text := explain.Error(err); time.Since(began) != 30*time.Second || !strings.HasPrefix(text, "Kinesis at http://kinesis.test:4567 did not answer within 30s: ") {
				t.Errorf("after %v: %s", time.Since(began), text)
			}
			p.again("")
			bodies++
		}
		if _, err := client.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("s")}); err != nil || !p.hasAnswered() || p.open != 0 {
			t.Errorf("%v, answered %v, %d open", err, p.hasAnswered(), p.open)
		}
	})
}

// endless is a body that starts but does not end.
type endless struct{ ctx context.Context }

func (e endless) Read(p []byte) (int, error) {
	timer := time.NewTimer(3 * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
		return copy(p, " "), nil
	case <-e.ctx.Done():
		return 0, e.ctx.Err()
	}
}

type httpFunc func(*http.Request) (*http.Response, error)

func (f httpFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }

// The library's own connections are watched too.
func TestASilentConnectionIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := told(t.Context(), t, func(ctx context.Context) {
			p := New(ctx, "Kinesis", time.Minute)
			ours, theirs := net.Pipe()
			c := &heardConn{Conn: ours, p: p}
			write := func() {
				go func() { _, _ = theirs.Read(make([]byte, 9)) }()
				_, _ = c.Write([]byte("ask"))
			}
			write() // before the first answer, calls are counted, which are more precise
			time.Sleep(time.Minute)
			first := p.begin(ctx)
			first.hears()
			first.end()
			write()
			go func() { _, _ = theirs.Write([]byte("answer")) }()
			_, _ = c.Read(make([]byte, 9))
			time.Sleep(time.Minute)
			write()
			time.Sleep(6 * time.Second)
			_, _ = c.Close(), theirs.Close()
			time.Sleep(time.Minute)
		})
		if want := "weir: waiting for Kinesis, 5s so far"; strings.Join(got, "|") != want {
			t.Errorf("it says %q", got)
		}
	})
}
