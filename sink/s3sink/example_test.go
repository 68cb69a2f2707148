package s3sink_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/fakes3"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/sink/s3sink"
	"github.com/weir-go/weir/sink/s3sink/s3letters"
	"github.com/weir-go/weir/store/memstore"
)

// archive writes every record of a consumer's streams into a bucket, once.
func archive(ctx context.Context, consumer *weir.Consumer, client *s3.Client) error {
	sink, err := s3sink.New(client, "my-bucket", s3sink.Options{Prefix: "raw", MaxAge: 5 * time.Minute})
	if err != nil {
		return err
	}
	if err := sink.Check(ctx); err != nil { // fails for a wrong name or a missing permission
		return err
	}
	return consumer.RunPull(ctx, sink.PullHandler())
}

// copyNew copies the records of a shard after the position at, and returns the position after them.
func copyNew(ctx context.Context, to io.Writer, sink *s3sink.Sink, shard string, at weir.Position) (weir.Position, error) {
	for o, err := range sink.Objects(ctx, "orders", shard, at) {
		if err != nil {
			return at, err
		}
		lines, err := sink.Open(ctx, o)
		if err != nil {
			return at, err
		}
		_, err = io.Copy(to, lines)
		if err := errors.Join(err, lines.Close()); err != nil {
			return at, err
		}
		at = o.To // save it, in one transaction with the effects of the lines
	}
	return at, nil
}

// lettersIn keeps dead letters in a bucket.
func lettersIn(client *s3.Client) (deadletter.Box, error) {
	return s3letters.New(client, "my-bucket", "dead")
}

// The code in the guide works.
func TestTheGuide(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		srv.CreateStream("orders", 1)
		srv.Put("orders", "k", []byte(`"two teas"`))
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "archive", Streams: []string{"orders"}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := archive(ctx, c, client(bucket)); err != nil {
			t.Error(err)
		}
		s := sink(t, bucket, s3sink.Options{Prefix: "raw"})
		var to strings.Builder
		at, err := copyNew(t.Context(), &to, s, "shardId-000000000000", weir.Position{})
		if err != nil || to.String() != "\"two teas\"\n" {
			t.Errorf("%q, %v", to.String(), err)
		}
		if _, err := copyNew(t.Context(), &to, s, "shardId-000000000000", at); err != nil || strings.Count(to.String(), "\n") != 1 {
			t.Errorf("%q, %v", to.String(), err)
		}
		box, err := lettersIn(client(bucket))
		if err != nil {
			t.Fatal(err)
		}
		if err := box.Put(t.Context(), []deadletter.Letter{{Version: deadletter.Version, ID: "orders/shardId-000000000000/17"}}); err != nil || bucket.Get("dead/orders/shardId-000000000000/17.json") == nil {
			t.Errorf("%q, %v", bucket.Keys(), err)
		}
	})
}
