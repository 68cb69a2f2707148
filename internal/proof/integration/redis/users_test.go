package redis_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/internal/proof/integration/roles"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/store/redisstore"
)

var userLine = regexp.MustCompile(`(?m)^ACL SETUSER (\S+) (.*)$`)

// The users in docs/security.md can do their work.
func TestTheDocumentedUsersCanDoTheirWork(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	d := servers.Redis(t)
	admin := client(t, d.Addr)
	works := map[string]func(*redisstore.Store, string) error{
		"weir": func(s *redisstore.Store, app string) error {
			if err := roles.Work(t.Context(), s, app); err != nil {
				return err
			}
			return roles.Change(t.Context(), s, app+"-changed")
		},
		"look": func(s *redisstore.Store, app string) error { return roles.Look(t.Context(), s, app) },
	}
	for _, line := range userLine.FindAllStringSubmatch(string(page), -1) {
		name, rights := line[1], strings.Fields(strings.Replace(line[2], ">PASSWORD", ">secret", 1))
		do := works[name]
		if do == nil {
			t.Errorf("nobody knows what %s does", name)
			continue
		}
		delete(works, name)
		if name == "weir" { // as documented, this user may also list applications
			rights = append(rights, "+scan")
		}
		command := []any{"ACL", "SETUSER", name}
		for _, r := range rights {
			command = append(command, r)
		}
		say(t, admin, command...)
		c := redis.NewClient(&redis.Options{Addr: d.Addr, Username: name, Password: "secret", ContextTimeoutEnabled: true})
		t.Cleanup(func() { c.Close() })
		s, err := redisstore.New(c, redisstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := do(s, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name := range works {
		t.Errorf("docs/security.md has no user %s", name)
	}
}
