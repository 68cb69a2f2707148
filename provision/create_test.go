package provision

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

// served runs f with a Kinesis server whose streams take some time to change.
func served(t *testing.T, f func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client)) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true, StateDelay: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		f(t, srv, srv.Client())
	})
}

// everything is a stream with a value for each setting.
var everything = Stream{
	Name: "orders", Shards: 3, KMSKey: "alias/aws/kinesis", Retention: 48 * time.Hour, MaxRecordSize: 2 << 20, Tags: map[string]string{"team": "billing"},
}

func TestAStreamIsMadeAsWanted(t *testing.T) {
	served(t, func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client) {
		r, err := CreateStream(t.Context(), client, everything)
		if err != nil || !r.Created || len(r.Differences) != 0 || r.ARN != srv.StreamARN("orders") {
			t.Fatalf("%+v, %v", r, err)
		}
		out, err := client.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: &everything.Name})
		if err != nil {
			t.Fatal(err)
		}
		d := out.StreamDescriptionSummary
		if d.StreamStatus != types.StreamStatusActive || d.StreamModeDetails.StreamMode != types.StreamModeProvisioned || *d.OpenShardCount != 3 ||
			d.EncryptionType != types.EncryptionTypeKms || *d.KeyId != everything.KMSKey || *d.RetentionPeriodHours != 48 || *d.MaxRecordSizeInKiB != 2048 {
			t.Errorf("it is %+v", d)
		}
		again, err := CreateStream(t.Context(), client, everything) // compares the tags too
		if err != nil || again.Created || len(again.Differences) != 0 || again.ARN != r.ARN {
			t.Errorf("again: %+v, %v", again, err)
		}
	})
}

func TestAStreamWithoutSettingsIsOnDemand(t *testing.T) {
	served(t, func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client) {
		if r, err := CreateStream(t.Context(), client, Stream{Name: "orders"}); err != nil || !r.Created {
			t.Fatalf("%+v, %v", r, err)
		}
		r, err := CreateStream(t.Context(), client, Stream{Name: "orders", Shards: 4})
		if err != nil || !slices.Equal(r.Differences, []string{"it is in on-demand mode, not in provisioned mode with 4 shards"}) {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestAStreamThatExistsIsLeftAsItIs(t *testing.T) {
	served(t, func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client) {
		srv.CreateStream("orders", 2)
		r, err := CreateStream(t.Context(), client, everything)
		if err != nil || r.Created || len(r.Differences) != 5 {
			t.Errorf("%+v, %v", r, err)
		}
		for _, change := range []string{"CreateStream", "StartStreamEncryption", "IncreaseStreamRetentionPeriod", "AddTagsToStream"} {
			if n := srv.Requests(change); n != 0 {
				t.Errorf("%d calls of %s", n, change)
			}
		}
	})
}

func TestManyAtOnceMakeOneStream(t *testing.T) {
	served(t, func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client) {
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() {
				if r, err := CreateStream(t.Context(), client, everything); err != nil || !r.Created || len(r.Differences) != 0 {
					t.Errorf("%+v, %v", r, err)
				}
			})
		}
		all.Wait()
	})
}

func TestAMakerThatDiesIsHelped(t *testing.T) {
	served(t, func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client) {
		ctx, kill := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() {
			_, err := CreateStream(ctx, client, everything)
			first <- err
		}()
		time.Sleep(time.Second)
		kill()
		if err := <-first; err == nil {
			t.Error("the first call says that it was done")
		}
		if r, err := CreateStream(t.Context(), client, everything); err != nil || !r.Created || len(r.Differences) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestAStreamThatIsBeingDeletedIsMadeAnew(t *testing.T) {
	served(t, func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client) {
		srv.CreateStream("orders", 2)
		if _, err := client.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{StreamName: &everything.Name}); err != nil {
			t.Fatal(err)
		}
		if r, err := CreateStream(t.Context(), client, everything); err != nil || !r.Created || len(srv.OpenShards("orders")) != 3 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestFailuresThatPassAreWaitedFor(t *testing.T) {
	served(t, func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client) {
		for _, action := range []string{"DescribeStreamSummary", "CreateStream", "StartStreamEncryption", "IncreaseStreamRetentionPeriod"} {
			failed := 0
			srv.Control(action, func(*kinesistest.Call) kinesistest.Fault {
				if failed++; failed < 3 {
					return kinesistest.Fault{Err: &kinesistest.Error{Code: "LimitExceededException", Status: 400}}
				}
				return kinesistest.Fault{}
			})
		}
		if r, err := CreateStream(t.Context(), client, everything); err != nil || !r.Created {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestLastingFailuresNameTheCall(t *testing.T) {
	for _, action := range []string{"DescribeStreamSummary", "CreateStream", "StartStreamEncryption", "IncreaseStreamRetentionPeriod"} {
		served(t, func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client) {
			srv.Control(action, func(*kinesistest.Call) kinesistest.Fault {
				return kinesistest.Fault{Err: &kinesistest.Error{Code: "AccessDeniedException", Status: 400, Message: "no"}}
			})
			_, err := CreateStream(t.Context(), client, everything)
			if err == nil || !strings.Contains(err.Error(), "kinesis:"+action) || !strings.Contains(err.Error(), "orders") {
				t.Errorf("%s: %v", action, err)
			}
			if n := srv.Requests(action); n != 1 {
				t.Errorf("%s: %d calls", action, n)
			}
		})
	}
}

func TestWaitingIsBounded(t *testing.T) {
	served(t, func(t *testing.T, srv *kinesistest.Server, client *kinesis.Client) {
		srv.SetStateDelay(time.Hour)
		start := time.Now()
		_, err := CreateStream(t.Context(), client, everything)
		if err == nil || !strings.Contains(err.Error(), "CREATING") || !strings.Contains(err.Error(), "not within 5m0s") {
			t.Error(err)
		}
		if took := time.Since(start); took > readyWithin+time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}

func TestWrongStreamsAreRefusedAtOnce(t *testing.T) {
	client := kinesis.New(kinesis.Options{Region: "eu-west-1"})
	many := map[string]string{}
	for i := range 51 {
		many[strings.Repeat("k", i+1)] = ""
	}
	for what, s := range map[string]Stream{
		"Stream.Name: stream name": {Name: "or ders"},
		"is an ARN":                {Name: "arn:aws:kinesis:eu-west-1:123456789012:stream/orders"},
		"Stream.Shards":            {Name: "orders", Shards: -1},
		"100,000":                  {Name: "orders", Shards: 100_001},
		"Stream.KMSKey":            {Name: "orders", KMSKey: "my key"},
		"Stream.Retention":         {Name: "orders", Retention: 25*time.Hour + time.Minute},
		"24h":                      {Name: "orders", Retention: time.Hour},
		"Stream.MaxRecordSize":     {Name: "orders", MaxRecordSize: 11 << 20},
		"51 tags":                  {Name: "orders", Tags: many},
		"no key":                   {Name: "orders", Tags: map[string]string{"": "x"}},
		"AWS's own":                {Name: "orders", Tags: map[string]string{"AWS:x": "x"}},
		"128 characters":           {Name: "orders", Tags: map[string]string{strings.Repeat("ä", 129): "x"}},
		"256 characters":           {Name: "orders", Tags: map[string]string{"a": strings.Repeat("x", 257)}},
	} {
		if _, err := CreateStream(t.Context(), client, s); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v", what, err)
		}
	}
	_, err := CreateStream(t.Context(), nil, Stream{Name: "", Shards: -1})
	for _, each := range []string{"client is nil", "Stream.Name", "Stream.Shards"} {
		if err == nil || !strings.Contains(err.Error(), each) {
			t.Errorf("all at once: %v", err)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add("orders", 3, "alias/aws/kinesis", int64(48*time.Hour), 1<<20, "team", "billing")
	client := kinesis.New(kinesis.Options{Region: "eu-west-1"})
	f.Fuzz(func(t *testing.T, name string, shards int, key string, retention int64, size int, tag, value string) {
		given := Stream{name, shards, key, time.Duration(retention), size, map[string]string{tag: value}}
		s, err := given.checked(client)
		if err != nil {
			if !strings.Contains(err.Error(), "Stream.") {
				t.Errorf("the error names no field: %v", err)
			}
			return
		}
		if s.Retention < 0 || s.MaxRecordSize < 0 || s.Shards < 0 || !maps.Equal(s.Tags, given.Tags) {
			t.Errorf("%+v", s)
		}
	})
}
