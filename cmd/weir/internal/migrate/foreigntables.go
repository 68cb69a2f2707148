package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/redact"
	"github.com/weir-go/weir/cmd/weir/internal/serverstore"
	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/foreign"
	"github.com/weir-go/weir/store/sqlstore"
)

// open opens the tables of the old client.
func (o *foreignOptions) open(
	ctx context.Context, t cli.Terminal, stream change.Stream, first map[string]string,
) (foreignTable, error) {
	rows := foreignRows{o: o, stream: stream, first: first}
	if o.source == "" || o.groupTable != "" {
		client, err := o.AWS.DynamoDB(ctx, t)
		if err != nil {
			return nil, err
		}
		rows.client = client
	}
	if o.of.client != foreign.Harlow {
		return &rows, nil
	}
	h := &harlowTable{foreignRows: rows, space: foreign.HarlowSpace(o.oldApp, stream.Name)}
	if o.source == "" {
		h.positions = &harlowDynamo{h}
		return h, nil
	}
	place, err := serverstore.Parse(o.source)
	if err != nil {
		return nil, err
	}
	if place.Dialect() == 0 {
		client, err := place.Redis()
		if err != nil {
			return nil, cli.Usagef("--source: %v", err)
		}
		h.positions = &harlowRedis{client, o.oldApp, stream}
		return h, nil
	}
	db, err := place.SQL()
	if err != nil {
		return nil, cli.Usagef("--source: %v", err)
	}
	h.positions = &harlowSQL{db, place.Dialect(), o.table, h.space, redact.URL(o.source)}
	return h, nil
}

// foreignRows are tables in DynamoDB of all clients but harlow/kinesis-consumer.
type foreignRows struct {
	o      *foreignOptions
	client *dynamodb.Client
	stream change.Stream
	first  map[string]string
}

func (f *foreignRows) close() {}

func (f *foreignRows) read(ctx context.Context) (foreign.State, error) {
	switch f.o.of.client {
	case foreign.VMware:
		items, err := scanAll(ctx, f.client, f.o.table)
		if err != nil {
			return foreign.State{}, err
		}
		return foreign.ReadVMware(items, f.o.failover)
	case foreign.Kinsumer:
		checkpoints, clients, _ := foreign.KinsumerTables(f.o.oldApp)
		rows, err := scanAll(ctx, f.client, checkpoints)
		if err != nil {
			return foreign.State{}, err
		}
		alive, err := scanAll(ctx, f.client, clients)
		if err != nil {
			return foreign.State{}, err
		}
		return foreign.ReadKinsumer(rows, alive, f.o.failover)
	}
	it, err := getItem(ctx, f.client, f.o.table, foreign.LifionKey(f.o.oldApp, f.stream.Name))
	if err != nil {
		return foreign.State{}, err
	}
	return foreign.ReadLifion(it, f.stream, f.first, f.o.failover)
}

func (f *foreignRows) write(ctx context.Context, w foreign.Write) (bool, error) {
	switch f.o.of.client {
	case foreign.VMware:
		return update(ctx, f.client, f.o.table, foreign.VMwareUpdate(w))
	case foreign.Kinsumer:
		checkpoints, _, _ := foreign.KinsumerTables(f.o.oldApp)
		return update(ctx, f.client, checkpoints, foreign.KinsumerUpdate(w, time.Now()))
	}
	it := foreign.LifionItem(f.o.oldApp, f.stream.Name, f.stream.Born)
	if err := putNew(ctx, f.client, f.o.table, it, "consumerGroup"); err != nil {
		return false, err
	}
	return update(ctx, f.client, f.o.table, foreign.LifionUpdate(w, f.o.oldApp, f.stream.Name))
}

func (f *foreignRows) create(ctx context.Context) error {
	switch f.o.of.client {
	case foreign.VMware:
		return createTable(ctx, f.client, f.o.table, "ShardID")
	case foreign.Kinsumer:
		checkpoints, clients, metadata := foreign.KinsumerTables(f.o.oldApp)
		return errors.Join(
			createTable(ctx, f.client, checkpoints, "Shard"),
			createTable(ctx, f.client, clients, "ID"),
			createTable(ctx, f.client, metadata, "Key"),
		)
	}
	return createTable(ctx, f.client, f.o.table, "consumerGroup", "streamName")
}

// positions is a place for positions of harlow/kinesis-consumer.
type positions interface {
	numbers(ctx context.Context) (map[string]string, error)
	// put stores a number on condition that the stored one is still was. "" is no number.
	put(ctx context.Context, w foreign.Write, was string) (bool, error)
	create(ctx context.Context) error
	close()
}

// harlowTable holds positions, and the leases of a consumer group if there is one.
type harlowTable struct {
	foreignRows
	positions
	space string
}

func (h *harlowTable) close() { h.positions.close() }

func (h *harlowTable) read(ctx context.Context) (foreign.State, error) {
	numbers, err := h.numbers(ctx)
	if err != nil {
		return foreign.State{}, err
	}
	var group []foreign.Item
	if h.o.groupTable != "" {
		space := foreign.HarlowGroup(h.o.oldApp, h.stream.Name)
		if group, err = queryAll(ctx, h.client, h.o.groupTable, "namespace", space); err != nil {
			return foreign.State{}, err
		}
	}
	return foreign.ReadHarlow(numbers, group, h.o.failover)
}

func (h *harlowTable) write(ctx context.Context, w foreign.Write) (bool, error) {
	if !w.To.IsEnd() {
		was, _ := w.Row.Was["sequence_number"].(string)
		if happened, err := h.put(ctx, w, was); !happened || err != nil {
			return happened, err
		}
	}
	if h.o.groupTable == "" {
		return true, nil
	}
	space := foreign.HarlowGroup(h.o.oldApp, h.stream.Name)
	return overwrite(ctx, h.client, h.o.groupTable, foreign.HarlowLeaseUpdate(w, space, true))
}

func (h *harlowTable) create(ctx context.Context) error {
	if err := h.positions.create(ctx); err != nil || h.o.groupTable == "" {
		return err
	}
	return createTable(ctx, h.client, h.o.groupTable, "namespace", "shard_id")
}

// harlowDynamo holds positions in DynamoDB.
type harlowDynamo struct{ h *harlowTable }

func (d *harlowDynamo) close() {}

func (d *harlowDynamo) numbers(ctx context.Context) (map[string]string, error) {
	items, err := queryAll(ctx, d.h.client, d.h.o.table, "namespace", d.h.space)
	if err != nil {
		return nil, err
	}
	return foreign.HarlowPositions(items, d.h.space)
}

func (d *harlowDynamo) put(ctx context.Context, w foreign.Write, _ string) (bool, error) {
	u, needed := foreign.HarlowUpdate(w, d.h.space)
	if !needed {
		return true, nil
	}
	return update(ctx, d.h.client, d.h.o.table, u)
}

func (d *harlowDynamo) create(ctx context.Context) error {
	return createTable(ctx, d.h.client, d.h.o.table, "namespace", "shard_id")
}

// harlowRedis holds positions in Redis.
type harlowRedis struct {
	client redis.UniversalClient
	app    string
	stream change.Stream
}

func (r *harlowRedis) close() { _ = r.client.Close() }

func (r *harlowRedis) key(id string) string { return foreign.HarlowKey(r.app, r.stream.Name, id) }

// numbers reads one key for each shard of the stream. Rows of shards that are gone do not matter.
func (r *harlowRedis) numbers(ctx context.Context) (map[string]string, error) {
	found := map[string]string{}
	for _, sh := range r.stream.Shards {
		number, err := r.client.Get(ctx, r.key(sh.ID)).Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[sh.ID] = number
	}
	return found, nil
}

// swap sets a key to a number, or deletes it, if it still has the old value.
var swap = redis.NewScript(`
local now = redis.call('GET', KEYS[1]) or ''
if now ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2]) end
return 1`)

func (r *harlowRedis) put(ctx context.Context, w foreign.Write, was string) (bool, error) {
	n, err := swap.Run(ctx, r.client, []string{r.key(w.Row.Shard)}, was, w.Raw).Int()
	return n == 1, err
}

func (r *harlowRedis) create(context.Context) error { return nil }

// sqlTable matches the name of a table, with an optional schema.
var sqlTable = regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]{0,62}\.)?[a-zA-Z_][a-zA-Z0-9_]{0,62}$`)

// harlowSQL holds positions in Postgres or MySQL.
type harlowSQL struct {
	db      *sql.DB
	dialect sqlstore.Dialect
	table   string
	space   string
	url     string
}

func (s *harlowSQL) close() { _ = s.db.Close() }

// query replaces each ? by the parameter's form in the dialect, and the words in braces by the
// table and by types.
func (s *harlowSQL) query(text string) string {
	text = strings.ReplaceAll(text, "{table}", s.table)
	if s.dialect != sqlstore.Postgres {
		return strings.NewReplacer("{text}", "char(200)", "{number}", "decimal(65,0)").Replace(text)
	}
	for n := 1; strings.Contains(text, "?"); n++ {
		text = strings.Replace(text, "?", fmt.Sprintf("$%d", n), 1)
	}
	return strings.NewReplacer("{text}", "text", "{number}", "numeric").Replace(text)
}

func (s *harlowSQL) numbers(ctx context.Context) (map[string]string, error) {
	rows, err := s.db.QueryContext(ctx,
		s.query("SELECT shard_id, CAST(sequence_number AS {text}) FROM {table} WHERE namespace = ?"), s.space)
	if err != nil {
		return nil, fmt.Errorf("table %s in %s: %w", s.table, s.url, err)
	}
	defer func() { _ = rows.Close() }()
	found := map[string]string{}
	for rows.Next() {
		var id, number string
		if err := rows.Scan(&id, &number); err != nil {
			return nil, err
		}
		found[id] = number
	}
	return found, rows.Err()
}

func (s *harlowSQL) put(ctx context.Context, w foreign.Write, was string) (bool, error) {
	var result sql.Result
	var err error
	const same = "namespace = ? AND shard_id = ? AND sequence_number = CAST(? AS {number})"
	switch {
	case w.To.IsZero():
		result, err = s.db.ExecContext(ctx, s.query("DELETE FROM {table} WHERE "+same),
			s.space, w.Row.Shard, was)
	case was == "":
		result, err = s.db.ExecContext(ctx, s.query(
			"INSERT INTO {table} (namespace, shard_id, sequence_number) VALUES (?, ?, CAST(? AS {number}))"),
			s.space, w.Row.Shard, w.Raw)
	default:
		result, err = s.db.ExecContext(ctx, s.query(
			"UPDATE {table} SET sequence_number = CAST(? AS {number}) WHERE "+same),
			w.Raw, s.space, w.Row.Shard, was)
	}
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// create is not called: a missing table is an error, because the database's owner makes tables.
func (s *harlowSQL) create(context.Context) error { return nil }
