// Package foreign_test runs worker processes against third-party Kinesis servers. The leases are in
// third-party DynamoDB servers. The tests check the output of the handlers.
package foreign_test

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/worker"
	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/internal/proof/scenario"
)

const stream = "flights"

// patience is the time limit of each wait. It is long, because machines are shared.
const patience = 3 * time.Minute

func TestMain(m *testing.M) {
	worker.Main()
	os.Exit(leaktest.Run(m))
}

func TestThreeWorkersOnForeignServers(t *testing.T) {
	for _, c := range []struct {
		name              string
		kinesis, dynamodb func(testing.TB) *servers.Server
	}{
		{"kinesalite and DynamoDB Local", servers.Kinesalite, servers.DynamoDBLocal},
		{"kinesis-local and dynalite", servers.KinesisLocal, servers.Dynalite},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, d := c.kinesis(t), c.dynamodb(t)
			run(t, k, d)
		})
	}
}

func run(t *testing.T, k, d *servers.Server) {
	client := k.Kinesis()
	if _, err := client.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: aws.String(stream), ShardCount: aws.Int32(4)}); err != nil {
		t.Fatal(err)
	}
	active(t, client)
	if err := servers.PrepareStore(t.Context(), servers.DynamoDBStore, d.URL); err != nil {
		t.Fatal(err)
	}
	var workers []*journalled
	dir := t.TempDir()
	for i := range 3 {
		workers = append(workers, &journalled{Worker: worker.Start(t, worker.Setup{
			Kinesis: k.URL, Kind: servers.DynamoDBStore, Place: d.URL, App: "foreign", Stream: stream, Name: fmt.Sprintf("w%d", i+1),
		}, dir)})
	}

	flights := readFlights(t)
	quarter := len(flights) / 4
	put(t, client, flights, 0, quarter)
	waitFor(t, "the first flight of every shard", func() bool { return len(shardsOf(t, workers)) >= 4 })

	open := openShards(t, client)
	split(t, client, open[0])
	put(t, client, flights, quarter, 2*quarter)

	if _, err := client.MergeShards(t.Context(), &kinesis.MergeShardsInput{
		StreamName: aws.String(stream), ShardToMerge: open[1].ShardId, AdjacentShardToMerge: open[2].ShardId,
	}); err != nil {
		t.Fatal(err)
	}
	active(t, client)
	put(t, client, flights, 2*quarter, 3*quarter)
	waitFor(t, "the first flight of the children", func() bool { return len(shardsOf(t, workers)) >= 7 })

	// The victim is killed while it handles flights of the last quarter.
	victim := -1
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		victim = firstBeyond(workers, 3*quarter)
		workers[victim].Kill(t)
	}()
	put(t, client, flights, 3*quarter, len(flights))
	<-killed
	waitFor(t, "every flight", func() bool { return distinct(t, workers) == len(flights) })
	for i, w := range workers {
		if i != victim {
			w.Stop(t)
		}
	}
	judge(t, workers, flights)
}

// judge checks that no flight is lost and that the flights of each airport are in order. A new
// owner of a shard may begin with flights that were handled before, but must not leave gaps. Within
// one epoch of a shard, no flight may be repeated.
func judge(t *testing.T, workers []*journalled, flights []flight) {
	t.Helper()
	var all []scenario.Handled
	for _, w := range workers {
		all = append(all, w.read(t)...)
	}
	slices.SortStableFunc(all, func(a, b scenario.Handled) int { return cmp.Compare(a.At, b.At) })
	nth := make([]int, len(flights)) // index of a flight within its airport
	count := map[string]int{}
	for i, f := range flights {
		count[f.origin]++
		nth[i] = count[f.origin]
	}
	type term struct {
		shard string
		epoch uint64
		key   string
	}
	high := map[string]int{}      // by airport: end of the part without gaps
	within := map[term]int{}      // the same within one term
	epochs := map[string]uint64{} // by shard
	violations, again := 0, 0
	violation := func(format string, args ...any) {
		if violations++; violations <= 20 {
			t.Errorf(format, args...)
		}
	}
	for _, h := range all {
		if h.N < 0 || h.N >= len(flights) || flights[h.N].origin != h.Key {
			t.Fatalf("%+v was never put", h)
		}
		n, in := nth[h.N], term{h.Shard, h.Epoch, h.Key}
		if before, any := within[in]; any && n != before+1 {
			violation("%s in %s, epoch %d: flight %d of the airport follows flight %d", h.Key, h.Shard, h.Epoch, n, before)
		} else if n > high[h.Key]+1 {
			violation("%s: flight %d of the airport is handled after flight %d", h.Key, n, high[h.Key])
		}
		if h.Epoch < epochs[h.Shard] {
			violation("%s: epoch %d writes after epoch %d", h.Shard, h.Epoch, epochs[h.Shard])
		}
		if n <= high[h.Key] {
			again++
		}
		within[in], epochs[h.Shard], high[h.Key] = n, h.Epoch, max(high[h.Key], n)
	}
	lost := len(flights)
	for i := range flights {
		if nth[i] <= high[flights[i].origin] {
			lost--
		}
	}
	t.Logf("put %d, handled %d, lost %d, handled again %d, order violations %d, shards %d",
		len(flights), len(all), lost, again, violations, len(epochs))
	if lost != 0 {
		t.Errorf("%d flights were lost", lost)
	}
}

// firstBeyond waits for a worker that has handled a flight with at least the given number. It
// returns the first such worker, or 0 after patience.
func firstBeyond(workers []*journalled, from int) int {
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	bound := time.Now().Add(patience)
	for time.Now().Before(bound) {
		for i, w := range workers {
			all, _ := w.journal()
			if slices.ContainsFunc(all, func(h scenario.Handled) bool { return h.N >= from }) {
				return i
			}
		}
		<-every.C
	}
	return 0
}

type flight struct{ origin, line string }

func readFlights(t *testing.T) (all []flight) {
	t.Helper()
	f, err := os.Open("../../../../cmd/weir/internal/demo/flights.ndjson.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		var one struct{ Origin string }
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, flight{one.Origin, lines.Text()})
	}
	if len(all) != 20000 {
		t.Fatalf("%d flights, want 20,000", len(all))
	}
	return all
}

func put(t *testing.T, client *kinesis.Client, flights []flight, from, to int) {
	t.Helper()
	for batch := range slices.Chunk(flights[from:to], 500) {
		in := &kinesis.PutRecordsInput{StreamName: aws.String(stream)}
		for _, f := range batch {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{
				PartitionKey: aws.String(f.origin), Data: fmt.Appendf(nil, "%d %s", from, f.line),
			})
			from++
		}
		// Do not retry: a repetition of a successful call would be counted as an error of weir.
		out, err := client.PutRecords(t.Context(), in, func(o *kinesis.Options) { o.Retryer = aws.NopRetryer{} })
		if err != nil {
			t.Fatal(err)
		}
		if n := aws.ToInt32(out.FailedRecordCount); n > 0 {
			t.Fatalf("%d records were refused", n)
		}
	}
}

func openShards(t *testing.T, client *kinesis.Client) []types.Shard {
	t.Helper()
	out, err := client.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String(stream)})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(out.Shards, func(s types.Shard) bool { return s.SequenceNumberRange.EndingSequenceNumber != nil })
}

func split(t *testing.T, client *kinesis.Client, s types.Shard) {
	t.Helper()
	start, _ := new(big.Int).SetString(*s.HashKeyRange.StartingHashKey, 10)
	end, _ := new(big.Int).SetString(*s.HashKeyRange.EndingHashKey, 10)
	middle := start.Add(start, end)
	middle.Rsh(middle, 1)
	if _, err := client.SplitShard(t.Context(), &kinesis.SplitShardInput{
		StreamName: aws.String(stream), ShardToSplit: s.ShardId, NewStartingHashKey: aws.String(middle.String()),
	}); err != nil {
		t.Fatal(err)
	}
	active(t, client)
}

func active(t *testing.T, client *kinesis.Client) {
	t.Helper()
	waitFor(t, "the stream to be active", func() bool {
		out, err := client.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: aws.String(stream)})
		if err != nil {
			t.Fatal(err)
		}
		return out.StreamDescriptionSummary.StreamStatus == types.StreamStatusActive
	})
}

func waitFor(t *testing.T, what string, f func() bool) {
	t.Helper()
	every := time.NewTicker(250 * time.Millisecond)
	defer every.Stop()
	bound := time.NewTimer(patience)
	defer bound.Stop()
	for !f() {
		select {
		case <-every.C:
		case <-bound.C:
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// journalled is a worker with its journal.
type journalled struct {
	*worker.Worker
	all []scenario.Handled
}

func (w *journalled) journal() ([]scenario.Handled, error) {
	more, err := w.More()
	w.all = append(w.all, more...)
	return w.all, err
}

func (w *journalled) read(t *testing.T) []scenario.Handled {
	t.Helper()
	all, err := w.journal()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func shardsOf(t *testing.T, workers []*journalled) map[string]bool {
	t.Helper()
	shards := map[string]bool{}
	for _, w := range workers {
		for _, h := range w.read(t) {
			shards[h.Shard] = true
		}
	}
	return shards
}

func distinct(t *testing.T, workers []*journalled) int {
	t.Helper()
	seen := map[int]bool{}
	for _, w := range workers {
		for _, h := range w.read(t) {
			seen[h.N] = true
		}
	}
	return len(seen)
}
