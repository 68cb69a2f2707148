package moving_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/longform"
)

// startLifion runs the library itself until stop is called. lines returns the records so far.
func startLifion(t *testing.T, mv *move) (lines func() []string, stop func()) {
	t.Helper()
	cmd := servers.LifionScript(t, "lifion.js", mv.srv.URL(), mv.dynamo.URL)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, problems := &locked{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, problems
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines = func() []string { return strings.Split(strings.TrimSpace(out.String()), "\n") }
	return lines, func() {
		_ = in.Close() // ends the process
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("lifion: %v, %.3000s", err, problems)
		}
	}
}

// await waits until lifion has printed n records, and has stored the last number of each shard.
func await(t *testing.T, mv *move, lines func() []string, n int) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if len(lines()) >= n && mv.lifionIsAtTheEnd(t) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("lifion printed %d records, want %d; the table has %v", len(lines()), n,
				items(t, mv.dynamo, "lifion-kinesis-state", "consumerGroup"))
		}
	}
}

// lifionIsAtTheEnd reports whether each shard is depleted, or its stored number is that of its last
// record.
func (mv *move) lifionIsAtTheEnd(t *testing.T) bool {
	t.Helper()
	shards, _ := items(t, mv.dynamo, "lifion-kinesis-state", "consumerGroup")["billing"]["shards"].(*types.AttributeValueMemberM)
	for shard, list := range mv.stored() {
		if shards == nil {
			return false
		}
		state, _ := shards.Value[shard].(*types.AttributeValueMemberM)
		if state == nil {
			return false
		}
		depleted, _ := state.Value["depleted"].(*types.AttributeValueMemberBOOL)
		if text(state.Value["checkpoint"]) != list[len(list)-1].SequenceNumber && (depleted == nil || !depleted.Value) {
			return false
		}
	}
	return true
}

// check requires the records from the given one on, each once.
func (mv *move) check(t *testing.T, got []string, from int) {
	t.Helper()
	var want []string
	for _, r := range mv.srv.Records("orders") {
		var n int
		if _, err := fmt.Sscanf(string(r.Data), "record-%d", &n); err != nil {
			t.Fatal(err)
		}
		if n >= from {
			want = append(want, "R "+r.Shard+" "+string(r.Data))
		}
	}
	got = slices.Sorted(slices.Values(got))
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("lifion handled %d records, want %d", len(got), len(want))
	}
}

// An application goes from the real lifion-kinesis to weir, and back.
func TestAnApplicationMovesFromLifionAndBack(t *testing.T) {
	longform.Only(t)
	d := servers.DynamoDBLocal(t)
	mv := begin(t, "lifion", d)
	mv.records(100)
	lines, stop := startLifion(t, mv)
	await(t, mv, lines, 400)
	if _, said, err := mv.tryMigrate(t, "--yes", "--to="+mv.store(t)); err == nil || !strings.Contains(said, "workers of lifion-kinesis run: ") {
		t.Errorf("while lifion runs: %v, %s", err, said)
	}
	stop()
	mv.check(t, lines(), 0)

	handled, store := mv.all(), mv.store(t)
	mv.records(100)
	mv.migrate(t, "--to="+store)
	mv.consume(t, store, handled)

	mv.records(100)
	mv.migrate(t, "--from="+store)
	lines, stop = startLifion(t, mv)
	await(t, mv, lines, 100)
	stop()
	mv.check(t, lines(), 500)
	t.Logf("lifion handled 400 records, weir 100, and lifion 100, each once")
}
