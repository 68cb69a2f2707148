package serverstore

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzParse parses URLs and opens the valid ones, without a call to a server. It checks that the
// errors for invalid URLs do not contain the password.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"postgres://127.0.0.1/shop?sslmode=disable&weir_prefix=x_&weir_schema=jobs", "postgresql://a,b:1/shop", "mysql://127.0.0.1/shop?tls=false&timeout=1s",
		"mariadb://127.0.0.1:3307/shop", "redis://127.0.0.1:6379/1?weir_replicas=2&weir_prefix=w:", "rediss://127.0.0.1", "redis-cluster://h?addr=h2:1", "redis-sentinel://h?master_name=m&route_randomly=1", "redis://h?protocol=9",
		"postgres://h/d?target_session_attrs=x", "mysql://h/d?x=%"} {
		f.Add(s, "p@ss")
	}
	f.Fuzz(func(t *testing.T, s, password string) {
		const mark = "Secr3t"
		if strings.Contains(s, mark) || strings.ContainsAny(s, "\x00") {
			return
		}
		scheme, rest, found := strings.Cut(s, "://")
		if !found || strings.Contains(rest, "@") || strings.Contains(s, "service") || strings.Contains(s, "ssl") || strings.Contains(s, "file") {
			return // these read files
		}
		s = scheme + "://" + url.UserPassword("weir", mark+password).String() + "@" + rest
		p, err := Parse(s)
		if err == nil {
			var store *Store
			if store, err = p.Open(); err == nil {
				err = store.Close()
			}
		}
		if err != nil && (err.Error() == "" || strings.Contains(err.Error(), mark)) {
			t.Errorf("%q: %v", s, err)
		}
	})
}
