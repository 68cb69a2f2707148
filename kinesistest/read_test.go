package kinesistest_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

func TestIteratorTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true})
		s.CreateStream("s", 1)
		r := reader{t, t.Context(), c, "s"}
		started := time.Now()
		var seq []string
		for i := range 5 { // one record each second
			_, n := s.Put("s", "k", fmt.Appendf(nil, "%d", i))
			seq = append(seq, n)
			time.Sleep(time.Second)
		}
		opening := *r.shards(nil)[0].SequenceNumberRange.StartingSequenceNumber
		shard := shardID(0)
		for _, tc := range []struct {
			name     string
			iterator *string
			want     string
		}{
			{"TRIM_HORIZON", r.iterator(shard, types.ShardIteratorTypeTrimHorizon), "[0 1 2 3 4]"},
			{"LATEST", r.iterator(shard, types.ShardIteratorTypeLatest), "[]"},
			{"AT the first number of the shard", r.iterator(shard, types.ShardIteratorTypeAtSequenceNumber, at(opening)), "[0 1 2 3 4]"},
			{"AFTER the first number of the shard", r.iterator(shard, types.ShardIteratorTypeAfterSequenceNumber, at(opening)), "[0 1 2 3 4]"},
			{"AT a record", r.iterator(shard, types.ShardIteratorTypeAtSequenceNumber, at(seq[2])), "[2 3 4]"},
			{"AFTER a record", r.iterator(shard, types.ShardIteratorTypeAfterSequenceNumber, at(seq[2])), "[3 4]"},
			{"AFTER the last record", r.iterator(shard, types.ShardIteratorTypeAfterSequenceNumber, at(seq[4])), "[]"},
			{"AT_TIMESTAMP of a record", r.iterator(shard, types.ShardIteratorTypeAtTimestamp, when(started.Add(3*time.Second))), "[3 4]"},
			{"AT_TIMESTAMP between records", r.iterator(shard, types.ShardIteratorTypeAtTimestamp, when(started.Add(2001*time.Millisecond))), "[3 4]"},
			{"AT_TIMESTAMP of long ago", r.iterator(shard, types.ShardIteratorTypeAtTimestamp, when(started.Add(-1000*time.Hour))), "[0 1 2 3 4]"},
			{"AT_TIMESTAMP of now", r.iterator(shard, types.ShardIteratorTypeAtTimestamp, when(time.Now())), "[]"},
		} {
			page := r.page(tc.iterator)
			if got := texts(page.Records); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
			}
			if page.NextShardIterator == nil || len(page.ChildShards) > 0 || *page.MillisBehindLatest != 0 {
				t.Errorf("%s: the page ends the shard or is behind", tc.name)
			}
			// An iterator without records may return records that are put later, and so may its
			// successor. So only iterators with records are read again.
			if tc.want == "[]" {
				continue
			}
			if got := texts(r.page(tc.iterator).Records); got != tc.want {
				t.Errorf("%s again: got %s, want %s", tc.name, got, tc.want)
			}
		}
		latest := r.iterator(shard, types.ShardIteratorTypeLatest)
		s.Put("s", "k", []byte("new"))
		if got := texts(r.page(latest).Records); got != "[new]" {
			t.Errorf("LATEST that was taken before: got %s", got)
		}
	})
}

func TestIteratorErrors(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 2)
	s.CreateStream("other", 2)
	shard, seq := s.Put("s", "k", nil)
	r := reader{t, t.Context(), c, "s"}
	foreign := shardID(0)
	if shard == foreign {
		foreign = shardID(1)
	}
	// The index in beyond is one higher than in seq. No record has it yet.
	beyond := new(big.Int).Add(bigOf(t, seq), new(big.Int).Lsh(big.NewInt(1), 80)).String()
	s.DeleteStream("other")
	future := time.Now().Add(time.Hour)
	past := time.Now().Add(-time.Hour)
	for _, tc := range []struct {
		name string
		in   kinesis.GetShardIteratorInput
		code string
	}{
		{"of an unknown shard", kinesis.GetShardIteratorInput{ShardId: aws.String(shardID(7)), ShardIteratorType: "LATEST"}, "ResourceNotFoundException"},
		{"of what is no shard", kinesis.GetShardIteratorInput{ShardId: aws.String("shard"), ShardIteratorType: "LATEST"}, "ResourceNotFoundException"},
		{"of a stream that is gone", kinesis.GetShardIteratorInput{StreamName: aws.String("other"), ShardId: &shard, ShardIteratorType: "LATEST"}, "ResourceNotFoundException"},
		{"of an unknown type", kinesis.GetShardIteratorInput{ShardId: &shard, ShardIteratorType: "EARLIEST"}, "ValidationException"},
		{"AT no number", kinesis.GetShardIteratorInput{ShardId: &shard, ShardIteratorType: "AT_SEQUENCE_NUMBER"}, "InvalidArgumentException"},
		{"AT a word", kinesis.GetShardIteratorInput{ShardId: &shard, ShardIteratorType: "AT_SEQUENCE_NUMBER", StartingSequenceNumber: aws.String("LATEST")}, "ValidationException"},
		{"AT a number of no shard", kinesis.GetShardIteratorInput{ShardId: &shard, ShardIteratorType: "AT_SEQUENCE_NUMBER", StartingSequenceNumber: aws.String("1234567")}, "InvalidArgumentException"},
		{"AT zero", kinesis.GetShardIteratorInput{ShardId: &shard, ShardIteratorType: "AT_SEQUENCE_NUMBER", StartingSequenceNumber: aws.String("0")}, "InvalidArgumentException"},
		{"AT a number of another shard", kinesis.GetShardIteratorInput{ShardId: &foreign, ShardIteratorType: "AT_SEQUENCE_NUMBER", StartingSequenceNumber: &seq}, "InvalidArgumentException"},
		{"AFTER a number that was never given", kinesis.GetShardIteratorInput{ShardId: &shard, ShardIteratorType: "AFTER_SEQUENCE_NUMBER", StartingSequenceNumber: &beyond}, "InvalidArgumentException"},
		{"LATEST with a number", kinesis.GetShardIteratorInput{ShardId: &shard, ShardIteratorType: "LATEST", StartingSequenceNumber: &seq}, "InvalidArgumentException"},
		{"AT_TIMESTAMP without one", kinesis.GetShardIteratorInput{ShardId: &shard, ShardIteratorType: "AT_TIMESTAMP"}, "InvalidArgumentException"},
		{"AT_TIMESTAMP of the future", kinesis.GetShardIteratorInput{ShardId: &shard, ShardIteratorType: "AT_TIMESTAMP", Timestamp: &future}, "InvalidArgumentException"},
		{"TRIM_HORIZON with a timestamp", kinesis.GetShardIteratorInput{ShardId: &shard, ShardIteratorType: "TRIM_HORIZON", Timestamp: &past}, "InvalidArgumentException"},
		{"dry run", kinesis.GetShardIteratorInput{ShardId: &shard, ShardIteratorType: "LATEST", DryRun: aws.Bool(true)}, "DryRunOperationException"},
		{"dry run of what would fail", kinesis.GetShardIteratorInput{ShardId: aws.String(shardID(7)), ShardIteratorType: "LATEST", DryRun: aws.Bool(true)}, "ResourceNotFoundException"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.in.StreamName == nil {
				tc.in.StreamName = aws.String("s")
			}
			_, err := c.GetShardIterator(t.Context(), &tc.in)
			wantCode(t, err, tc.code)
		})
	}
	good := r.iterator(shard, types.ShardIteratorTypeLatest)
	flipped := []byte(*good)
	flipped[len(flipped)/2] ^= 1
	token := ok[*kinesis.ListShardsOutput](t)(c.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("s"), MaxResults: aws.Int32(1)})).NextToken
	for _, tc := range []struct {
		name string
		in   kinesis.GetRecordsInput
		code string
	}{
		{"an iterator that was changed", kinesis.GetRecordsInput{ShardIterator: aws.String(string(flipped))}, "InvalidArgumentException"},
		{"half an iterator", kinesis.GetRecordsInput{ShardIterator: aws.String((*good)[:len(*good)/2])}, "InvalidArgumentException"},
		{"no iterator at all", kinesis.GetRecordsInput{ShardIterator: aws.String("")}, "ValidationException"},
		{"too long an iterator", kinesis.GetRecordsInput{ShardIterator: aws.String(strings.Repeat("A", 600))}, "ValidationException"},
		{"the token of a listing", kinesis.GetRecordsInput{ShardIterator: token}, "InvalidArgumentException"},
		{"another stream's ARN", kinesis.GetRecordsInput{ShardIterator: good, StreamARN: aws.String(s.StreamARN("other"))}, "InvalidArgumentException"},
		{"a limit of zero", kinesis.GetRecordsInput{ShardIterator: good, Limit: aws.Int32(0)}, "ValidationException"},
		{"a limit too large", kinesis.GetRecordsInput{ShardIterator: good, Limit: aws.Int32(10001)}, "ValidationException"},
		{"dry run", kinesis.GetRecordsInput{ShardIterator: good, DryRun: aws.Bool(true)}, "DryRunOperationException"},
	} {
		t.Run("GetRecords with "+tc.name, func(t *testing.T) {
			_, err := c.GetRecords(t.Context(), &tc.in)
			wantCode(t, err, tc.code)
		})
	}
}

func TestIteratorsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true})
		s.CreateStream("s", 1)
		it := reader{t, t.Context(), c, "s"}.iterator(shardID(0), types.ShardIteratorTypeLatest)
		time.Sleep(5 * time.Minute)
		ok[*kinesis.GetRecordsOutput](t)(c.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: it}))
		time.Sleep(time.Second)
		_, err := c.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: it})
		wantCode(t, err, "ExpiredIteratorException")
	})
}

func TestMillisBehindLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true})
		s.CreateStream("s", 1)
		r := reader{t, t.Context(), c, "s"}
		for range 3 {
			s.Put("s", "k", []byte("x"))
			time.Sleep(10 * time.Second)
		}
		it := r.iterator(shardID(0), types.ShardIteratorTypeTrimHorizon)
		for _, want := range []int64{30_000, 20_000, 0, 0} {
			page := r.page(it, 1)
			if *page.MillisBehindLatest != want {
				t.Errorf("got %d, want %d", *page.MillisBehindLatest, want)
			}
			it = page.NextShardIterator
		}
		// All records arrive in one millisecond. The lag must not be 0, because 0 would mean the
		// tip.
		s.Put("s", "k", []byte("x"))
		s.Put("s", "k", []byte("x"))
		if page := r.page(it, 1); *page.MillisBehindLatest < 1 {
			t.Errorf("got %d with a record left", *page.MillisBehindLatest)
		}
	})
}

func TestEndOfShard(t *testing.T) {
	for _, emptyPage := range []bool{false, true} {
		t.Run(fmt.Sprintf("EndOnEmptyPage %v", emptyPage), func(t *testing.T) {
			s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true, EndOnEmptyPage: emptyPage})
			s.CreateStream("s", 2)
			r := reader{t, t.Context(), c, "s"}
			for i := range 3 {
				for _, key := range []string{"a", "b", "c", "d"} {
					s.Put("s", key, fmt.Appendf(nil, "%s%d", key, i))
				}
			}
			before := r.iterator(shardID(0), types.ShardIteratorTypeTrimHorizon)
			s.Split("s", shardID(0))
			after := r.iterator(shardID(0), types.ShardIteratorTypeTrimHorizon)
			want := 0
			for _, rec := range s.Records("s") {
				if rec.Shard == shardID(0) {
					want++
				}
			}
			for _, it := range []*string{before, after} {
				got, pages := 0, 0
				for {
					page := r.page(it, 2)
					pages++
					got += len(page.Records)
					if (page.NextShardIterator == nil) != (len(page.ChildShards) > 0) {
						t.Fatalf("the end marker is half: iterator %v, %d children", page.NextShardIterator, len(page.ChildShards))
					}
					if page.NextShardIterator == nil {
						if (len(page.Records) == 0) != emptyPage {
							t.Errorf("%d records on the last page", len(page.Records))
						}
						checkChildren(t, page.ChildShards, "[2<[0] 3<[0]]")
						break
					}
					it = page.NextShardIterator
				}
				if got != want {
					t.Errorf("read %d records in %d pages, want %d", got, pages, want)
				}
			}
			latest := r.page(r.iterator(shardID(0), types.ShardIteratorTypeLatest))
			if latest.NextShardIterator != nil || len(latest.ChildShards) != 2 || *latest.MillisBehindLatest != 0 {
				t.Errorf("LATEST of a closed shard: %+v", latest)
			}
			ending := *r.shards(nil)[0].SequenceNumberRange.EndingSequenceNumber
			if end := r.page(r.iterator(shardID(0), types.ShardIteratorTypeAfterSequenceNumber, at(ending))); end.NextShardIterator != nil || len(end.Records) > 0 {
				t.Errorf("AFTER the ending number: %+v", end)
			}
			s.Merge("s", shardID(3), shardID(1))
			for _, parent := range []string{shardID(3), shardID(1)} {
				page := r.page(r.iterator(parent, types.ShardIteratorTypeLatest))
				checkChildren(t, page.ChildShards, "[4<[3 1]]")
			}
		})
	}
}

func checkChildren(t *testing.T, children []types.ChildShard, want string) {
	t.Helper()
	var got []string
	for _, ch := range children {
		var parents []string
		for _, p := range ch.ParentShards {
			parents = append(parents, number(p))
		}
		got = append(got, fmt.Sprintf("%s<%v", number(*ch.ShardId), parents))
		if ch.HashKeyRange == nil || ch.HashKeyRange.StartingHashKey == nil || ch.HashKeyRange.EndingHashKey == nil {
			t.Errorf("%s has no hash range", *ch.ShardId)
		}
	}
	if fmt.Sprint(got) != want {
		t.Errorf("children %v, want %s", got, want)
	}
}

func TestPagesAreBoundedByTenMebibytes(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 1)
	for range 12 {
		s.Put("s", "k", make([]byte, 1<<20-1))
	}
	r := reader{t, t.Context(), c, "s"}
	page := r.page(r.iterator(shardID(0), types.ShardIteratorTypeTrimHorizon))
	if len(page.Records) != 10 {
		t.Errorf("got %d records", len(page.Records))
	}
	if rest := r.page(page.NextShardIterator); len(rest.Records) != 2 {
		t.Errorf("then got %d records", len(rest.Records))
	}
}

func TestRecordsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true})
		strict, strictClient := start(t, kinesistest.Config{InMemory: true, NoLimits: true, RefuseTrimmed: true})
		s.CreateStream("s", 1)
		strict.CreateStream("s", 1)
		r := reader{t, t.Context(), c, "s"}
		var seq []string
		for i := range 48 { // one record each hour
			_, n := s.Put("s", "k", fmt.Appendf(nil, "%d", i))
			seq = append(seq, n)
			strict.Put("s", "k", nil)
			time.Sleep(time.Hour)
		}
		kept := func() string {
			t.Helper()
			records := s.Records("s")
			page := r.page(r.iterator(shardID(0), types.ShardIteratorTypeTrimHorizon))
			if len(page.Records) != len(records) {
				t.Errorf("read %d, kept %d", len(page.Records), len(records))
			}
			if len(records) == 0 {
				return "none"
			}
			return string(records[0].Data) + "-" + string(records[len(records)-1].Data)
		}
		if got := kept(); got != "25-47" { // the record of exactly 24 hours ago has expired
			t.Errorf("after 48 h: %s", got)
		}
		retain := func(hours int32, longer bool) {
			t.Helper()
			var err error
			if longer {
				_, err = c.IncreaseStreamRetentionPeriod(t.Context(), &kinesis.IncreaseStreamRetentionPeriodInput{StreamName: aws.String("s"), RetentionPeriodHours: &hours})
			} else {
				_, err = c.DecreaseStreamRetentionPeriod(t.Context(), &kinesis.DecreaseStreamRetentionPeriodInput{StreamName: aws.String("s"), RetentionPeriodHours: &hours})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		retain(48, true) // does not restore expired records
		if got := kept(); got != "25-47" {
			t.Errorf("after the increase: %s", got)
		}
		time.Sleep(10 * time.Hour)
		if got := kept(); got != "25-47" {
			t.Errorf("10 h later: %s", got)
		}
		retain(24, false) // drops records immediately
		if got := kept(); got != "35-47" {
			t.Errorf("after the decrease: %s", got)
		}
		// Positions whose records have been dropped.
		if got := texts(r.page(r.iterator(shardID(0), types.ShardIteratorTypeAtSequenceNumber, at(seq[3])), 1).Records); got != "[35]" {
			t.Errorf("AT a trimmed number: %s", got)
		}
		old := seqOfFirst(t, strict)
		time.Sleep(24 * time.Hour)
		_, err := strictClient.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{
			StreamName: aws.String("s"), ShardId: aws.String(shardID(0)),
			ShardIteratorType: types.ShardIteratorTypeAtSequenceNumber, StartingSequenceNumber: &old,
		})
		wantCode(t, err, "InvalidArgumentException")
		if got := kept(); got != "none" {
			t.Errorf("at the end: %s", got)
		}
		// A closed shard is removed when its retention period is over.
		s.Split("s", shardID(0))
		it := r.iterator(shardID(0), types.ShardIteratorTypeTrimHorizon)
		time.Sleep(time.Minute)
		r.page(it)
		time.Sleep(24 * time.Hour)
		_, err = c.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{StreamName: aws.String("s"), ShardId: aws.String(shardID(0)), ShardIteratorType: types.ShardIteratorTypeTrimHorizon})
		wantCode(t, err, "ResourceNotFoundException")
	})
}

func seqOfFirst(t *testing.T, s *kinesistest.Server) string {
	t.Helper()
	records := s.Records("s")
	if len(records) == 0 {
		t.Fatal("no records")
	}
	return records[0].SequenceNumber
}
