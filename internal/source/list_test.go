package source

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

// What a server names goes into leases and reports: one name that a store refuses would have it refuse a whole beat.
func TestWhatNoStoreTakesIsNoShard(t *testing.T) {
	long := strings.Repeat("x", 128)
	for _, tt := range []struct {
		id      string
		parents []string
		ok      bool
	}{
		{"shardId-000000000000", nil, true},
		{"a_B.9-", []string{"b", "c"}, true},
		{long, []string{long}, true},
		{long + "x", nil, false},
		{"", nil, false},
		{"a\x00", nil, false},
		{"a\xff", nil, false},
		{"a b", nil, false},
		{"a", []string{"b", long + "x"}, false},
		{"a", []string{"b\n"}, false},
	} {
		listed := types.Shard{ShardId: aws.String(tt.id)}
		for i, p := range tt.parents {
			if i == 0 {
				listed.ParentShardId = aws.String(p)
			} else {
				listed.AdjacentParentShardId = aws.String(p)
			}
		}
		if _, err := fromSDK(listed); (err == nil) != tt.ok {
			t.Errorf("%.20q of %.20q is listed: %v", tt.id, tt.parents, err)
		}
		_, err := children([]types.ChildShard{{ShardId: aws.String(tt.id), ParentShards: tt.parents}})
		if (err == nil) != tt.ok {
			t.Errorf("%.20q of %.20q is named as a child: %v", tt.id, tt.parents, err)
		}
	}
	for n, ok := range map[int]bool{mostChildren: true, mostChildren + 1: false} {
		_, err := children(slices.Repeat([]types.ChildShard{{ShardId: aws.String("a")}}, n))
		if (err == nil) != ok {
			t.Errorf("%d children: %v", n, err)
		}
	}
}
