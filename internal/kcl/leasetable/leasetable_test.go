package leasetable

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/internal/kcl"
	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/shard"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// Item translates every type of attribute that DynamoDB has. Only the types that leases use can be
// translated back.
func TestItems(t *testing.T) {
	it := Item(map[string]types.AttributeValue{
		"s": &types.AttributeValueMemberS{
			Value: "x",
		}, "n": &types.AttributeValueMemberN{Value: "1"}, "ss": &types.AttributeValueMemberSS{Value: []string{"a", "b"}},
		"b": &types.AttributeValueMemberB{
			Value: []byte("x"),
		}, "m": &types.AttributeValueMemberM{}, "l": &types.AttributeValueMemberL{},
		"null": &types.AttributeValueMemberNULL{}, "bool": &types.AttributeValueMemberBOOL{}, "ns": &types.AttributeValueMemberNS{}, "bs": &types.AttributeValueMemberBS{}, "none": nil,
	})
	if it["s"].Type != kcl.Text || it["s"].Text != "x" || it["n"].Type != kcl.Number ||
		len(it["ss"].Texts) != 2 ||
		len(it) != 11 ||
		it["m"].Type != kcl.Other {
		t.Errorf("%+v", it)
	}
	back := attributes(it)
	if got := slices.Sorted(maps.Keys(back)); strings.Join(got, " ") != "n s ss" {
		t.Errorf("%q come back", got)
	}
}

func TestWrites(t *testing.T) {
	w := kcl.Write{New: true, Lease: kcl.Lease{
		Key: "shardId-000000000001", Shard: "shardId-000000000001", Counter: 7, At: kcl.Checkpoint{Value: "49", Sub: 3},
		Parents: []string{"shardId-000000000000"}, Range: &shard.HashRange{End: shard.MaxHashKey},
	}}
	put := putInput("billing", w)
	if got := strings.Join(slices.Sorted(maps.Keys(put.Item)), " "); got != "checkpoint checkpointSubSequenceNumber endingHashKey leaseCounter leaseKey ownerSwitchesSinceCheckpoint parentShardId startingHashKey" {
		t.Errorf("a new lease has %s", got)
	}
	update := updateInput("billing", w)
	set, removed, _ := strings.Cut(*update.UpdateExpression, " REMOVE ")
	for _, want := range []string{"#counter = :next", "#checkpoint = :checkpoint", "#startingHashKey = :startingHashKey"} {
		if !strings.Contains(set, want) {
			t.Errorf("%s lacks %s", set, want)
		}
	}
	if removed != "#leaseOwner, #checkpointOwner, #pendingCheckpoint, #pendingCheckpointSubSequenceNumber, #pendingCheckpointState" ||
		*update.ConditionExpression != "#counter = :seen" {
		t.Errorf("%s if %s", removed, *update.ConditionExpression)
	}
	for name, want := range map[string]string{":seen": "7", ":next": "8", ":checkpointSubSequenceNumber": "3"} {
		if got, ok := update.ExpressionAttributeValues[name].(*types.AttributeValueMemberN); !ok ||
			got.Value != want {
			t.Errorf("%s is %+v, want %s", name, got, want)
		}
	}
	for placeholder := range update.ExpressionAttributeNames {
		if !strings.Contains(*update.UpdateExpression, placeholder) {
			t.Errorf("%s is not used", placeholder)
		}
	}
	if ok, err := Write(t.Context(), nil, "billing", kcl.Write{Stays: true}); !ok || err != nil {
		t.Errorf("nothing to write: %t, %v", ok, err)
	}
}
