package kinesisletters

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/kinesistest"
)

func letter(n int, key string, data []byte) deadletter.Letter {
	return deadletter.Letter{
		Version: deadletter.Version, ID: fmt.Sprintf("s/shardId-000000000000/%d", n), Stream: "s", Shard: "shardId-000000000000",
		PartitionKey: key, Data: data, Reason: deadletter.Attempts,
	}
}

func letters(t *testing.T, shards int) (*kinesistest.Server, *Stream) {
	t.Helper()
	server := kinesistest.NewServer(t)
	server.CreateStream("dead", shards)
	s, err := New(server.Client(), "dead")
	if err != nil {
		t.Fatal(err)
	}
	return server, s
}

// ids returns the dead letters by key, as the stream contains them.
func ids(t *testing.T, s *Stream) (all map[string][]string, n int) {
	t.Helper()
	all = map[string][]string{}
	for i, err := range s.Items(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if i.State != deadletter.Kept {
			t.Errorf("%s is %s", i.ID, i.State)
		}
		all[i.PartitionKey] = append(all[i.PartitionKey], i.ID)
		n++
	}
	return all, n
}

func TestLettersComeBackInTheOrderOfTheirKeysWhateverTheServiceRefuses(t *testing.T) {
	server, s := letters(t, 3)
	luck := rand.New(rand.NewPCG(1, 2))
	server.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault {
		refuse := map[int]bool{}
		for i := range 5 {
			refuse[i] = luck.IntN(3) == 0
		}
		return kinesistest.Fault{PartialFailure: func(i int) string {
			if refuse[i] {
				return "ProvisionedThroughputExceededException"
			}
			return ""
		}}
	})
	want := map[string][]string{}
	var all []deadletter.Letter
	for n := range 40 {
		l := letter(n, fmt.Sprint("key ", n%5), []byte{byte(n), 0xff})
		all = append(all, l)
		want[l.PartitionKey] = append(want[l.PartitionKey], l.ID)
	}
	if err := s.Put(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if got, n := ids(t, s); n != len(all) || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%d letters: %v", n, got)
	}
}

func TestAStreamThatTakesNothingIsAnErrorAfterAWhile(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	server, s := letters(t, 1)
	var calls atomic.Int32
	server.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault {
		calls.Add(1)
		return kinesistest.Fault{PartialFailure: func(int) string { return "InternalFailure" }}
	})
	err := s.Put(t.Context(), []deadletter.Letter{letter(1, "k", nil)})
	if err == nil || !strings.Contains(err.Error(), "the stream dead did not accept dead letter s/shardId-000000000000/1 and others: InternalFailure") || calls.Load() != mostTries+1 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

func TestALetterLargerThanTheStreamAllowsIsAnErrorUntilItAllowsMore(t *testing.T) {
	server, s := letters(t, 1)
	fits, large, never := make([]byte, 750<<10), make([]byte, 800<<10), make([]byte, 8<<20)
	if err := s.Put(t.Context(), []deadletter.Letter{letter(1, "k", fits)}); err != nil {
		t.Error(err)
	}
	err := s.Put(t.Context(), []deadletter.Letter{letter(2, "k", large)})
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "records of dead may have 1048576") {
		t.Errorf("%v", err)
	}
	_, err = server.Client().UpdateMaxRecordSize(t.Context(), &kinesis.UpdateMaxRecordSizeInput{StreamARN: aws.String(server.StreamARN("dead")), MaxRecordSizeInKiB: aws.Int32(10240)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), []deadletter.Letter{letter(2, "k", large)}); err != nil {
		t.Error(err)
	}
	if err := s.Put(t.Context(), []deadletter.Letter{letter(3, "k", never)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if got, n := ids(t, s); n != 2 {
		t.Errorf("%v", got)
	}
}

func TestLettersNeverGoToTheStreamThatTheyAreAbout(t *testing.T) {
	server, s := letters(t, 1)
	arn := server.StreamARN("dead")
	for _, source := range []string{"dead", arn} {
		if err := s.Check(t.Context(), "other", source); !errors.Is(err, ErrSource) {
			t.Errorf("%s: %v", source, err)
		}
	}
	byARN, err := New(server.Client(), arn)
	if err != nil {
		t.Fatal(err)
	}
	if err := byARN.Check(t.Context(), arn); !errors.Is(err, ErrSource) {
		t.Errorf("%v", err)
	}
	if err := byARN.Check(t.Context(), strings.Replace(arn, ":stream", "0:stream", 1)); err != nil {
		t.Errorf("of another account: %v", err)
	}
	l := letter(1, "k", nil)
	l.Stream = "dead"
	if err := s.Put(t.Context(), []deadletter.Letter{l}); !errors.Is(err, ErrSource) {
		t.Errorf("%v", err)
	}
}

func TestCheckSaysWhatIsWrongAndPutsNothing(t *testing.T) {
	server, s := letters(t, 1)
	if err := s.Check(t.Context(), "s"); err != nil {
		t.Error(err)
	}
	if n := len(server.Records("dead")); n != 0 {
		t.Errorf("%d records", n)
	}
	server.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault {
		return kinesistest.Fault{Err: &kinesistest.Error{Status: 400, Code: "AccessDeniedException", Message: "no"}}
	})
	if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "trying to put: ") {
		t.Errorf("%v", err)
	}
	none, err := New(server.Client(), "none")
	if err != nil {
		t.Fatal(err)
	}
	var missing *types.ResourceNotFoundException
	if err := none.Check(t.Context()); !errors.As(err, &missing) {
		t.Errorf("%v", err)
	}
}

func TestWhatIsNoLetterIsAnErrorAndTheRestFollows(t *testing.T) {
	server, s := letters(t, 1)
	for _, text := range []string{"<html>", "{}", `{"weir_letter":2,"id":"x"}`, `{"weir_letter":1}`} {
		server.Put("dead", "k", []byte(text))
	}
	if err := s.Put(t.Context(), []deadletter.Letter{letter(7, "", []byte("x")), letter(8, strings.Repeat("ü", 300), nil)}); err != nil {
		t.Fatal(err)
	}
	said, good := "", 0
	for i, err := range s.Items(t.Context()) {
		if err != nil {
			said += err.Error() + "\n"
		} else if good++; i.ID == "" {
			t.Errorf("%+v", i)
		}
	}
	if good != 2 || strings.Count(said, "is not a dead letter: ") != 4 || !strings.Contains(said, "it has form 2; this weir reads up to 1") {
		t.Errorf("%d letters, and %s", good, said)
	}
}

func TestWhatNewRefuses(t *testing.T) {
	if _, err := New(nil, "s"); err == nil {
		t.Error("no client")
	}
	if _, err := New(kinesis.New(kinesis.Options{}), ""); err == nil {
		t.Error("no stream")
	}
}

// A request never contains two dead letters with the same key, and no dead letter overtakes another
// with the same key.
func FuzzNext(f *testing.F) {
	f.Add([]byte{1, 2, 1, 3, 1, 1})
	f.Fuzz(func(t *testing.T, keys []byte) {
		var left []entry
		for i, k := range keys {
			left = append(left, entry{id: fmt.Sprint(i), key: string(k), text: bytes.Repeat([]byte("x"), int(k)<<14)})
		}
		for last := map[string]int{}; len(left) > 0; {
			batch, rest := next(left)
			if len(batch) == 0 || len(batch) > mostEntries || len(batch)+len(rest) != len(left) {
				t.Fatalf("%d and %d of %d", len(batch), len(rest), len(left))
			}
			seen, size := map[string]bool{}, 0
			for _, e := range batch {
				var n int
				if _, err := fmt.Sscan(e.id, &n); err != nil || seen[e.key] || n+1 <= last[e.key] {
					t.Fatalf("%s again, or late: %s", e.key, e.id)
				}
				seen[e.key], last[e.key], size = true, n+1, size+e.size()
			}
			if size > mostBytes && len(batch) > 1 {
				t.Fatalf("%d bytes", size)
			}
			left = rest
		}
	})
}
