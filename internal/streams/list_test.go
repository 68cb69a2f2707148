package streams

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// inBubble runs f in a bubble with an embedded Kinesis.
func inBubble(t *testing.T, cfg kinesistest.Config, f func(t *testing.T, srv *kinesistest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.InMemory = true
		srv, err := kinesistest.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		f(t, srv)
	})
}

func TestListPagesAndFilters(t *testing.T) {
	inBubble(t, kinesistest.Config{NoLimits: true}, func(t *testing.T, srv *kinesistest.Server) {
		client := srv.Client()
		srv.CreateStream("many", 2500)
		all, date, err := List(t.Context(), client, Stream{Name: "many"})
		if err != nil || len(all) != 2500 || len(shard.NewGraph(all).Ordered()) != 2500 {
			t.Fatalf("%d shards, %v", len(all), err)
		}
		if off := time.Since(date); off < 0 || off > 2*time.Second {
			t.Errorf("the service's time is off by %v", off)
		}
		srv.Split("many", all[7].ID)
		time.Sleep(2 * time.Second)
		open, _, err := Open(t.Context(), client, Stream{ARN: srv.StreamARN("many")})
		if err != nil || len(open) != 2501 {
			t.Errorf("%d open shards, %v", len(open), err)
		}
		if holes := shard.Holes(rangesOf(open)); len(holes) != 0 {
			t.Errorf("holes in the hash space: %v", holes)
		}
		if _, _, err := List(t.Context(), client, Stream{Name: "nowhere"}); !errors.Is(err, ErrNoStream) {
			t.Errorf("listing a stream that does not exist: %v", err)
		}
		throttled := 0
		srv.Control("ListShards", func(*kinesistest.Call) kinesistest.Fault {
			if throttled++; throttled > 2 {
				return kinesistest.Fault{}
			}
			return kinesistest.Fault{Err: &kinesistest.Error{Code: "LimitExceededException"}}
		})
		if again, _, err := List(t.Context(), client, Stream{Name: "many"}); err != nil || len(again) != 2502 {
			t.Errorf("after throttles: %d shards, %v", len(again), err)
		}
	})
}

// A shard of the second page is split after the first page was read. Neither page then lists the
// shard as open. Without the second listing, the records that it got before the first page was read
// would not be read.
func TestAShardThatIsSplitBetweenTwoPagesWasOpen(t *testing.T) {
	inBubble(t, kinesistest.Config{NoLimits: true}, func(t *testing.T, srv *kinesistest.Server) {
		client := srv.Client()
		srv.CreateStream("many", 1500)
		time.Sleep(1500 * time.Millisecond)
		split := shard.Shard{ID: "shardId-000000001400"}
		pages := 0
		srv.Control("ListShards", func(*kinesistest.Call) kinesistest.Fault {
			if pages++; pages == 2 {
				srv.Split("many", split.ID)
			}
			return kinesistest.Fault{}
		})
		open, date, err := Open(t.Context(), client, Stream{Name: "many"})
		if err != nil || pages < 2 || time.Since(date) > 3*time.Second {
			t.Fatalf("%d pages, as of %v: %v", pages, date, err)
		}
		has := slices.ContainsFunc(open, func(s shard.Shard) bool { return s.ID == split.ID })
		if holes := shard.Holes(rangesOf(open)); !has || len(open) != 1500 || len(holes) != 0 {
			t.Errorf("%d shards, that one is among them: %v, holes: %v", len(open), has, holes)
		}
	})
}

type answers func(*http.Request) *http.Response

func (a answers) Do(r *http.Request) (*http.Response, error) { return a(r), nil }

// If a listing does not end, list must return an error. A truncated listing would look as if shards
// were gone.
func TestAListingThatDoesNotEndIsNone(t *testing.T) {
	client := kinesis.New(kinesis.Options{
		Region: "us-east-1", Credentials: aws.AnonymousCredentials{},
		HTTPClient: answers(func(r *http.Request) *http.Response {
			body := io.NopCloser(strings.NewReader(`{"NextToken":"more","Shards":[]}`))
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body, Request: r}
		}),
	})
	if l, err := listOnce(t.Context(), client, Stream{Name: "s"}, nil, 1, nil); err != nil || !l.more {
		t.Errorf("its first page: %v, and there are more: %v", err, l.more)
	}
	if _, err := listOnce(t.Context(), client, Stream{Name: "s"}, nil, everything, nil); err == nil || !strings.Contains(err.Error(), "does not end") {
		t.Errorf("all of it: %v", err)
	}
}

// Names from a server become part of leases and reports. If a store rejected one name, the whole
// heartbeat would fail.
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
		_, err := Children([]types.ChildShard{{ShardId: aws.String(tt.id), ParentShards: tt.parents}})
		if (err == nil) != tt.ok {
			t.Errorf("%.20q of %.20q is named as a child: %v", tt.id, tt.parents, err)
		}
	}
	for n, ok := range map[int]bool{mostChildren: true, mostChildren + 1: false} {
		_, err := Children(slices.Repeat([]types.ChildShard{{ShardId: aws.String("a")}}, n))
		if (err == nil) != ok {
			t.Errorf("%d children: %v", n, err)
		}
	}
}
