// Package serverstore opens a store of leases or dead letters on a database server, given by a URL.
package serverstore

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/weir-go/weir/cmd/weir/internal/redact"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/redisstore"
	"github.com/weir-go/weir/store/sqlstore"
)

// Schemes contains the schemes of the accepted URLs.
var Schemes = []string{"postgres", "postgresql", "mysql", "mariadb", "redis", "rediss", "redis-cluster", "rediss-cluster", "redis-sentinel", "rediss-sentinel"}

// Place is a parsed URL.
type Place struct {
	url      *url.URL
	dialect  sqlstore.Dialect // 0 for Redis
	prefix   string
	schema   string
	replicas int
}

// Parse parses a URL such as postgres://user@host/database. The URL may have the parameters of the
// server's client. It may also have weir_prefix, weir_schema (Postgres and MySQL) and weir_replicas
// (Redis).
func Parse(s string) (Place, error) {
	u, err := url.Parse(s)
	if err != nil {
		// The error of package url contains the whole URL with its password, so do not use it.
		return Place{}, errors.New("it is not a URL: write characters such as @ and / in a password as %40 and %2F")
	}
	p := Place{url: u}
	switch u.Scheme {
	case "postgres", "postgresql":
		p.dialect = sqlstore.Postgres
	case "mysql", "mariadb":
		p.dialect = sqlstore.MySQL
	case "redis", "rediss", "redis-cluster", "rediss-cluster", "redis-sentinel", "rediss-sentinel":
	default:
		return Place{}, fmt.Errorf("there is no server of the kind %s", u.Scheme)
	}
	if u.Hostname() == "" {
		return Place{}, fmt.Errorf("it names no server: write it like %s://user@host/database", u.Scheme)
	}
	query := u.Query()
	take := func(name string, allowed bool) string {
		v := query.Get(name)
		if v != "" && !allowed {
			err = fmt.Errorf("%s does not apply to %s", name, u.Scheme)
		}
		query.Del(name)
		return v
	}
	p.prefix = take("weir_prefix", true)
	p.schema = take("weir_schema", p.dialect != 0)
	if n := take("weir_replicas", p.dialect == 0); n != "" && err == nil {
		if p.replicas, err = strconv.Atoi(n); err != nil || p.replicas < 0 {
			err = fmt.Errorf("weir_replicas is %q: want a number of replicas", n)
		}
	}
	if strings.HasSuffix(u.Scheme, "-sentinel") && query.Get("master_name") == "" && err == nil {
		err = fmt.Errorf("it does not say whom the sentinels watch over: write it like %s://%s?master_name=NAME", u.Scheme, u.Host)
	}
	if p.dialect != 0 && len(strings.Trim(u.Path, "/")) == 0 {
		err = fmt.Errorf("it names no database: write it like %s://user@%s/database", u.Scheme, u.Host)
	}
	if err != nil {
		return Place{}, err
	}
	rest := *u
	rest.RawQuery = query.Encode()
	p.url = &rest
	return p, nil
}

type store interface {
	lease.Store
	lease.Admin
	lease.Historian
}

// Store is a lease store on a server. Close it after the last use.
type Store struct {
	store
	io.Closer
	migrate  func(context.Context) error
	schema   func() string
	since    func(int) (string, error)
	warnings func(context.Context) ([]string, error)
}

// Migrate creates the tables that the store needs. It may be repeated. For Redis it does nothing.
func (s *Store) Migrate(ctx context.Context) error {
	if s.migrate == nil {
		return nil
	}
	return s.migrate(ctx)
}

// Schema returns the statements that Migrate runs, or "" if there are none.
func (s *Store) Schema() string {
	if s.schema == nil {
		return ""
	}
	return s.schema()
}

// SchemaSince returns the statements that Migrate runs if the tables have the given version. Do not
// call it for Redis.
func (s *Store) SchemaSince(version int) (string, error) { return s.since(version) }

// Warnings returns warnings about settings of the server that could cause lost progress.
func (s *Store) Warnings(ctx context.Context) ([]string, error) {
	if s.warnings == nil {
		return nil, nil
	}
	return s.warnings(ctx)
}

// Open returns the store. It does not call the server.
func (p Place) Open() (*Store, error) {
	if p.dialect == 0 {
		return p.openRedis()
	}
	db, err := p.openSQL()
	if err != nil {
		return nil, err
	}
	s, err := sqlstore.New(db, sqlstore.Options{Dialect: p.dialect, Prefix: p.prefix, Schema: p.schema})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{store: s, Closer: db, migrate: s.Migrate, schema: s.Schema, since: s.SchemaSince}, nil
}

func (p Place) openSQL() (*sql.DB, error) {
	if p.dialect == sqlstore.Postgres {
		// Parse now. The error of a connection would come later and contain the URL.
		c, err := pgx.ParseConfig(p.url.String())
		if err != nil {
			return nil, p.plain(err)
		}
		db := stdlib.OpenDB(*c)
		db.SetMaxOpenConns(4)
		return db, nil
	}
	host := p.url.Host
	if p.url.Port() == "" {
		host = net.JoinHostPort(p.url.Hostname(), "3306")
	}
	c, err := mysql.ParseDSN("tcp(" + host + ")/" + url.PathEscape(strings.Trim(p.url.Path, "/")) + "?" + p.url.RawQuery)
	if err != nil {
		return nil, p.plain(err)
	}
	c.User = p.url.User.Username()
	c.Passwd, _ = p.url.User.Password()
	c.InterpolateParams = true // one round trip per statement
	c.Logger = &mysql.NopLogger{}
	if c.Params["wait_timeout"] == "" {
		// Limit how long a vanished process can hold locks. A process, its machine or its network
		// may fail in the middle of a transaction.
		if c.Params == nil {
			c.Params = map[string]string{}
		}
		c.Params["wait_timeout"] = "10"
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(4)
	return db, nil
}

// Dialect returns the dialect of the database, or 0 for Redis.
func (p Place) Dialect() sqlstore.Dialect { return p.dialect }

// SQL returns the database, for tables of other programs. It does not call the server.
func (p Place) SQL() (*sql.DB, error) { return p.openSQL() }

func (p Place) openRedis() (*Store, error) {
	client, err := p.Redis()
	if err != nil {
		return nil, err
	}
	s, err := redisstore.New(client, redisstore.Options{Prefix: p.prefix, Replicas: p.replicas})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &Store{store: s, Closer: client, warnings: s.Warnings}, nil
}

// Redis returns a client of the server, also for keys of other programs. It does not call the
// server.
func (p Place) Redis() (redis.UniversalClient, error) {
	// Disable the client's own messages on standard error: they are about calls that are repeated
	// anyway.
	logging.Disable()
	u := *p.url
	var client redis.UniversalClient
	if scheme, cluster := strings.CutSuffix(u.Scheme, "-cluster"); cluster {
		u.Scheme = scheme
		o, err := redis.ParseClusterURL(u.String())
		if err != nil {
			return nil, p.plain(err)
		}
		o.ContextTimeoutEnabled = true
		serverName(o.TLSConfig, u.Hostname())
		client = redis.NewClusterClient(o)
	} else if scheme, sentinel := strings.CutSuffix(u.Scheme, "-sentinel"); sentinel {
		u.Scheme = scheme
		o, err := redis.ParseFailoverURL(u.String())
		if err != nil {
			return nil, p.plain(err)
		}
		o.ContextTimeoutEnabled = true
		// Only the primary has the current leases.
		o.RouteByLatency, o.RouteRandomly, o.ReplicaOnly = false, false, false
		client = redis.NewFailoverClient(o)
	} else {
		o, err := redis.ParseURL(u.String())
		if err != nil {
			return nil, p.plain(err)
		}
		o.ContextTimeoutEnabled = true
		client = redis.NewClient(o)
	}
	return client, nil
}

// serverName makes the client check the certificate of each server of a cluster against the host
// name in the URL.
func serverName(c *tls.Config, name string) {
	if c != nil && c.ServerName == "" {
		c.ServerName = name
	}
}

// plain removes the password from an error of a client. The error may quote the URL or a part of
// it.
func (p Place) plain(err error) error {
	text := redact.Text(strings.ReplaceAll(err.Error(), p.url.String(), redact.URL(p.url.String())))
	var secrets []string
	if password, ok := p.url.User.Password(); ok {
		secrets = append(secrets, password)
	}
	for name, values := range p.url.Query() {
		if strings.Contains(strings.ToLower(name), "pass") {
			secrets = append(secrets, values...)
		}
	}
	for _, secret := range secrets {
		if secret != "" {
			text = strings.NewReplacer(secret, "xxxxx", url.QueryEscape(secret), "xxxxx", url.PathEscape(secret), "xxxxx").Replace(text)
		}
	}
	return errors.New(text)
}
