package redisstore

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/lease"
)

// A server that does not know the command AUTH quotes the command, with the password, in its error.
// Programs log errors of heartbeats, so the password must not be in them.
func TestNoErrorQuotesThePassword(t *testing.T) {
	const planted = "Pl4ntedS3cr3t"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(c)
			for {
				line, err := in.ReadString('\n')
				if err != nil {
					break
				}
				if strings.HasPrefix(line, "*") {
					fmt.Fprintf(c, "-ERR unknown command 'AUTH', with args beginning with: 'weir' '%s' \r\n", planted)
				}
			}
			c.Close()
		}
	}()
	client := redis.NewClient(&redis.Options{Addr: l.Addr().String(), Username: "weir", Password: planted, ContextTimeoutEnabled: true, MaxRetries: -1})
	s, err := New(client, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, beatErr := s.Heartbeat(t.Context(), "app", lease.Report{Session: "a", First: true})
	_, viewErr := s.View(t.Context(), "app", "")
	_, appsErr := s.Apps(t.Context())
	for _, err := range []error{beatErr, viewErr, appsErr, s.Remove(t.Context(), "app")} {
		if err == nil || !strings.Contains(err.Error(), "unknown command") {
			t.Errorf("%v is not what the server said", err)
			continue
		}
		if said := fmt.Sprintf("%v %+v %s", err, err, err); strings.Contains(said, planted) {
			t.Errorf("%s has the password in it", said)
		}
		var reply redis.Error
		if !errors.As(err, &reply) {
			t.Errorf("%v is not the client's error any more", err)
		}
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	l.Close()
	<-served
}
