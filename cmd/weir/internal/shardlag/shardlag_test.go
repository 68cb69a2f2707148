package shardlag

import (
	"math/big"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestIteratorAt(t *testing.T) {
	for position, want := range map[string]struct {
		kind types.ShardIteratorType
		seq  string
	}{
		"oldest":               {types.ShardIteratorTypeTrimHorizon, ""},
		"latest":               {types.ShardIteratorTypeLatest, ""},
		"2026-01-31T12:00:00Z": {types.ShardIteratorTypeAtTimestamp, ""},
		"17":                   {types.ShardIteratorTypeAfterSequenceNumber, "17"},
		"17+2":                 {types.ShardIteratorTypeAtSequenceNumber, "17"},
	} {
		in := IteratorAt(clitest.Position(t, position))
		if in.ShardIteratorType != want.kind || aws.ToString(in.StartingSequenceNumber) != want.seq {
			t.Errorf("%s: %s %s", position, in.ShardIteratorType, aws.ToString(in.StartingSequenceNumber))
		}
		if (in.Timestamp != nil) != (want.kind == types.ShardIteratorTypeAtTimestamp) {
			t.Errorf("%s: timestamp %v", position, in.Timestamp)
		}
	}
}

// The lag of a shard is the age of the first unhandled record, even if that is the only one.
func TestAskLags(t *testing.T) {
	t.Parallel()
	server, _ := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	shardID, first := server.Put("s", "k", []byte("one"))
	_, second := server.Put("s", "k", []byte("two"))
	key := lease.Key{Stream: "s", Shard: shardID}
	ask := func(p string) Lag {
		return Ask(t.Context(), cli.Silent, server.Client(), []lease.Lease{{Key: key, Position: clitest.Position(t, p)}}, "")[key]
	}
	if l := ask(second); l.Err != nil || l.Age != 0 {
		t.Errorf("at the tip: %+v", l)
	}
	for _, p := range []string{first, first + "+0", second + "+0", "oldest"} {
		if l := ask(p); l.Err != nil || l.Age <= 0 {
			t.Errorf("at %s: %+v, although a record waits", p, l)
		}
	}
	// A fan-out checkpoint may lie between records. It has expired only if all records before it
	// are gone.
	between, ok := new(big.Int).SetString(first, 10)
	if !ok {
		t.Fatal(first)
	}
	between.Add(between, new(big.Int).Lsh(big.NewInt(1), 36))
	if l := ask(between.String()); l.Err != nil || l.Expired || !l.Waits || between.String() >= second {
		t.Errorf("between the records: %+v", l)
	}
	out, err := server.Client().ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("s")})
	if err != nil {
		t.Fatal(err)
	}
	if l := ask(aws.ToString(out.Shards[0].SequenceNumberRange.StartingSequenceNumber)); l.Err != nil || !l.Expired || !l.Waits {
		t.Errorf("before all that is kept: %+v", l)
	}
	if l := ask(first); l.Expired {
		t.Errorf("at a record that is kept: %+v", l)
	}
	start := clitest.Position(t, aws.ToString(out.Shards[0].SequenceNumberRange.StartingSequenceNumber))
	if lags, err := Asker(server.Client())(t.Context(), []lease.Lease{{Key: key, Position: start}}); err != nil || !lags[key].Expired || lags[key].Behind <= 0 {
		t.Errorf("the page is told %+v, %v", lags, err)
	}
	if l := ask("end"); l != (Lag{}) {
		t.Errorf("a finished lease was asked about: %+v", l)
	}
	if l := Ask(t.Context(), cli.Silent, server.Client(), []lease.Lease{{Key: lease.Key{Stream: "none", Shard: shardID}, Position: shard.Oldest}}, ""); l[lease.Key{Stream: "none", Shard: shardID}].Err == nil {
		t.Error("a stream that does not exist has a lag")
	}
}
