package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// item is an item in the typed JSON of DynamoDB.
type item map[string]map[string]any

func s(v string) map[string]any { return map[string]any{"S": v} }
func n(v int64) map[string]any  { return map[string]any{"N": strconv.FormatInt(v, 10)} }

// dynamo is a DynamoDB with one table that answers Scan in pages of two items.
type dynamo struct {
	*httptest.Server
	mu     sync.Mutex
	items  map[string]item
	absent bool // until the table is made
	// onScan is called before each scan, with the lock held. scans is the number of earlier scans.
	onScan func(scans int, items map[string]item)
	scans  int
	// beforeWrite is called before each write, with the lock held.
	beforeWrite func(items map[string]item)
}

// table starts a DynamoDB with the table "billing".
func table(t *testing.T, items ...item) (d *dynamo, flag string) {
	t.Helper()
	d = &dynamo{items: map[string]item{}}
	for _, it := range items {
		d.put(it)
	}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d, "--dynamodb-endpoint=" + d.URL
}

func (d *dynamo) put(it item) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.items[it["leaseKey"]["S"].(string)] = it
}

// set changes an attribute of an item.
func (d *dynamo) set(key, name string, value map[string]any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	it := maps.Clone(d.items[key])
	if it[name] = value; value == nil {
		delete(it, name)
	}
	d.items[key] = it
}

func (d *dynamo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var in map[string]json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	status, answer := http.StatusBadRequest, `{"__type":"com.amazonaws.dynamodb.v20120810#UnknownOperationException","message":"no"}`
	operation := r.Header.Get("X-Amz-Target")[len("DynamoDB_20120810."):]
	switch {
	case operation == "CreateTable":
		d.absent = false
		status, answer = http.StatusOK, `{}`
	case d.absent || string(in["TableName"]) != `"billing"`:
		answer = `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"no table"}`
	case operation == "Scan" && string(in["ConsistentRead"]) == "true":
		status, answer = http.StatusOK, d.scan(in)
	case operation == "DescribeTable":
		status, answer = http.StatusOK, `{"Table":{"TableStatus":"ACTIVE"}}`
	case operation == "PutItem", operation == "UpdateItem":
		if d.beforeWrite != nil {
			d.beforeWrite(d.items)
		}
		status, answer = d.write(operation, in)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	fmt.Fprint(w, answer)
}

// write carries out the two conditional writes of the command.
func (d *dynamo) write(operation string, in map[string]json.RawMessage) (int, string) {
	var w struct {
		Item, Key                             item
		ConditionExpression, UpdateExpression string
		ExpressionAttributeNames              map[string]string
		ExpressionAttributeValues             item
	}
	for name, to := range map[string]any{
		"Item": &w.Item, "Key": &w.Key, "ConditionExpression": &w.ConditionExpression, "UpdateExpression": &w.UpdateExpression,
		"ExpressionAttributeNames": &w.ExpressionAttributeNames, "ExpressionAttributeValues": &w.ExpressionAttributeValues,
	} {
		if raw, there := in[name]; there && json.Unmarshal(raw, to) != nil {
			return http.StatusBadRequest, `{"__type":"ValidationException"}`
		}
	}
	failed := `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"no"}`
	if operation == "PutItem" {
		key := w.Item["leaseKey"]["S"].(string)
		if _, there := d.items[key]; there ||
			w.ConditionExpression != "attribute_not_exists(#key)" {
			return http.StatusBadRequest, failed
		}
		d.items[key] = w.Item
		return http.StatusOK, `{}`
	}
	key := w.Key["leaseKey"]["S"].(string)
	it := maps.Clone(d.items[key])
	if it["leaseCounter"]["N"] != w.ExpressionAttributeValues[":seen"]["N"] ||
		w.ConditionExpression != "#counter = :seen" {
		return http.StatusBadRequest, failed
	}
	sets, removes, _ := strings.Cut(strings.TrimPrefix(w.UpdateExpression, "SET "), " REMOVE ")
	for _, set := range strings.Split(sets, ", ") {
		name, value, _ := strings.Cut(set, " = ")
		it[w.ExpressionAttributeNames[name]] = w.ExpressionAttributeValues[value]
	}
	for _, name := range strings.Split(removes, ", ") {
		delete(it, w.ExpressionAttributeNames[name])
	}
	d.items[key] = it
	return http.StatusOK, `{}`
}

func (d *dynamo) scan(in map[string]json.RawMessage) string {
	var after struct{ LeaseKey struct{ S string } }
	_ = json.Unmarshal(in["ExclusiveStartKey"], &after) // the first page has none
	if after.LeaseKey.S == "" {
		if d.onScan != nil {
			d.onScan(d.scans, d.items)
		}
		d.scans++
	}
	out := map[string]any{}
	var page []item
	for _, key := range slices.Sorted(maps.Keys(d.items)) {
		if key <= after.LeaseKey.S {
			continue
		}
		if len(page) == 2 {
			out["LastEvaluatedKey"] = item{"leaseKey": page[1]["leaseKey"]}
			break
		}
		page = append(page, d.items[key])
	}
	out["Items"] = page
	b, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// kclLease is a lease as KCL 2 writes it.
func kclLease(key, checkpoint string, sub int64, owner string) item {
	it := item{
		"leaseKey": s(
			key,
		), "leaseCounter": n(12), "ownerSwitchesSinceCheckpoint": n(0), "checkpoint": s(checkpoint), "checkpointSubSequenceNumber": n(sub),
	}
	if owner != "" {
		it["leaseOwner"] = s(owner)
	}
	return it
}
