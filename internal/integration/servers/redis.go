package servers

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Redis starts a Redis (or Valkey) server that logs every write to a file before it answers. More settings may be given, as
// on its command line: "--appendonly", "no".
func Redis(t testing.TB, settings ...string) *Database {
	t.Helper()
	dir := fetched(t, "debian")
	env := environment(t, dir)
	server := program(t, dir, "usr/bin/redis-server", "usr/bin/valkey-server")
	d := newDatabase(t, "Redis", false)
	d.stop = syscall.SIGTERM
	d.command = func() *exec.Cmd {
		cmd := exec.Command(server, append([]string{"--bind", "127.0.0.1", "--port", d.Port(), "--dir", d.Dir, "--save", "",
			"--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"}, settings...)...)
		cmd.Env = env
		return cmd
	}
	d.ready = func(ctx context.Context) error {
		said, err := d.say(ctx, "PING")
		if err == nil && said != "+PONG" {
			err = fmt.Errorf("PING: %s", said)
		}
		return err
	}
	d.boot()
	return d
}

// say sends one command and returns the first line of the answer.
func (d *Database) say(ctx context.Context, command string) (string, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", d.Addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(c, "%s\r\n", command); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line), err
}
