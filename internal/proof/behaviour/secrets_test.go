package behaviour

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// TestNothingThatIsToldHasASecret makes calls fail in many ways. It then searches the log, the
// events and the printed values of the library for credentials and record contents.
func TestNothingThatIsToldHasASecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "Pl4ntedS3cr3t"
		server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true, NoLimits: true})
		server.CreateStream("s", 2)
		server.Put("s", secret, []byte(secret))
		faults := []kinesistest.Fault{
			{Err: &kinesistest.Error{Code: "AccessDeniedException", Message: "no", Status: 400}}, {Err: &kinesistest.Error{Code: "ExpiredTokenException", Message: "old", Status: 400}},
			{Err: &kinesistest.Error{Code: "InternalFailure", Message: "oops", Status: 500}}, {Cut: true}, {LoseAnswer: true}, {CutAfter: 10},
			{Rewrite: func([]byte) []byte { return []byte("nonsense") }}, {Delay: time.Minute}, {},
		}
		var mu sync.Mutex
		n := 0
		server.Control("", func(*kinesistest.Call) kinesistest.Fault {
			mu.Lock()
			defer mu.Unlock()
			n++
			return faults[n/2%len(faults)]
		})
		client := server.Client(func(o *kinesis.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "AKIA", SecretAccessKey: secret, SessionToken: secret}, nil
			})
		})
		var told bytes.Buffer
		tell := func(e any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(&told, "%v %+v %#v\n", e, e, e)
		}
		logged := &lockedBuffer{}
		options := weir.Options{
			App: "a", Streams: []string{"s"}, Logger: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
			OnEvent: event.Join(
				event.On(func(_ context.Context, e event.ReadFailed) { tell(e) }), event.On(func(_ context.Context, e event.StoreFailed) { tell(e) }),
				event.On(func(_ context.Context, e event.HandlerFailed) { tell(e) }), event.On(func(_ context.Context, e event.Stalled) { tell(e) }),
			),
		}
		consumer, err := weir.New(client, memstore.New(), options)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		handled := 0
		err = consumer.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
			if handled += len(b.Records); handled < 3 {
				return fmt.Errorf("attempt %d failed", handled)
			}
			return nil
		}))
		tell(err)
		tell(options)
		tell(consumer)
		tell(consumer.Shards())
		said := logged.String() + told.String()
		if n < 50 || handled == 0 || !strings.Contains(said, "AccessDenied") || !strings.Contains(said, "attempt") {
			t.Fatalf("%d calls, %d records, and it said %.3000s", n, handled, said)
		}
		if i := strings.Index(said, secret); i >= 0 {
			t.Errorf("it shows a secret: …%s…", said[max(0, i-300):min(len(said), i+100)])
		}
	})
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
