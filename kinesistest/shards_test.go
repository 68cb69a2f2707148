package kinesistest_test

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

// lineage formats shards as number(parents).
func lineage(shards []types.Shard) string {
	var s []string
	for _, sh := range shards {
		line := number(*sh.ShardId)
		if sh.ParentShardId != nil {
			line += "<" + number(*sh.ParentShardId)
		}
		if sh.AdjacentParentShardId != nil {
			line += "+" + number(*sh.AdjacentParentShardId)
		}
		if sh.SequenceNumberRange.EndingSequenceNumber == nil {
			line += "*"
		}
		s = append(s, line)
	}
	return fmt.Sprint(s)
}

func bigOf(tb testing.TB, s string) *big.Int {
	tb.Helper()
	n, good := new(big.Int).SetString(s, 10)
	if !good {
		tb.Fatalf("%q is not a number", s)
	}
	return n
}

// checkShards checks properties that every listing of shards must have. The open shards cover all
// hash keys without overlap. A child shard has larger numbers than its parents.
func checkShards(tb testing.TB, shards []types.Shard) {
	tb.Helper()
	byID := map[string]types.Shard{}
	var open []types.Shard
	for _, sh := range shards {
		byID[*sh.ShardId] = sh
		if sh.SequenceNumberRange.EndingSequenceNumber == nil {
			open = append(open, sh)
		} else if bigOf(tb, *sh.SequenceNumberRange.EndingSequenceNumber).Cmp(bigOf(tb, *sh.SequenceNumberRange.StartingSequenceNumber)) <= 0 {
			tb.Errorf("%s ends before it starts", *sh.ShardId)
		}
		for _, id := range []*string{sh.ParentShardId, sh.AdjacentParentShardId} {
			if parent, found := byID[aws.ToString(id)]; found {
				if bigOf(tb, *sh.SequenceNumberRange.StartingSequenceNumber).Cmp(bigOf(tb, *parent.SequenceNumberRange.EndingSequenceNumber)) <= 0 {
					tb.Errorf("%s begins before its parent %s ends", *sh.ShardId, *id)
				}
			}
		}
	}
	slices.SortFunc(open, func(a, b types.Shard) int {
		return bigOf(tb, *a.HashKeyRange.StartingHashKey).Cmp(bigOf(tb, *b.HashKeyRange.StartingHashKey))
	})
	next := big.NewInt(0)
	for _, sh := range open {
		if bigOf(tb, *sh.HashKeyRange.StartingHashKey).Cmp(next) != 0 {
			tb.Errorf("the open shards leave a gap or overlap at %s", next)
		}
		next = new(big.Int).Add(bigOf(tb, *sh.HashKeyRange.EndingHashKey), big.NewInt(1))
	}
	if next.Cmp(new(big.Int).Lsh(big.NewInt(1), 128)) != 0 {
		tb.Errorf("the open shards end at %s", next)
	}
}

func TestHashRangesOfNewStreams(t *testing.T) {
	s, c := start(t)
	for n, second := range map[int]string{
		2: "170141183460469231731687303715884105728",
		3: "113427455640312821154458202477256070485",
		7: "48611766702991209066196372490252601636",
	} {
		name := fmt.Sprint(n)
		s.CreateStream(name, n)
		shards := reader{t, t.Context(), c, name}.shards(nil)
		checkShards(t, shards)
		if got := *shards[1].HashKeyRange.StartingHashKey; got != second {
			t.Errorf("of %d shards the second one starts at %s, want %s", n, got, second)
		}
	}
}

func TestSplitAndMerge(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 2)
	r := reader{t, t.Context(), c, "s"}
	lower, upper := s.Split("s", shardID(0))
	if got := lineage(r.shards(nil)); got != "[0 1* 2<0* 3<0*]" {
		t.Fatalf("after the split: %s", got)
	}
	s.Merge("s", upper, shardID(1))
	if got := lineage(r.shards(nil)); got != "[0 1 2<0* 3<0 4<3+1*]" {
		t.Fatalf("after the merge: %s", got)
	}
	s.Merge("s", shardID(4), lower)
	shards := r.shards(nil)
	if got := lineage(shards); got != "[0 1 2<0 3<0 4<3+1 5<2+4*]" {
		t.Fatalf("after the second merge: %s", got)
	}
	checkShards(t, shards)
	// Split and merge for many generations.
	for range 20 {
		s.Merge("s", second(s.Split("s", s.OpenShards("s")[0])), s.OpenShards("s")[0])
	}
	checkShards(t, r.shards(nil))
}

func second(_, b string) string { return b }

func TestReshardingErrors(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 4)
	s.Split("s", shardID(3)) // closed: 3, its children: 4 and 5
	ok[*kinesis.CreateStreamOutput](t)(c.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: aws.String("od"), StreamModeDetails: &types.StreamModeDetails{StreamMode: types.StreamModeOnDemand}}))
	first := reader{t, t.Context(), c, "s"}.shards(nil)[1].HashKeyRange
	split := func(stream, shard, start string) func() error {
		return func() error {
			_, err := c.SplitShard(t.Context(), &kinesis.SplitShardInput{StreamName: &stream, ShardToSplit: &shard, NewStartingHashKey: &start})
			return err
		}
	}
	merge := func(stream, a, b string) func() error {
		return func() error {
			_, err := c.MergeShards(t.Context(), &kinesis.MergeShardsInput{StreamName: &stream, ShardToMerge: &a, AdjacentShardToMerge: &b})
			return err
		}
	}
	scale := func(stream string, n int32) func() error {
		return func() error {
			_, err := c.UpdateShardCount(t.Context(), &kinesis.UpdateShardCountInput{StreamName: &stream, TargetShardCount: &n, ScalingType: types.ScalingTypeUniformScaling})
			return err
		}
	}
	plus := func(s string, n int64) string { return new(big.Int).Add(bigOf(t, s), big.NewInt(n)).String() }
	for _, tc := range []struct {
		name string
		do   func() error
		code string
	}{
		{"split a closed shard", split("s", shardID(3), "300000000000000000000000000000000000000"), "InvalidArgumentException"},
		{"split an unknown shard", split("s", shardID(9), "1000"), "ResourceNotFoundException"},
		{"split what is no shard", split("s", "zero", "1000"), "ResourceNotFoundException"},
		{"split outside of the range", split("s", shardID(1), "5"), "InvalidArgumentException"},
		{"split at the start", split("s", shardID(1), *first.StartingHashKey), "InvalidArgumentException"},
		{"split at one behind the start", split("s", shardID(1), plus(*first.StartingHashKey, 1)), "InvalidArgumentException"},
		{"split at the end", split("s", shardID(1), *first.EndingHashKey), "InvalidArgumentException"},
		{"split at a number too large", split("s", shardID(1), "999999999999999999999999999999999999999"), "InvalidArgumentException"},
		{"split at a word", split("s", shardID(1), "ten"), "ValidationException"},
		{"split at a number with a zero in front", split("s", shardID(1), "0100"), "ValidationException"},
		{"split on demand", split("od", shardID(0), "1000"), "ValidationException"},
		{"split of no stream", split("none", shardID(0), "1000"), "ResourceNotFoundException"},
		{"merge shards apart", merge("s", shardID(0), shardID(2)), "InvalidArgumentException"},
		{"merge a shard with itself", merge("s", shardID(0), shardID(0)), "InvalidArgumentException"},
		{"merge a closed shard", merge("s", shardID(2), shardID(3)), "InvalidArgumentException"},
		{"merge on demand", merge("od", shardID(0), shardID(1)), "ValidationException"},
		{"scale to more than double", scale("s", 11), "LimitExceededException"},
		{"scale to less than half", scale("s", 2), "LimitExceededException"},
		{"scale to nothing", scale("s", 0), "ValidationException"},
		{"scale on demand", scale("od", 4), "ValidationException"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantCode(t, tc.do(), tc.code) })
	}
}

func TestUpdateShardCountSplitsAndMerges(t *testing.T) {
	for _, tc := range []struct {
		from, to int
		lineage  string
	}{
		{2, 4, "[0 1 2<0* 3<0* 4<1* 5<1*]"},
		{4, 2, "[0 1 2 3 4<0+1* 5<2+3*]"},
		{3, 6, "[0 1 2 3<0* 4<0* 5<1* 6<1* 7<2* 8<2*]"},
		// An intermediate shard lies between a grandparent and a grandchild.
		{2, 3, "[0 1 2<0* 3<0 4<1 5<1* 6<3+4*]"},
		{1, 1, "[0*]"},
	} {
		t.Run(fmt.Sprintf("from %d to %d", tc.from, tc.to), func(t *testing.T) {
			s, c := start(t)
			s.CreateStream("s", tc.from)
			out := ok[*kinesis.UpdateShardCountOutput](t)(c.UpdateShardCount(t.Context(), &kinesis.UpdateShardCountInput{
				StreamName: aws.String("s"), TargetShardCount: aws.Int32(int32(tc.to)), ScalingType: types.ScalingTypeUniformScaling,
			}))
			if *out.CurrentShardCount != int32(tc.from) || *out.TargetShardCount != int32(tc.to) {
				t.Errorf("got %d to %d", *out.CurrentShardCount, *out.TargetShardCount)
			}
			shards := reader{t, t.Context(), c, "s"}.shards(nil)
			checkShards(t, shards)
			if got := lineage(shards); got != tc.lineage {
				t.Errorf("got %s, want %s", got, tc.lineage)
			}
		})
	}
	t.Run("whatever the counts, the result is uniform", func(t *testing.T) {
		s, c := start(t)
		s.CreateStream("s", 5)
		r := reader{t, t.Context(), c, "s"}
		for _, n := range []int{10, 7, 13, 26, 17, 9, 5, 3, 2, 1, 2, 3, 6, 12} {
			s.Scale("s", n)
			checkShards(t, r.shards(nil))
			open := r.shards(&types.ShardFilter{Type: types.ShardFilterTypeAtLatest})
			if len(open) != n {
				t.Fatalf("%d open shards, want %d", len(open), n)
			}
			width := new(big.Int).Div(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(int64(n)))
			for _, sh := range open {
				w := new(big.Int).Sub(bigOf(t, *sh.HashKeyRange.EndingHashKey), bigOf(t, *sh.HashKeyRange.StartingHashKey))
				if w.Sub(w, width).CmpAbs(big.NewInt(1000)) > 0 {
					t.Errorf("of %d, %s is off by %s", n, *sh.ShardId, w)
				}
			}
		}
	})
	t.Run("with a delay the steps come one after another", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true})
			s.CreateStream("s", 2)
			s.SetStateDelay(9 * time.Second)
			r := reader{t, t.Context(), c, "s"}
			ok[*kinesis.UpdateShardCountOutput](t)(c.UpdateShardCount(t.Context(), &kinesis.UpdateShardCountInput{
				StreamName: aws.String("s"), TargetShardCount: aws.Int32(3), ScalingType: types.ScalingTypeUniformScaling,
			}))
			for _, want := range []string{"[0* 1*]", "[0 1* 2<0* 3<0*]", "[0 1 2<0* 3<0* 4<1* 5<1*]", "[0 1 2<0* 3<0 4<1 5<1* 6<3+4*]"} {
				if got := lineage(r.shards(nil)); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				time.Sleep(3 * time.Second)
			}
		})
	})
}

func TestListShardsFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true})
		r := reader{t, t.Context(), c, "s"}
		created := time.Now()
		s.CreateStream("s", 2)
		time.Sleep(time.Hour)
		s.Split("s", shardID(0)) // at 1 h: 2 and 3
		split := time.Now()
		time.Sleep(time.Hour)
		s.Merge("s", shardID(3), shardID(1)) // at 2 h: 4
		merged := time.Now()
		time.Sleep(time.Hour)

		at := func(kind types.ShardFilterType, when time.Time) *types.ShardFilter {
			return &types.ShardFilter{Type: kind, Timestamp: &when}
		}
		for _, tc := range []struct {
			name   string
			filter *types.ShardFilter
			want   string
		}{
			{"no filter", nil, "[0 1 2 3 4]"},
			{"AT_LATEST", &types.ShardFilter{Type: types.ShardFilterTypeAtLatest}, "[2 4]"},
			{"AT_TRIM_HORIZON", &types.ShardFilter{Type: types.ShardFilterTypeAtTrimHorizon}, "[0 1]"},
			{"FROM_TRIM_HORIZON", &types.ShardFilter{Type: types.ShardFilterTypeFromTrimHorizon}, "[0 1 2 3 4]"},
			{"AFTER_SHARD_ID", &types.ShardFilter{Type: types.ShardFilterTypeAfterShardId, ShardId: aws.String(shardID(1))}, "[2 3 4]"},
			{"AT_TIMESTAMP before the stream", at(types.ShardFilterTypeAtTimestamp, created.Add(-time.Hour)), "[0 1]"},
			{"AT_TIMESTAMP of the creation", at(types.ShardFilterTypeAtTimestamp, created), "[0 1]"},
			{"AT_TIMESTAMP of the split", at(types.ShardFilterTypeAtTimestamp, split), "[0 1]"},
			{"AT_TIMESTAMP just after the split", at(types.ShardFilterTypeAtTimestamp, split.Add(time.Millisecond)), "[1 2 3]"},
			{"AT_TIMESTAMP before the merge", at(types.ShardFilterTypeAtTimestamp, merged.Add(-time.Minute)), "[1 2 3]"},
			{"AT_TIMESTAMP now", at(types.ShardFilterTypeAtTimestamp, time.Now()), "[2 4]"},
			{"FROM_TIMESTAMP before the stream", at(types.ShardFilterTypeFromTimestamp, created.Add(-time.Hour)), "[0 1 2 3 4]"},
			{"FROM_TIMESTAMP after the split", at(types.ShardFilterTypeFromTimestamp, split.Add(time.Minute)), "[1 2 3 4]"},
			{"FROM_TIMESTAMP now", at(types.ShardFilterTypeFromTimestamp, time.Now()), "[2 4]"},
		} {
			if got := ids(r.shards(tc.filter)); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
			}
			// Reading the listing page by page returns the same shards.
			in := &kinesis.ListShardsInput{StreamName: aws.String("s"), ShardFilter: tc.filter, MaxResults: aws.Int32(1)}
			var all []types.Shard
			for {
				out := ok[*kinesis.ListShardsOutput](t)(c.ListShards(t.Context(), in))
				all = append(all, out.Shards...)
				if out.NextToken == nil {
					break
				}
				in = &kinesis.ListShardsInput{NextToken: out.NextToken, MaxResults: aws.Int32(1)}
			}
			if got := ids(all); got != tc.want {
				t.Errorf("%s by pages: got %s, want %s", tc.name, got, tc.want)
			}
		}
		if got := ids(ok[*kinesis.ListShardsOutput](t)(c.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("s"), ExclusiveStartShardId: aws.String(shardID(2))})).Shards); got != "[3 4]" {
			t.Errorf("behind shard 2: %s", got)
		}
		// Closed shards expire, but their child shards stay.
		time.Sleep(22*time.Hour + time.Millisecond) // 25 h
		if got := lineage(r.shards(nil)); got != "[1 2<0* 3<0 4<3+1*]" {
			t.Errorf("after 25 h: %s", got)
		}
		if got := ids(r.shards(&types.ShardFilter{Type: types.ShardFilterTypeAtTrimHorizon})); got != "[1 2 3]" {
			t.Errorf("at the horizon of 25 h: %s", got)
		}
		time.Sleep(time.Hour)
		if got := lineage(r.shards(nil)); got != "[2<0* 4<3+1*]" {
			t.Errorf("after 26 h: %s", got)
		}
	})
}

func TestListShardsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true})
		s.CreateStream("s", 3)
		first := ok[*kinesis.ListShardsOutput](t)(c.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("s"), MaxResults: aws.Int32(1)}))
		future := time.Now().Add(time.Hour)
		past := time.Now().Add(-time.Hour)
		name := aws.String("s")
		for what, in := range map[string]*kinesis.ListShardsInput{
			"InvalidArgumentException: nothing":                  {},
			"InvalidArgumentException: token and name":           {StreamName: name, NextToken: first.NextToken},
			"InvalidArgumentException: token and time":           {StreamCreationTimestamp: &past, NextToken: first.NextToken},
			"InvalidArgumentException: token and start":          {ExclusiveStartShardId: aws.String(shardID(0)), NextToken: first.NextToken},
			"InvalidArgumentException: token and filter":         {ShardFilter: &types.ShardFilter{Type: types.ShardFilterTypeAtLatest}, NextToken: first.NextToken},
			"InvalidArgumentException: a bad token":              {NextToken: aws.String("AAAA")},
			"InvalidArgumentException: filter without shard":     {StreamName: name, ShardFilter: &types.ShardFilter{Type: types.ShardFilterTypeAfterShardId}},
			"InvalidArgumentException: filter without timestamp": {StreamName: name, ShardFilter: &types.ShardFilter{Type: types.ShardFilterTypeAtTimestamp}},
			"InvalidArgumentException: filter of the future":     {StreamName: name, ShardFilter: &types.ShardFilter{Type: types.ShardFilterTypeAtTimestamp, Timestamp: &future}},
			"ValidationException: unknown filter":                {StreamName: name, ShardFilter: &types.ShardFilter{Type: "NEVER"}},
			"ValidationException: no results":                    {StreamName: name, MaxResults: aws.Int32(0)},
			"ResourceNotFoundException: another creation":        {StreamName: name, StreamCreationTimestamp: &past},
		} {
			code, _, _ := strings.Cut(what, ":")
			_, err := c.ListShards(t.Context(), in)
			t.Log(what)
			wantCode(t, err, code)
		}
		time.Sleep(300*time.Second + time.Millisecond)
		_, err := c.ListShards(t.Context(), &kinesis.ListShardsInput{NextToken: first.NextToken})
		wantCode(t, err, "ExpiredNextTokenException")
	})
}
