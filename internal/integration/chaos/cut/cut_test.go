package cut

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

const patience = 10 * time.Second

// short is how long nothing may come for it to count as nothing.
const short = 50 * time.Millisecond

// echo answers each line with itself and a name.
func echo(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintln(c, name+lines.Text())
				}
			}()
		}
	}()
	return l.Addr().String()
}

type client struct {
	*testing.T
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, p *Proxy) client {
	t.Helper()
	c, err := net.DialTimeout("tcp", p.Addr(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return client{t, c, bufio.NewReader(c)}
}

func (c client) say(line string) {
	c.Helper()
	if _, err := fmt.Fprintln(c, line); err != nil {
		c.Fatal(err)
	}
}

func (c client) hears(within time.Duration) (string, error) {
	c.Helper()
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		c.Fatal(err)
	}
	return c.lines.ReadString('\n')
}

func (c client) expect(line string) {
	c.Helper()
	if got, err := c.hears(patience); err != nil || got != line+"\n" {
		c.Fatalf("%q, %v, want %q", got, err, line)
	}
}

func (c client) silence() {
	c.Helper()
	if got, err := c.hears(short); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.Fatalf("%q, %v, want silence", got, err)
	}
}

func start(t *testing.T) *Proxy {
	t.Helper()
	p, err := New(echo(t, "a "))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func set(t *testing.T, p *Proxy, m Mode) {
	t.Helper()
	if err := p.Set(m); err != nil {
		t.Fatal(err)
	}
}

func TestRefuseAndPassAgain(t *testing.T) {
	p := start(t)
	before := dial(t, p)
	before.say("1")
	before.expect("a 1")
	set(t, p, Refuse)
	if got, err := before.hears(patience); err == nil {
		t.Errorf("%q", got)
	}
	if c, err := net.DialTimeout("tcp", p.Addr(), patience); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v, %v", c, err)
	}
	set(t, p, Refuse) // again is no mistake
	set(t, p, Pass)
	after := dial(t, p)
	after.say("2")
	after.expect("a 2")
}

func TestReset(t *testing.T) {
	p := start(t)
	before := dial(t, p)
	before.say("1")
	before.expect("a 1")
	set(t, p, Reset)
	if _, err := before.hears(patience); !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	// The reset may be there before connecting has returned.
	if c, err := net.DialTimeout("tcp", p.Addr(), patience); err == nil {
		during := client{t, c, bufio.NewReader(c)}
		if _, err := during.hears(patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		c.Close()
	} else if !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	set(t, p, Pass)
	after := dial(t, p)
	after.say("2")
	after.expect("a 2")
}

func TestBlackholeGoesOnWhereItWas(t *testing.T) {
	p := start(t)
	before := dial(t, p)
	before.say("1")
	before.expect("a 1")
	set(t, p, Blackhole)
	before.say("2")
	before.silence()
	during := dial(t, p)
	during.say("3")
	during.silence()
	set(t, p, Pass)
	before.expect("a 2")
	during.expect("a 3")
}

func TestHalfOpenConnectionsNeverSpeakAgain(t *testing.T) {
	p := start(t)
	before := dial(t, p)
	before.say("1")
	before.expect("a 1")
	set(t, p, HalfOpen)
	before.say("2")
	before.silence()
	after := dial(t, p)
	after.say("3")
	after.expect("a 3")
	set(t, p, Pass)
	before.say("4")
	before.silence()
	set(t, p, HalfOpen) // twice is no mistake
}

func TestSlow(t *testing.T) {
	for _, m := range []Mode{Delay, Trickle} {
		t.Run(string(m), func(t *testing.T) {
			p := start(t)
			set(t, p, m)
			c := dial(t, p)
			began := time.Now()
			c.say("a line of more than thirty-two bytes, so that it comes in pieces")
			c.expect("a a line of more than thirty-two bytes, so that it comes in pieces")
			if took := time.Since(began); took < 2*delay && m == Delay || took < 4*trickleEvery {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestTargetMoves(t *testing.T) {
	p := start(t)
	before := dial(t, p)
	before.say("1")
	before.expect("a 1")
	p.Target(echo(t, "b "))
	after := dial(t, p)
	after.say("2")
	after.expect("b 2")
	before.say("3")
	before.expect("a 3")
}

func TestCloseEndsWhatIsStuck(t *testing.T) {
	p := start(t)
	c := dial(t, p)
	c.say("1")
	c.expect("a 1")
	set(t, p, Blackhole)
	c.say("2")
	c.silence()
	p.Close() // returns
	if _, err := c.hears(patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

func TestUnknownMode(t *testing.T) {
	if err := start(t).Set("fog"); err == nil {
		t.Error("no error")
	}
}
