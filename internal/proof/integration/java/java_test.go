// Package java_test tests the Java KCL and the KPL with one embedded Kinesis server, over TLS.
package java_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
)

// within is how long a KCL may take to find its leases, a split and a merge on a shared machine.
const within = 6 * time.Minute

// heard contains the output of a KCL: the records of each shard, and when each shard began and
// ended, as a line number.
type heard struct {
	mu           sync.Mutex
	shards       map[string][]record
	order        []string // the data of all records
	begun, ended map[string]int
	lines, total int
	problems     bytes.Buffer
}

type record struct{ sequence, key, data string }

func (h *heard) listen(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		h.line(lines.Text())
	}
}

func (h *heard) line(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines++
	switch f := strings.SplitN(text, " ", 6); {
	case f[0] == "R" && len(f) == 6:
		if h.begun[f[1]] == 0 {
			h.begun[f[1]] = h.lines
		}
		h.shards[f[1]] = append(h.shards[f[1]], record{f[2], f[4], f[5]})
		h.order = append(h.order, f[5])
		h.total++
	case f[0] == "E" && len(f) == 2:
		h.ended[f[1]] = h.lines
	default:
		fmt.Fprintln(&h.problems, text)
	}
}

// await waits until a condition on the output holds.
func (h *heard) await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		h.mu.Lock()
		done := so()
		h.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(deadline) {
			h.mu.Lock()
			defer h.mu.Unlock()
			t.Fatalf("no %s within %v: %d records, ended %v, %.3000s", what, within, h.total, h.ended, h.problems.String())
		}
	}
}

// startKCL runs a KCL on the stream orders until stop is called. Call stop before the context of
// the test ends.
func startKCL(t *testing.T, srv *kinesistest.Server, way string) (h *heard, stop func()) {
	t.Helper()
	return startKCLOn(t, srv, servers.DynamoDBLocal(t), way)
}

// startKCLOn is startKCL with a DynamoDB that other programs use, too.
func startKCLOn(t *testing.T, srv *kinesistest.Server, dynamo *servers.Server, way string) (h *heard, stop func()) {
	t.Helper()
	return startProgram(t, servers.Java(t, srv.CACertPEM(), "KclReader", srv.URL(), dynamo.URL, "orders", "billing-"+way, way))
}

// startProgram is startKCL for a program that prints what it reads.
func startProgram(t *testing.T, cmd *exec.Cmd) (h *heard, stop func()) {
	t.Helper()
	h, end := startStoppable(t, cmd)
	return h, func() { end("") }
}

// startStoppable is startProgram with an end that can first write to the program's input: "s" stops
// it in order.
func startStoppable(t *testing.T, cmd *exec.Cmd) (h *heard, end func(input string)) {
	t.Helper()
	h = &heard{shards: map[string][]record{}, begun: map[string]int{}, ended: map[string]int{}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var problems bytes.Buffer
	cmd.Stderr = &problems
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var listening sync.WaitGroup
	listening.Go(func() { h.listen(out) })
	return h, func(input string) {
		_, _ = io.WriteString(in, input)
		_ = in.Close() // ends the process
		listening.Wait()
		if err := cmd.Wait(); err != nil && !t.Failed() {
			t.Errorf("the KCL: %v, %.3000s", err, problems.String())
		}
		if t.Failed() {
			t.Logf("the KCL: %.6000s", problems.String())
		}
	}
}

// put puts the records with the given numbers. The numbers of each key are in order.
func put(t *testing.T, c *kinesis.Client, stream string, from, to int) {
	t.Helper()
	for from < to {
		in := &kinesis.PutRecordsInput{StreamName: &stream}
		for ; from < to && len(in.Records) < 500; from++ {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{
				PartitionKey: aws.String("key-" + strconv.Itoa(from%97)), Data: []byte("record-" + strconv.Itoa(from)),
			})
		}
		if out, err := c.PutRecords(t.Context(), in); err != nil || *out.FailedRecordCount > 0 {
			t.Fatalf("%+v, %v", out, err)
		}
	}
}

func TestTheKCLReadsThroughASplitAndAMerge(t *testing.T) {
	const records = 20_000
	for _, way := range []string{"polling", "fanout"} {
		t.Run(way, func(t *testing.T) {
			srv := kinesistest.NewServer(t, kinesistest.Config{Region: servers.Region, TLS: true, NoLimits: true, StateDelay: 300 * time.Millisecond})
			srv.CreateStream("orders", 2)
			var mu sync.Mutex
			protocols := map[string]int{}
			srv.Control("", func(c *kinesistest.Call) kinesistest.Fault {
				mu.Lock()
				defer mu.Unlock()
				protocols[c.Action+" "+c.Proto+" "+c.Format]++
				return kinesistest.Fault{}
			})
			h, stop := startKCL(t, srv, way)
			defer stop()

			c := srv.Client()
			put(t, c, "orders", 0, records/2)
			h.await(t, "first record", func() bool { return h.total > 0 })
			_, upper := srv.Split("orders", "shardId-000000000000")
			put(t, c, "orders", records/2, records/4*3)
			srv.Merge("orders", upper, "shardId-000000000001")
			put(t, c, "orders", records/4*3, records)
			h.await(t, "end", func() bool { return h.total >= records && len(h.ended) == 3 })

			h.mu.Lock()
			defer h.mu.Unlock()
			judge(t, h, srv.Records("orders"), records)
			// Parents must be read before their children.
			for child, parents := range map[string][]string{
				"shardId-000000000002": {"shardId-000000000000"}, "shardId-000000000003": {"shardId-000000000000"},
				"shardId-000000000004": {"shardId-000000000003", "shardId-000000000001"},
			} {
				for _, parent := range parents {
					if h.begun[child] != 0 && h.ended[parent] > h.begun[child] {
						t.Errorf("%s began in line %d, its parent %s ended in line %d", child, h.begun[child], parent, h.ended[parent])
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			call := "GetRecords"
			if way == "fanout" {
				call = "SubscribeToShard"
			}
			two := 0
			for what, n := range protocols {
				if strings.HasPrefix(what, call+" HTTP/2.0 ") {
					two += n
				}
			}
			if two == 0 {
				t.Errorf("no %s came over HTTP/2: %v", call, protocols)
			}
			t.Logf("%d of %d records in order; calls: %v", h.total, records, protocols)
		})
	}
}

// judge checks that the KCL read all records of the server in the order of each shard, and no
// others.
func judge(t *testing.T, h *heard, kept []kinesistest.Record, want int) {
	t.Helper()
	shards := map[string][]record{}
	for _, r := range kept {
		shards[r.Shard] = append(shards[r.Shard], record{r.SequenceNumber, r.PartitionKey, string(r.Data)})
	}
	if len(kept) != want {
		t.Errorf("%d records were put, want %d", len(kept), want)
	}
	compare(t, h, shards, want)
}

func compare(t *testing.T, h *heard, shards map[string][]record, want int) {
	t.Helper()
	if h.total != want {
		t.Errorf("%d records were read, want %d", h.total, want)
	}
	for shard, list := range shards {
		got := h.shards[shard]
		if len(got) != len(list) {
			t.Errorf("%s: %d of %d records", shard, len(got), len(list))
			continue
		}
		for i := range list {
			if got[i] != list[i] {
				t.Errorf("%s: record %d is %v, want %v", shard, i, got[i], list[i])
				break
			}
		}
	}
}

// sts starts a server that answers STS requests for the caller's identity. The KPL makes such a
// request before its first record.
func sts(t *testing.T, account string) (port string) {
	t.Helper()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = fmt.Fprintf(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>`+
			`<Arn>arn:aws:iam::%[1]s:user/test</Arn><UserId>AIDATEST</UserId><Account>%[1]s</Account></GetCallerIdentityResult>`+
			`<ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></GetCallerIdentityResponse>`, account)
	}))
	t.Cleanup(srv.Close)
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// putTagged puts records with tags. weir packs them, because the KPL cannot. number is the number
// of the first record. putTagged returns the number of records, and adds their locations to said.
func putTagged(t *testing.T, srv *kinesistest.Server, number int, said map[string]string) (n int) {
	t.Helper()
	// Each aggregate has one key. Even a single record is packed, because of its tags.
	for _, packed := range [][]int{{number, number + 97, number + 2*97}, {number + 1}} {
		var b aggregate.Builder
		key := "key-" + strconv.Itoa(packed[0]%97)
		for _, number := range packed {
			data := "record-" + strconv.Itoa(number)
			if err := b.AddTagged(key, "", []byte(data), aggregate.Tags{}.With("traceparent", data).With("", "")); err != nil {
				t.Fatal(err)
			}
		}
		shard, sequence := srv.Put("orders", key, b.Append(nil))
		for _, number := range packed {
			said["record-"+strconv.Itoa(number)] = shard + " " + sequence
			n++
		}
	}
	return n
}

// A KPL writes to the server from which a KCL reads, over the same port.
func TestTheKPLWritesWhatTheKCLReads(t *testing.T) {
	const ofKPL = 20_000
	srv := kinesistest.NewServer(t, kinesistest.Config{Region: servers.Region, TLS: true, Account: account})
	srv.CreateStream("orders", 3)
	h, stop := startKCL(t, srv, "polling")
	defer stop()
	_, port, err := net.SplitHostPort(srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	cmd := servers.Java(t, srv.CACertPEM(), "KplWriter", port, sts(t, account), "orders", strconv.Itoa(ofKPL), t.TempDir())
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %.3000s", err, problems.String())
	}
	// Compare the result that the KPL reports for each record with the server.
	said := map[string]string{}
	for line := range strings.Lines(out.String()) {
		var number int
		var shard, sequence string
		if _, err := fmt.Sscanf(line, "W %d %s %s", &number, &shard, &sequence); err == nil {
			said["record-"+strconv.Itoa(number)] = shard + " " + sequence
		}
	}
	records := ofKPL + putTagged(t, srv, ofKPL, said)
	var found, containers int
	var agg aggregate.Aggregate
	// Use the order of the server, because a KPL does not order its requests.
	stored := map[string][]record{}
	for _, r := range srv.Records("orders") {
		containers++
		users := [][2]string{{r.PartitionKey, string(r.Data)}} // if the record is not an aggregate
		if is, err := agg.Parse(r.Data); err != nil {
			t.Errorf("%s: %v", r.SequenceNumber, err)
		} else if is {
			users = users[:0]
			for u := range agg.All() {
				users = append(users, [2]string{u.PartitionKey(), string(u.Data())})
			}
		}
		for _, u := range users {
			found++
			key, data := u[0], u[1]
			stored[r.Shard] = append(stored[r.Shard], record{r.SequenceNumber, key, data})
			number, err := strconv.Atoi(strings.TrimPrefix(data, "record-"))
			if err != nil || key != "key-"+strconv.Itoa(number%97) || said[data] != r.Shard+" "+r.SequenceNumber {
				t.Errorf("%s of %s is in %s %s, the KPL says %q", data, key, r.Shard, r.SequenceNumber, said[data])
			}
			delete(said, data)
		}
	}
	if found != records || len(said) > 0 || containers >= records/10 {
		t.Errorf("%d records in %d, %d are missing; %.2000s", found, containers, len(said), problems.String())
	}
	h.await(t, "last record", func() bool { return h.total >= records })
	h.mu.Lock()
	defer h.mu.Unlock()
	compare(t, h, stored, records)
	t.Logf("%d of %d records in %d aggregates, %d read by the KCL", found, records, containers, h.total)
}
