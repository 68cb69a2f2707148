package serverstore

import (
	"strings"
	"testing"
)

func TestURLs(t *testing.T) {
	for s, schema := range map[string]string{
		"postgres://weir:p%40ss@127.0.0.1/shop?sslmode=disable&weir_prefix=x_&weir_schema=jobs": `CREATE TABLE "jobs".x_leases`,
		"postgresql://127.0.0.1:5432/shop":                                                                        "CREATE TABLE weir_leases",
		"mysql://weir:p%40ss@127.0.0.1/shop?tls=false&weir_schema=jobs":                                           "CREATE TABLE IF NOT EXISTS `jobs`.weir_leases",
		"mariadb://127.0.0.1:3307/shop":                                                                           "CREATE TABLE IF NOT EXISTS weir_leases",
		"redis://:pass@127.0.0.1:6379/1?weir_replicas=2&weir_prefix=w:":                                           "",
		"rediss://127.0.0.1:6379":                                                                                 "",
		"redis-cluster://127.0.0.1:6379?addr=127.0.0.1:6380":                                                      "",
		"rediss-cluster://user:pass@127.0.0.1:6379":                                                               "",
		"redis-sentinel://127.0.0.1?master_name=m&addr=127.0.0.2:26379&route_by_latency=true&route_randomly=true": "",
		"rediss-sentinel://user:pass@127.0.0.1:26379/1?master_name=m&username=u&password=p&weir_prefix=w:":        "",
	} {
		p, err := Parse(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		store, err := p.Open()
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if got := store.Schema(); !strings.Contains(got, schema) || (schema == "") != (got == "") {
			t.Errorf("%s has the schema %q", s, got)
		}
		if err := store.Close(); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestWrongURLsAreErrorsWithoutThePassword(t *testing.T) {
	for s, want := range map[string]string{
		"postgres://weir:secret@/shop":                            "names no server",
		"postgres://weir:secret@127.0.0.1":                        "names no database",
		"postgres://weir:secret@127.0.0.1/":                       "names no database",
		"postgres://weir:secret@[::1/shop":                        "not a URL",
		"mysql://weir:secret@127.0.0.1/shop?weir_replicas=1":      "does not apply to mysql",
		"redis://weir:secret@127.0.0.1?weir_replicas=-1":          "weir_replicas",
		"redis://weir:secret@127.0.0.1?weir_schema=x":             "does not apply to redis",
		"redis://weir:secret@127.0.0.1/secret":                    "",
		"postgres://weir:secret@127.0.0.1/shop?weir_prefix=a-b":   "Prefix",
		"redis://weir:secret@127.0.0.1?weir_prefix=%7B":           "Prefix",
		"redis-sentinel://weir:secret@127.0.0.1":                  "whom the sentinels watch over",
		"redis-sentinel://h?master_name=m&addr=x&password=secret": "addr",
		"oracle://weir:secret@127.0.0.1/shop":                     "no server of the kind",
	} {
		p, err := Parse(s)
		if err == nil {
			_, err = p.Open()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want an error with %q and without the password", s, err, want)
		}
	}
}
