package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/lease"
)

// told runs what a command does, in virtual time, and returns what was said.
func told(in context.Context, t *testing.T, do func(context.Context)) []string {
	t.Helper()
	var out bytes.Buffer
	ctx, end := withWaits(in, terminal{err: &out})
	do(ctx)
	end()
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func TestSilenceIsToldAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := told(t.Context(), t, func(ctx context.Context) {
			c := newPeer(ctx, "the store", 0).begin(ctx)
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

// Answers that come, an idle command and a call that fails at once are no silence.
func TestWhatIsNotSilenceIsNotTold(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, p *peer){
		"answers that are slow": func(ctx context.Context, p *peer) {
			for range 10 {
				c := p.begin(ctx)
				time.Sleep(4900 * time.Millisecond)
				c.hears()
				c.end()
			}
		},
		"an answer that comes in parts": func(ctx context.Context, p *peer) {
			c := p.begin(ctx)
			for range 10 {
				time.Sleep(4 * time.Second)
				c.hears()
			}
			c.end()
		},
		"nothing to ask": func(ctx context.Context, p *peer) {
			c := p.begin(ctx)
			c.hears()
			c.end()
			time.Sleep(time.Hour)
		},
		"a call that failed, and a later one": func(ctx context.Context, p *peer) {
			p.begin(ctx).end()
			time.Sleep(time.Hour)
			c := p.begin(ctx)
			time.Sleep(3 * time.Second)
			c.hears()
			c.end()
		},
		"one that is silent beside others that are answered": func(ctx context.Context, p *peer) {
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
					do(ctx, newPeer(ctx, "the store", time.Minute))
				})
				if got[0] != "" {
					t.Errorf("it says %q", got)
				}
			})
		})
	}
}

// Calls that time out one after another are one silence, and its end is told.
func TestSilenceOutlastsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := told(t.Context(), t, func(ctx context.Context) {
			p := newPeer(ctx, "the store", 0)
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
		if text := explain(fmt.Errorf("something: %w", err)); !strings.Contains(text, "the store did not answer within 30s: check") {
			t.Errorf("it says %q", text)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		p, began := newPeer(t.Context(), "the store", 30*time.Second), time.Now()
		late(t, p.ask(t.Context(), silent), began, 30*time.Second)
		late(t, p.ask(t.Context(), silent), began, 30*time.Second) // at once
	})
	synctest.Test(t, func(t *testing.T) {
		p, began := newPeer(t.Context(), "the store", 30*time.Second), time.Now()
		err := p.ask(t.Context(), func(context.Context) error { time.Sleep(4 * time.Second); return syscall.ETIMEDOUT })
		late(t, err, began, 32*time.Second) // a client that gives up sooner and looks at no context
	})
	synctest.Test(t, func(t *testing.T) {
		p, began := newPeer(t.Context(), "the store", 30*time.Second), time.Now()
		if err := p.ask(t.Context(), func(context.Context) error { return lease.ErrSetup }); !errors.Is(err, lease.ErrSetup) {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := p.ask(ctx, silent); errors.As(err, new(noAnswer)) || time.Since(began) != time.Hour {
			t.Errorf("a store that has answered once, with an error, was given up after %v: %v", time.Since(began), err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // whoever is interrupted waits no more
		p, began := newPeer(t.Context(), "the store", 30*time.Second), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := p.ask(ctx, silent); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(noAnswer)) || time.Since(began) != 10*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// With --wait nothing but an answer ends it.
func TestPersistOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := newPeer(t.Context(), "the store", 30*time.Second), time.Now()
		p.wait = true
		back := began.Add(10 * time.Minute)
		ask := func() error {
			return p.ask(t.Context(), func(ctx context.Context) error {
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
		err := persist(t.Context(), true, p, ask)
		if over := time.Since(back); !errors.Is(err, lease.ErrSetup) || over < 0 || over > 10*time.Second {
			t.Errorf("%v, %v after it was back", err, over)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t.Context(), "the store", 30*time.Second)
		calls := 0
		err := persist(t.Context(), false, p, func() error { calls++; return syscall.ECONNREFUSED })
		if !errors.Is(err, syscall.ECONNREFUSED) || calls != 1 {
			t.Errorf("%d calls without --wait: %v", calls, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Hour, cancel)
		var err error
		got := told(ctx, t, func(ctx context.Context) {
			p := newPeer(ctx, "the store", 30*time.Second)
			err = persist(ctx, true, p, func() error { return p.ask(ctx, func(context.Context) error { return syscall.ECONNREFUSED }) })
		})
		if orderly(ctx, err) != nil {
			t.Errorf("Ctrl-C is no error: %v", err)
		}
		if len(got) < 60 || !strings.Contains(got[1], "waiting for the store, 10s so far: nothing answers") {
			t.Errorf("%d words in an hour: %.300q", len(got), got)
		}
	})
}

// The SDK does not try again what was given up, and the error says what did not answer.
func TestACallOfTheSDKIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t.Context(), "Kinesis", 30*time.Second)
		bodies := 0
		client := kinesis.New(kinesis.Options{
			Region: "us-east-1", BaseEndpoint: aws.String("http://kinesis.test:4567"), Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
			HTTPClient: patientClient{httpFunc(func(r *http.Request) (*http.Response, error) {
				switch bodies {
				case 0:
					<-r.Context().Done()
					return nil, r.Context().Err()
				case 1: // half an answer
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(endless{r.Context()})}, nil
				}
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
			}), p, "Kinesis"},
		})
		for range 2 {
			began := time.Now()
			_, err := client.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("s")})
			if text := explain(err); time.Since(began) != 30*time.Second || !strings.HasPrefix(text, "Kinesis at http://kinesis.test:4567 did not answer within 30s: ") {
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

// endless is a body that begins and does not end.
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

// What the library asks over its own connections is told of, too.
func TestASilentConnectionIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := told(t.Context(), t, func(ctx context.Context) {
			p := newPeer(ctx, "Kinesis", time.Minute)
			ours, theirs := net.Pipe()
			c := &heardConn{Conn: ours, p: p}
			write := func() {
				go func() { _, _ = theirs.Read(make([]byte, 9)) }()
				_, _ = c.Write([]byte("ask"))
			}
			write() // before the first answer calls are counted, which say more
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

// silentServer accepts connections, reads what comes and never answers.
func silentServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		for _, c := range conns {
			_ = c.Close()
		}
	})
	return l.Addr().String()
}

// Each command ends within --connect-timeout before a server that never answers, and says which one
// it was.
func TestEveryCommandGivesUpOnASilentServer(t *testing.T) {
	t.Parallel()
	at := silentServer(t)
	server, endpoint := kinesisServer(t)
	server.CreateStream("s", 1)
	store := "--store=sqlite:" + t.TempDir() + "/leases.db"
	mustRun(t, `{"weir":"progress","version":1,"app":"a","leases":0,"paused":[]}`, "group", "import", "--app=a", store, "--yes", "-")
	mute := "--endpoint=http://" + at
	for _, args := range []string{
		"put --stream s " + mute + " -",
		"put --stream s --create " + mute + " -",
		"tail --stream s " + mute,
		"tail --stream s --fan-out x " + mute,
		"consume --stream s --app a --store memory: " + mute,
		"consume --stream s --app a --store memory: --fan-out " + mute,
		"fanout list --stream s " + mute,
		"fanout remove --stream s --name x --yes " + mute,
		"group reset --app a --stream s --to oldest --yes " + store + " " + mute,
	} {
		givesUp(t, "Kinesis at http://"+at, args)
	}
	for url, name := range map[string]string{
		"postgres://u@" + at + "/d":                      "the store postgres://u@" + at + "/d",
		"mysql://u:p@" + at + "/d":                       "the store mysql://u:xxxxx@" + at + "/d",
		"redis://" + at:                                  "the store redis://" + at,
		"dynamodb:weir --dynamodb-endpoint=http://" + at: "DynamoDB at http://" + at,
	} {
		for _, args := range []string{
			"consume --stream s --app a " + endpoint, "consume --stream s --app a --create-store " + endpoint, "store create", "doctor --app a " + endpoint,
			"group list", "group describe --app a " + endpoint, "group lag --app a " + endpoint, "group plan --app a", "group pause --app a", "group resume --app a",
			"group drain --app a w", "group delete --app a --yes", "group export --app a -", "group import --app a --yes FILE", "group reset --app a --to oldest --yes " + endpoint,
		} {
			givesUp(t, name, args+" --store "+url)
		}
	}
}

func givesUp(t *testing.T, name, args string) {
	t.Helper()
	t.Run(args, func(t *testing.T) {
		t.Parallel()
		words := strings.Fields(args)
		if i := slices.Index(words, "FILE"); i >= 0 {
			words[i] = t.TempDir() + "/progress"
			if err := os.WriteFile(words[i], []byte(`{"weir":"progress","version":1,"app":"a","leases":0,"paused":["s"]}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := start(t, "record\n", append(words, "--connect-timeout=500ms")...)
		code := got.wait(t)
		if want := name + " did not answer within 500ms: "; code != exitFailed || !strings.Contains(got.err.String(), want) {
			t.Errorf("exit code %d and %q, want %q", code, got.err, want)
		}
	})
}

// A worker that is to wait is alive and not ready, and begins when the service is there.
func TestConsumeWaits(t *testing.T) {
	t.Parallel()
	server, _ := kinesisServer(t)
	server.CreateStream("s", 1)
	mustRun(t, "a\n", "put", "--stream=s", "--endpoint="+server.URL(), "-")
	to := strings.TrimPrefix(server.URL(), "http://")
	gate := &gate{to: to, held: make(chan struct{})}
	at := gate.listen(t)
	c := start(t, "", "consume", "--stream=s", "--app=a", "--store=memory:", "--endpoint=http://"+at, "--connect-timeout=300ms", "--wait", "--health=127.0.0.1:0")
	var health string
	c.err.await(t, "health checks", func(s string) bool {
		_, after, found := strings.Cut(s, "health: ")
		health, _, _ = strings.Cut(after, "/livez")
		return found
	})
	gate.await(t, 3) // calls were given up, and made again
	for path, want := range map[string]int{"/livez": 200, "/readyz": 503} {
		answer, err := http.Get(health + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, answer.StatusCode, want)
		}
	}
	close(gate.held)
	c.out.await(t, "the record", func(s string) bool { return s == "a\n" })
	if code := c.interrupt(t); code != exitDone {
		t.Errorf("exit code %d, %s", code, c.err)
	}
}

// gate is a server that is silent until held is closed, and then the one behind it.
type gate struct {
	to   string
	held chan struct{}
	more chan struct{} // gets one for each call that is not answered
}

func (g *gate) listen(t *testing.T) string {
	t.Helper()
	target, err := url.Parse("http://" + g.to)
	if err != nil {
		t.Fatal(err)
	}
	g.more = make(chan struct{}, 100)
	proxy := httputil.NewSingleHostReverseProxy(target)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// before that the server does not see that the client leaves
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		select {
		case <-g.held:
			proxy.ServeHTTP(w, r)
		default:
			g.more <- struct{}{}
			<-r.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func (g *gate) await(t *testing.T, calls int) {
	t.Helper()
	late := time.After(time.Minute)
	for range calls {
		select {
		case <-g.more:
		case <-late:
			t.Fatal("it does not ask again")
		}
	}
}
