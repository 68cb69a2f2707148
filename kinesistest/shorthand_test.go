package kinesistest_test

import (
	"os"
	"path/filepath"
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

func TestPutFile(t *testing.T) {
	s := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
	s.CreateStream("s", 8)
	file := filepath.Join(t.TempDir(), "lines")
	text := "a 1\r\n\nb 2\na 3\n" + strings.Repeat("x", 70_000) + " 4"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := s.PutFile("s", file, func(line []byte) string { return string(line[:1]) }); n != 4 {
		t.Errorf("%d records", n)
	}
	var got []string
	for _, r := range s.Records("s") {
		if r.PartitionKey != string(r.Data[:1]) {
			t.Errorf("key %q of %.10q", r.PartitionKey, r.Data)
		}
		if len(r.Data) < 10 {
			got = append(got, string(r.Data))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"a 1", "a 3", "b 2"}) {
		t.Errorf("records %q", got)
	}

	s.CreateStream("spread", 8)
	for range 10 {
		s.PutFile("spread", file, nil)
	}
	if last := s.LastRecords("spread"); len(last) < 3 {
		t.Errorf("without a key they are in %d shards", len(last))
	}
}

func TestLastRecords(t *testing.T) {
	s := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
	s.CreateStream("s", 2)
	shard, _ := s.Put("s", "k", []byte("1"))
	_, sequence := s.Put("s", "k", []byte("2"))
	last := s.LastRecords("s")
	if r := last[shard]; len(last) != 1 || r.SequenceNumber != sequence || string(r.Data) != "2" || r.Shard != shard {
		t.Errorf("%+v", last)
	}
}

func TestAwaitShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := kinesistest.NewServer(t, kinesistest.Config{InMemory: true, StateDelay: 10 * time.Second})
		s.CreateStream("s", 1)
		began := time.Now()
		if _, err := s.Client().UpdateShardCount(t.Context(), &kinesis.UpdateShardCountInput{
			StreamName: aws.String("s"), TargetShardCount: aws.Int32(2), ScalingType: types.ScalingTypeUniformScaling,
		}); err != nil {
			t.Fatal(err)
		}
		ids := s.AwaitShards("s", 2)
		if took := time.Since(began); took < 10*time.Second || took > 11*time.Second || !slices.Equal(ids, s.OpenShards("s")) {
			t.Errorf("%q after %v", ids, took)
		}
	})
}

func TestAwaitShardsThatNeverCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := kinesistest.Start(kinesistest.Config{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.CreateStream("s", 1)
		defer func() {
			if said, _ := recover().(string); !strings.Contains(said, "stream s is ACTIVE and has 1 open shards after a minute, not 2") {
				t.Errorf("it says %q", said)
			}
		}()
		s.AwaitShards("s", 2)
	})
}
