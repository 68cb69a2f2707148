package cut

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

const patience = 10 * time.Second

// short is the time without data after which a connection counts as silent.
const short = 50 * time.Millisecond

// echo runs a server that answers each line with the line and its own name.
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

// Each case is a script of actions and results, one per line. A client connects when its name
// appears for the first time. "talks" means that it sends a line and receives the answer from the
// server with that name.
func TestConnections(t *testing.T) {
	for name, script := range map[string]string{
		"refuse, twice, and pass again": `
			before talks a
			set refuse
			before ends
			nobody gets in: refused
			set refuse
			set pass
			after talks a`,
		"reset": `
			before talks a
			set reset
			before is reset
			nobody gets in: reset
			set pass
			after talks a`,
		"a black hole goes on where it was": `
			before talks a
			set blackhole
			before says 2
			before is silent
			during says 3
			during is silent
			set pass
			before hears a 2
			during hears a 3`,
		"half-open connections never speak again": `
			before talks a
			set half-open
			before says 2
			before is silent
			after talks a
			set pass
			before says 4
			before is silent
			set half-open
			set half-open`,
		"the target moves": `
			before talks a
			target b
			after talks b
			before talks a`,
		"closing ends what is stuck": `
			before talks a
			set blackhole
			before says 2
			before is silent
			close
			before ends`,
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t)
			clients := map[string]client{}
			for line := range strings.SplitSeq(strings.TrimSpace(script), "\n") {
				perform(t, p, clients, strings.Fields(line))
			}
		})
	}
}

// perform carries out one line of a script.
func perform(t *testing.T, p *Proxy, clients map[string]client, words []string) {
	t.Helper()
	line := strings.Join(words, " ")
	switch words[0] {
	case "set":
		if err := p.Set(Mode(words[1])); err != nil {
			t.Fatal(err)
		}
		return
	case "target":
		p.Target(echo(t, words[1]+" "))
		return
	case "close":
		p.Close() // must return
		return
	case "nobody":
		nobodyGetsIn(t, p, map[string]error{"refused": syscall.ECONNREFUSED, "reset": syscall.ECONNRESET}[words[len(words)-1]])
		return
	}
	c, known := clients[words[0]]
	if !known {
		c = dial(t, p)
		clients[words[0]] = c
	}
	switch what := strings.Join(words[1:], " "); {
	case words[1] == "talks":
		c.say("hello")
		c.expect(words[2] + " hello")
	case words[1] == "says":
		c.say(words[2])
	case words[1] == "hears":
		c.expect(words[2] + " " + words[3])
	case what == "is silent":
		c.silence()
	case what == "is reset":
		if _, err := c.hears(patience); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %v", line, err)
		}
	case what == "ends":
		if got, err := c.hears(patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %q, %v", line, got, err)
		}
	default:
		t.Fatalf("%q is no line of a script", line)
	}
}

// nobodyGetsIn checks that a new connection ends with an error, either immediately or before any
// data.
func nobodyGetsIn(t *testing.T, p *Proxy, want error) {
	t.Helper()
	c, err := net.DialTimeout("tcp", p.Addr(), patience)
	if err == nil { // the end may arrive before or after the connection is established
		defer c.Close()
		_, err = client{t, c, bufio.NewReader(c)}.hears(patience)
		if errors.Is(want, syscall.ECONNREFUSED) || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("somebody got in, and then: %v", err)
		}
		return
	}
	if !errors.Is(err, want) {
		t.Error(err)
	}
}

func TestSlow(t *testing.T) {
	for _, m := range []Mode{Delay, Trickle} {
		t.Run(string(m), func(t *testing.T) {
			p := start(t)
			if err := p.Set(m); err != nil {
				t.Fatal(err)
			}
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

func TestUnknownMode(t *testing.T) {
	if err := start(t).Set("fog"); err == nil {
		t.Error("no error")
	}
}
