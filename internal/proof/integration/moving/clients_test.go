package moving_test

import (
	"database/sql"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

type item = map[string]types.AttributeValue

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
func b(v bool) types.AttributeValue   { return &types.AttributeValueMemberBOOL{Value: v} }
func m(v item) types.AttributeValue   { return &types.AttributeValueMemberM{Value: v} }

var null = &types.AttributeValueMemberNULL{Value: true}

// table makes a table with string keys.
func table(t *testing.T, d *servers.Server, name string, keys ...string) {
	t.Helper()
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest}
	for i, key := range keys {
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: aws.String(key), AttributeType: types.ScalarAttributeTypeS})
		in.KeySchema = append(in.KeySchema,
			types.KeySchemaElement{AttributeName: aws.String(key), KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
	}
	if _, err := d.DynamoDB().CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func putItem(t *testing.T, d *servers.Server, name string, it item) {
	t.Helper()
	if _, err := d.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: it}); err != nil {
		t.Fatal(err)
	}
}

// items returns the items of a table by the value of an attribute.
func items(t *testing.T, d *servers.Server, name, key string) map[string]item {
	t.Helper()
	out, err := d.DynamoDB().Scan(t.Context(), &dynamodb.ScanInput{TableName: &name, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]item{}
	for _, it := range out.Items {
		all[text(it[key])] = it
	}
	return all
}

func text(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberNULL:
		return "NULL"
	}
	return ""
}

// half returns the records that the old client has handled: all of the shards 0 and 1, and half of
// the shards 2 and 3. The shards 4 and 5 are not begun.
func half(mv *move) map[string]int {
	done := mv.all()
	done[id(2)] /= 2
	done[id(3)] /= 2
	done[id(4)], done[id(5)] = 0, 0
	return done
}

func TestVMware(t *testing.T) {
	for version, expires := range map[string]string{"1": "2023-03-28T10:00:10Z", "2": "2024-03-04T10:00:10.123456789Z"} {
		t.Run(version, func(t *testing.T) {
			d := servers.DynamoDBLocal(t)
			mv := begin(t, "vmware", d)
			table(t, d, "billing", "ShardID")
			done := half(mv)
			putItem(t, d, "billing", item{"ShardID": s(id(0)), "Checkpoint": s("SHARD_END"), "LeaseTimeout": s(expires)})
			putItem(t, d, "billing", item{"ShardID": s(id(1)), "Checkpoint": s("SHARD_END"), "LeaseTimeout": s(expires)})
			for shard, parent := range map[string]string{id(2): "", id(3): id(0)} {
				it := item{
					"ShardID": s(shard), "Checkpoint": s(mv.number(t, shard, done[shard])),
					"AssignedTo": s("worker-1"), "LeaseTimeout": s(expires),
				}
				if parent != "" {
					it["ParentShardId"] = s(parent)
				}
				putItem(t, d, "billing", it)
			}
			mv.roundTrip(t, done)
			rows := items(t, d, "billing", "ShardID")
			if rows[id(3)]["AssignedTo"] != nil || text(rows[id(3)]["Checkpoint"]) == "" ||
				text(rows[id(2)]["Checkpoint"]) != "SHARD_END" || text(rows[id(5)]["ParentShardId"]) != id(1) {
				t.Errorf("the rows are %v", rows)
			}

			// A worker whose lease is renewed is running.
			at := time.Now().UTC().Add(10 * time.Second)
			putItem(t, d, "billing", item{"ShardID": s(id(3)), "Checkpoint": rows[id(3)]["Checkpoint"], "AssignedTo": s("worker-9"), "LeaseTimeout": s(at.Format(time.RFC3339Nano))})
			stop := renew(t, func(n int) {
				putItem(t, d, "billing", item{"ShardID": s(id(3)), "Checkpoint": rows[id(3)]["Checkpoint"], "AssignedTo": s("worker-9"),
					"LeaseTimeout": s(at.Add(time.Duration(n) * time.Second).Format(time.RFC3339Nano))})
			})
			_, said, err := mv.tryMigrate(t, "--yes", "--to="+mv.store(t))
			stop()
			if err == nil || !strings.Contains(said, "workers of vmware-go-kcl run: worker-9; stop them first") {
				t.Errorf("while a worker runs: %v, %s", err, said)
			}
		})
	}
}

// renew calls f ten times per second until stop is called.
func renew(t *testing.T, f func(n int)) (stop func()) {
	t.Helper()
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 1; ; n++ {
			select {
			case <-end:
				return
			case <-time.After(100 * time.Millisecond):
				f(n)
			}
		}
	}()
	return func() { close(end); <-ended }
}

func TestKinsumer(t *testing.T) {
	d := servers.DynamoDBLocal(t)
	mv := begin(t, "kinsumer", d)
	table(t, d, "billing_checkpoints", "Shard")
	table(t, d, "billing_clients", "ID")
	table(t, d, "billing_metadata", "Key")
	done := half(mv)
	const nanos, rfc = "1710400000000000000", "Thu, 14 Mar 2024 07:06:40 +0000"
	for _, shard := range []string{id(0), id(1)} {
		putItem(t, d, "billing_checkpoints", item{
			"Shard": s(shard), "SequenceNumber": s(mv.number(t, shard, done[shard])), "LastUpdate": n(nanos),
			"LastUpdateRFC": s(rfc), "Finished": n(nanos), "FinishedRFC": s(rfc),
		})
	}
	for _, shard := range []string{id(2), id(3)} {
		putItem(t, d, "billing_checkpoints", item{
			"Shard": s(shard), "SequenceNumber": s(mv.number(t, shard, done[shard])), "LastUpdate": n(nanos),
			"LastUpdateRFC": s(rfc), "Finished": null, "FinishedRFC": null,
		})
	}
	putItem(t, d, "billing_checkpoints", item{ // released before its first record
		"Shard": s(id(4)), "SequenceNumber": null, "LastUpdate": n(nanos), "LastUpdateRFC": s(rfc), "Finished": null, "FinishedRFC": null,
	})
	putItem(t, d, "billing_metadata", item{"Key": s("Leader"), "LastUpdate": n(nanos), "LastUpdateRFC": s(rfc)})
	mv.roundTrip(t, done)
	rows := items(t, d, "billing_checkpoints", "Shard")
	if text(rows[id(2)]["Finished"]) == "NULL" || text(rows[id(5)]["Finished"]) != "NULL" || rows[id(5)]["OwnerID"] != nil {
		t.Errorf("the rows are %v", rows)
	}
	putItem(t, d, "billing_clients", item{"ID": s("c1"), "Name": s("host-7"), "LastUpdate": n("1710500000123456789"), "LastUpdateRFC": s(rfc)})
	// An old row of a client proves nothing.
	if _, said, err := mv.tryMigrate(t, "--to="+mv.store(t)); err != nil {
		t.Errorf("beside an old client: %v, %s", err, said)
	}
	now := time.Now().UnixNano()
	client := func(n0 int) {
		putItem(t, d, "billing_clients", item{"ID": s("c1"), "Name": s("host-7"), "LastUpdate": n(number(now + int64(n0))), "LastUpdateRFC": s(rfc)})
	}
	client(0)
	stop := renew(t, client)
	_, said, err := mv.tryMigrate(t, "--yes", "--to="+mv.store(t), "--failover=2s")
	stop()
	if err == nil || !strings.Contains(said, "workers of kinsumer run: host-7") {
		t.Errorf("while a client runs: %v, %s", err, said)
	}
}

// A way back into nothing makes the tables of each client.
func TestTheWayBackMakesTables(t *testing.T) {
	d := servers.DynamoDBLocal(t)
	for client, name := range map[string]string{"vmware": "billing", "kinsumer": "billing_metadata", "harlow": "positions", "lifion": "lifion-kinesis-state"} {
		t.Run(client, func(t *testing.T) {
			mv := begin(t, client, d)
			if client == "harlow" {
				mv.args = []string{"--table=positions", "--failover=1s"}
			}
			store := mv.store(t)
			mv.consume(t, store, nil)
			mv.migrate(t, "--from="+store)
			if _, err := d.DynamoDB().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name}); err != nil {
				t.Error(err)
			}
			handled := mv.all()
			mv.records(20)
			second := mv.store(t)
			mv.migrate(t, "--to="+second)
			mv.consume(t, second, handled)
		})
	}
}

func TestLifion(t *testing.T) {
	d := servers.DynamoDBLocal(t)
	mv := begin(t, "lifion", d)
	table(t, d, "lifion-kinesis-state", "consumerGroup", "streamName")
	done := half(mv)
	state := func(number types.AttributeValue, depleted bool, parent types.AttributeValue) types.AttributeValue {
		return m(item{"checkpoint": number, "depleted": b(depleted), "leaseExpiration": null, "leaseOwner": null, "parent": parent, "version": s("a")})
	}
	shards := item{
		id(0): state(s(mv.number(t, id(0), done[id(0)])), true, null),
		id(1): state(s(mv.number(t, id(1), done[id(1)])), true, null),
		id(2): state(s(mv.number(t, id(2), done[id(2)])), false, null),
		id(3): state(s(mv.number(t, id(3), done[id(3)])), false, s(id(0))),
		id(4): state(null, false, s(id(0))),
		id(5): state(null, false, s(id(1))),
	}
	putItem(t, d, "lifion-kinesis-state", item{
		"consumerGroup": s("billing"), "streamName": s("orders"), "version": s("x"), "shards": m(shards), "enhancedConsumers": m(item{}),
		"consumers": m(item{"fU3C": m(item{
			"appName": s("billing"), "heartbeat": s("2021-06-01T10:00:00.000Z"), "host": s("h1"), "isActive": b(true), "isStandalone": b(false), "pid": n("12"),
			"startedOn": s("2021-06-01T09:00:00.000Z"),
		})}),
	})
	mv.roundTrip(t, done)

	// An item of an older stream of the same name is refused.
	putItem(t, d, "lifion-kinesis-state", item{
		"consumerGroup": s("billing"), "streamName": s("orders"), "streamCreatedOn": s("2021-03-01T08:00:00.000Z"), "version": s("x"), "shards": m(shards),
	})
	if _, said, err := mv.tryMigrate(t, "--to="+mv.store(t)); err == nil || !strings.Contains(said, "numbers are not valid any more") {
		t.Errorf("a recreated stream: %v, %s", err, said)
	}
}

func TestHarlowInDynamoDB(t *testing.T) {
	d := servers.DynamoDBLocal(t)
	t.Run("without a group", func(t *testing.T) {
		mv := begin(t, "harlow", d, "--table=kinesis_consumer", "--failover=1s")
		table(t, d, "kinesis_consumer", "namespace", "shard_id")
		done := half(mv)
		for _, shard := range []string{id(0), id(1), id(2), id(3)} {
			putItem(t, d, "kinesis_consumer", item{"namespace": s("billing-orders"), "shard_id": s(shard), "sequence_number": s(mv.number(t, shard, done[shard]))})
		}
		putItem(t, d, "kinesis_consumer", item{"namespace": s("billing-orders-eu"), "shard_id": s(id(4)), "sequence_number": s("1")})
		mv.roundTrip(t, done)
	})
	t.Run("with a group", func(t *testing.T) {
		mv := begin(t, "harlow", d, "--table=positions", "--group-table=positions")
		table(t, d, "positions", "namespace", "shard_id")
		done := half(mv)
		const long = "1581600000000"
		for shard, of := range map[string]struct {
			parent, adjacent string
			completed        bool
		}{id(0): {"", "", true}, id(1): {"", "", true}, id(2): {"", "", false}, id(3): {id(0), "", false}, id(4): {id(0), "", false}, id(5): {id(1), id(2), false}} {
			putItem(t, d, "positions", item{
				"namespace": s("billing#orders"), "shard_id": s("LEASE#" + shard), "lease_owner": s("host-7"), "lease_expires_at": n(long),
				"pending_owner": s(""), "handoff_deadline": n("0"), "parent_shard_id": s(of.parent), "adjacent_parent_shard_id": s(of.adjacent), "completed": b(of.completed),
			})
			if done[shard] > 0 {
				putItem(t, d, "positions", item{"namespace": s("billing-orders"), "shard_id": s(shard), "sequence_number": s(mv.number(t, shard, done[shard]))})
			}
		}
		putItem(t, d, "positions", item{"namespace": s("billing#orders"), "shard_id": s("WORKER#host-7"), "worker_id": s("host-7"), "worker_expires_at": n(long), "ttl": n("1581600005")})
		mv.roundTrip(t, done)
		rows := items(t, d, "positions", "shard_id")
		if c, ok := rows["LEASE#"+id(2)]["completed"].(*types.AttributeValueMemberBOOL); !ok || !c.Value || text(rows["LEASE#"+id(5)]["lease_owner"]) != "" {
			t.Errorf("the rows are %v", rows)
		}
		at := time.Now().Add(20 * time.Second).UnixMilli()
		worker := func(n0 int) {
			putItem(t, d, "positions", item{"namespace": s("billing#orders"), "shard_id": s("WORKER#host-8"), "worker_id": s("host-8"), "worker_expires_at": n(number(at + int64(n0)))})
		}
		worker(0)
		stop := renew(t, worker)
		_, said, err := mv.tryMigrate(t, "--to="+mv.store(t))
		stop()
		if err == nil || !strings.Contains(said, "workers of harlow/kinesis-consumer run: host-8") {
			t.Errorf("while a worker runs: %v, %s", err, said)
		}
	})
}

func TestHarlowInRedis(t *testing.T) {
	r := servers.Redis(t)
	mv := begin(t, "harlow", nil, "--source=redis://"+r.Addr+"/0", "--failover=1s")
	client := redis.NewClient(&redis.Options{Addr: r.Addr})
	defer func() { _ = client.Close() }()
	done := half(mv)
	for _, shard := range []string{id(0), id(1), id(2), id(3)} {
		if err := client.Set(t.Context(), "billing:checkpoint:orders:"+shard, mv.number(t, shard, done[shard]), 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	mv.roundTrip(t, done)
}

func TestHarlowInSQL(t *testing.T) {
	postgres := servers.Postgres(t)
	mariadb := servers.MariaDB(t)
	mysql := servers.MySQL(t)
	for name, c := range map[string]struct{ url, driver, dsn, create, insert string }{
		"Postgres": {postgres.PostgresURL("weir"), "pgx", postgres.PostgresURL("weir"),
			"CREATE TABLE kinesis_consumer (namespace text NOT NULL, shard_id text NOT NULL, sequence_number numeric NOT NULL, PRIMARY KEY (namespace, shard_id))",
			"INSERT INTO kinesis_consumer VALUES ($1, $2, $3)"},
		"MariaDB": {"mysql://weir@" + mariadb.Addr + "/weir", "mysql", mariadb.MySQLDSN("weir"),
			"CREATE TABLE kinesis_consumer (namespace varchar(255) NOT NULL, shard_id varchar(255) NOT NULL, sequence_number numeric(65,0) NOT NULL, PRIMARY KEY (namespace, shard_id))",
			"INSERT INTO kinesis_consumer VALUES (?, ?, ?)"},
		"MySQL": {"mysql://weir@" + mysql.Addr + "/weir", "mysql", mysql.MySQLDSN("weir"),
			"CREATE TABLE kinesis_consumer (namespace varchar(255) NOT NULL, shard_id varchar(255) NOT NULL, sequence_number numeric(65,0) NOT NULL, PRIMARY KEY (namespace, shard_id))",
			"INSERT INTO kinesis_consumer VALUES (?, ?, ?)"},
	} {
		t.Run(name, func(t *testing.T) {
			mv := begin(t, "harlow", nil, "--source="+c.url, "--table=kinesis_consumer", "--failover=1s")
			db, err := sql.Open(c.driver, c.dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			if _, said, err := mv.tryMigrate(t, "--to="+mv.store(t)); err == nil || !strings.Contains(said, "kinesis_consumer") {
				t.Errorf("without a table: %v, %s", err, said)
			}
			if _, err := db.ExecContext(t.Context(), c.create); err != nil {
				t.Fatal(err)
			}
			done := half(mv)
			for _, shard := range []string{id(0), id(1), id(2), id(3)} {
				if _, err := db.ExecContext(t.Context(), c.insert, "billing-orders", shard, mv.number(t, shard, done[shard])); err != nil {
					t.Fatal(err)
				}
			}
			mv.roundTrip(t, done)
		})
	}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
