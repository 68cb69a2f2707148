package command_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/sqltest"
	"github.com/weir-go/weir/internal/proof/wronginput"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/sqlstore"
)

// If a database refuses a name, a password or a permission, the command returns the right exit code
// and prints one sentence.
func TestWrongInputsToDatabases(t *testing.T) {
	weir := built(t)
	dir := t.TempDir()
	server := kinesistest.NewServer(t)
	server.CreateStream("s", 1)
	w := wrongDatabases{endpoint: " --endpoint " + server.URL()}
	for name, of := range map[string]func(*testing.T) []wronginput.Input{
		"Postgres": w.postgres, "MySQL": w.mysql, "MariaDB": w.mariadb, "Redis": w.redis, "DynamoDB": w.dynamo,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wronginput.Run(t, wronginput.Command{Path: weir, Env: wronginput.Settings(dir), Dir: dir}, of(t))
		})
	}
}

// wrongDatabases creates inputs with unusable databases.
type wrongDatabases struct {
	endpoint string // flag for a Kinesis server with the stream s
}

// fails returns an input whose store makes a command fail.
func (w wrongDatabases) fails(subject, name, args, store string, says ...string) wronginput.Input {
	in := wronginput.Input{Subject: subject, Name: name, Args: args + " --store " + store, Code: 1, Says: says}
	if strings.HasPrefix(args, "consume") {
		in.Args += " --stream s --app a" + w.endpoint
	}
	return in
}

// behind returns an input whose URL belongs to another kind of server. In some of these cases,
// client and server wait for each other.
func (w wrongDatabases) behind(server, name, url string) wronginput.Input {
	in := w.fails(server, name+" for it", "group list --connect-timeout 7s", url, server, " answers at ", " instead of ", ": check --store")
	in.Until = 7 * time.Second
	return in
}

// imported sets the standard input of an input to saved progress, for a command that imports
// progress.
func imported(in wronginput.Input) wronginput.Input {
	in.Stdin = strings.NewReader(`{"weir":"progress","version":1,"app":"a","leases":0,"paused":["s"]}`)
	return in
}

// misused marks an input as an invalid command line.
func misused(in wronginput.Input) wronginput.Input {
	in.Code = 2
	return in
}

// tables returns inputs that are wrong with every SQL database. url belongs to a database with
// tables, and to a user with all permissions. nothing is the text for a user without permissions.
// The users clerk (without permissions) and reader (with read permissions) have the password
// "right".
func (w wrongDatabases) tables(subject, url, nothing string) []wronginput.Input {
	fails := func(name, args, store string, says ...string) wronginput.Input {
		return w.fails(subject, name, args, store, says...)
	}
	as := func(user string) string { return strings.Replace(url, "weir@", user+"@", 1) }
	in := func(database string) string { // the user has the same name
		return regexp.MustCompile(`/weir\b([^@]|$)`).ReplaceAllString(url, "/"+database+"$1")
	}
	and := "?"
	if strings.Contains(url, "?") {
		and = "&"
	}
	return []wronginput.Input{
		fails("a database that is not there", "group list", in("nosuch"), "nosuch"),
		fails("a database that is not there, to consume with", "consume", in("nosuch"), "nosuch"),
		fails("a database without tables", "group list", in("bare"), "no tables", "weir store create"),
		fails("a database without tables, to consume with", "consume", in("bare"), "no tables", "weir store create"),
		fails("another prefix than the tables have", "group list", url+and+"weir_prefix=other_", "no tables", "weir store create"),
		fails("a schema that is not there", "store create", url+and+"weir_schema=nosuch", "nosuch"),
		fails("a user that is not there", "group list", as("stranger:"+wronginput.Secret), "stranger"),
		fails("a wrong password", "group list", as("clerk:"+wronginput.Secret), "clerk", "password"),
		fails("no password", "group list", as("clerk"), "clerk", "password"),
		fails("a user who may do nothing", "group list", as("clerk:right"), nothing),
		fails("a user who may make no tables", "store create", as("clerk:right")+and+"weir_prefix=new_", "grant"),
		fails("a user who may only look, to consume with", "consume", as("reader:right"), "the user may not do this", "grant"),
		fails("a user who may only look, to pause", "group pause --app a", as("reader:right"), "the user may not do this", "grant"),
		fails("tables of an older version", "group list", in("older"), "version 1", "weir store create"),
	}
}

// databases creates the databases that tables uses.
func (w wrongDatabases) databases(t *testing.T, kind sqltest.Kind, dsn func(database string) string) *sql.DB {
	t.Helper()
	store, db := kind.Migrated(t, dsn("weir"))
	sqltest.Group(t, store, "a", 1, 1)
	sqltest.Exec(t, db, "CREATE DATABASE bare")
	sqltest.Exec(t, db, "CREATE DATABASE older")
	_, older := kind.Migrated(t, dsn("older"))
	sqltest.Exec(t, older, "UPDATE weir_schema SET version = 1")
	return db
}

func (w wrongDatabases) postgres(t *testing.T) []wronginput.Input {
	d := servers.Postgres(t)
	db := w.databases(t, sqltest.Kind{Driver: "pgx", Dialect: sqlstore.Postgres}, d.PostgresURL)
	for _, statement := range []string{
		"CREATE USER clerk PASSWORD 'right'", "CREATE USER reader PASSWORD 'right'",
		"REVOKE ALL ON SCHEMA public FROM PUBLIC", "GRANT USAGE ON SCHEMA public TO reader", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
	} {
		sqltest.Exec(t, db, statement)
	}
	const access = "host all weir 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
	if err := os.WriteFile(filepath.Join(d.Dir, "data", "pg_hba.conf"), []byte(access), 0o600); err != nil {
		t.Error(err)
	}
	sqltest.Exec(t, db, "SELECT pg_reload_conf()")
	url := "postgres://weir@" + d.Addr + "/weir?sslmode=disable"
	return append(w.tables("Postgres", url, "that this user may see"),
		w.fails("Postgres", "TLS where there is none", "group list", "postgres://weir@"+d.Addr+"/weir?sslmode=require", "TLS"),
		w.behind("Postgres", "a MySQL URL", "mysql://weir@"+d.Addr+"/weir"),
		w.behind("Postgres", "a Redis URL", "redis://"+d.Addr),
	)
}

func (w wrongDatabases) mysql(t *testing.T) []wronginput.Input {
	d := servers.MySQL(t)
	db := w.databases(t, sqltest.Kind{Driver: "mysql", Dialect: sqlstore.MySQL}, d.MySQLDSN)
	w.mysqlUsers(t, db)
	return append(w.tables("MySQL", "mysql://weir@"+d.Addr+"/weir", "grant"),
		w.behind("MySQL", "a Postgres URL", "postgres://weir@"+d.Addr+"/weir?sslmode=disable"),
		w.behind("MySQL", "a Redis URL", "redis://"+d.Addr),
	)
}

func (w wrongDatabases) mariadb(t *testing.T) []wronginput.Input {
	d := servers.MariaDB(t)
	kind := sqltest.Kind{Driver: "mysql", Dialect: sqlstore.MySQL}
	db := w.databases(t, kind, d.MySQLDSN)
	db.SetMaxOpenConns(1) // one connection only: one opened before the users exist may create them
	for _, statement := range []string{"FLUSH PRIVILEGES", "CREATE USER IF NOT EXISTS weir@'127.0.0.1'", "GRANT ALL ON *.* TO weir@'127.0.0.1' WITH GRANT OPTION"} {
		sqltest.Exec(t, db, statement)
	}
	w.mysqlUsers(t, db)
	return append(w.tables("MariaDB", "mysql://weir@"+d.Addr+"/weir", "grant"),
		w.behind("MariaDB", "a Postgres URL", "postgres://weir@"+d.Addr+"/weir?sslmode=disable"),
	)
}

func (w wrongDatabases) mysqlUsers(t *testing.T, db *sql.DB) {
	for _, statement := range []string{
		"CREATE USER clerk@'127.0.0.1' IDENTIFIED BY 'right'", "CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'right'", "GRANT SELECT ON weir.* TO reader@'127.0.0.1'",
	} {
		sqltest.Exec(t, db, statement)
	}
}

func (w wrongDatabases) redis(t *testing.T) []wronginput.Input {
	d := servers.Redis(t, "--user", "reader", "on", ">right", "~*", "+@read", "+@connection", "--user", "keys", "on", ">right", "~other:*", "+@all")
	full := servers.Redis(t)
	for addr, command := range map[string][]any{
		d.Addr:    {"CONFIG", "SET", "requirepass", "right"},
		full.Addr: {"CONFIG", "SET", "maxmemory", "1"},
	} {
		c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
		if err := c.Do(t.Context(), command...).Err(); err != nil {
			t.Error(err)
		}
		_ = c.Close()
	}
	fails := func(name, args, store string, says ...string) wronginput.Input {
		return w.fails("Redis", name, args, store, says...)
	}
	at := func(user string) string { return "redis://" + user + d.Addr + "/0" }
	return []wronginput.Input{
		fails("no password", "group list", at(""), "password"),
		fails("a wrong password", "group list", at(":"+wronginput.Secret+"@"), "password"),
		fails("a user that is not there", "group list", at("stranger:"+wronginput.Secret+"@"), "user"),
		fails("a user who may only look, to consume with", "consume", at("reader:right@"), "may not"),
		fails("a user of other keys", "group describe --app a", at("keys:right@"), "may not"),
		fails("a database number that is not there", "group list", "redis://:right@"+d.Addr+"/99", "no database with this number"),
		misused(fails("a database that is no number", "group list", "redis://:right@"+d.Addr+"/weir", "weir")),
		imported(fails("a server that is full", "group import --app a --yes -", "redis://"+full.Addr, "memory", "maxmemory")),
		fails("a cluster that is none", "group list", "redis-cluster://:right@"+d.Addr, "cluster"),
		fails("sentinels that are none", "group list", "redis-sentinel://"+d.Addr+"?master_name=m&password=right", "not a sentinel"),
		w.behind("Redis", "a Postgres URL", "postgres://weir@"+d.Addr+"/weir?sslmode=disable"),
		w.behind("Redis", "a MySQL URL", "mysql://weir@"+d.Addr+"/weir"),
	}
}

func (w wrongDatabases) dynamo(t *testing.T) []wronginput.Input {
	s := servers.DynamoDBLocal(t)
	client := s.DynamoDB()
	_, err := client.CreateTable(context.WithoutCancel(t.Context()), &dynamodb.CreateTableInput{
		TableName: aws.String("customers"), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("name"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("name"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		t.Error(err)
	}
	at := " --dynamodb-endpoint " + s.URL
	fails := func(name, args, store string, says ...string) wronginput.Input {
		in := w.fails("DynamoDB", name, args, store, says...)
		in.Args += at
		in.Env = []string{"AWS_REGION=" + servers.Region}
		return in
	}
	return []wronginput.Input{
		fails("a table that is not there", "group list", "dynamodb:nosuch", "no DynamoDB table nosuch", "weir store create"),
		fails("a table that is not there, to consume with", "consume", "dynamodb:nosuch", "no DynamoDB table nosuch", "weir store create"),
		fails("a table of others", "group list", "dynamodb:customers", "customers"),
		fails("a table of others, to consume with", "consume", "dynamodb:customers", "customers"),
		fails("a table of others, to make", "store create", "dynamodb:customers", "customers"),
		fails("an application that is not there", "group describe --app none", "dynamodb:nosuch", "no DynamoDB table nosuch"),
	}
}
