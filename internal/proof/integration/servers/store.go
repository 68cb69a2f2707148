package servers

import (
	"context"
	"database/sql"
	"fmt"
	"io"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/dynamostore"
	"github.com/weir-go/weir/store/redisstore"
	"github.com/weir-go/weir/store/sqlstore"
)

// The kinds of store for OpenStore. Besides the kind, a process needs only a place: a path, a data
// source name, a URL, or an address.
const (
	SQLiteStore   = "SQLite"
	PostgresStore = "Postgres"
	DynamoDBStore = "DynamoDB Local"
	MySQLStore    = "MySQL" // or MariaDB
	RedisStore    = "Redis" // or Valkey
)

// OpenStore opens the store of the given kind at a place.
func OpenStore(kind, place string) (lease.Store, io.Closer, error) {
	switch kind {
	case DynamoDBStore:
		return dynamostore.New((&Server{URL: place}).DynamoDB(), dynamostore.Options{Table: "weir"}), io.NopCloser(nil), nil
	case PostgresStore:
		db, err := sql.Open("pgx", place)
		if err != nil {
			return nil, nil, err
		}
		db.SetMaxOpenConns(4)
		s, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.Postgres})
		return s, db, err
	case RedisStore:
		client := redisClient(place)
		s, err := redisstore.New(client, redisstore.Options{})
		return s, client, err
	case MySQLStore:
		db, err := sql.Open("mysql", place)
		if err != nil {
			return nil, nil, err
		}
		db.SetMaxOpenConns(4)
		s, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.MySQL})
		return s, db, err
	case SQLiteStore:
		db, err := sql.Open("sqlite", place)
		if err != nil {
			return nil, nil, err
		}
		s, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.SQLite})
		return s, db, err
	}
	return nil, nil, fmt.Errorf("no store is called %q", kind)
}

// PrepareStore creates the tables of the store at a place.
func PrepareStore(ctx context.Context, kind, place string) error {
	s, closer, err := OpenStore(kind, place)
	if err != nil {
		return err
	}
	defer closer.Close()
	switch s := s.(type) {
	case *sqlstore.Store:
		return s.Migrate(ctx)
	case *dynamostore.Store:
		return s.Migrate(ctx)
	}
	return nil
}
