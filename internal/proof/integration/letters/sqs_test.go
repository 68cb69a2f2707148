package letters_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/boxtest"
	"github.com/weir-go/weir/deadletter/sqsletters"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/oldletters"
)

// about returns dead letters for n records with three keys.
func about(n int) (letters []deadletter.Letter) {
	for i := range n {
		letters = append(letters, deadletter.Letter{
			Version: deadletter.Version, ID: fmt.Sprintf("s/shardId-000000000000/%03d", i), Stream: "s", Shard: "shardId-000000000000",
			PartitionKey: fmt.Sprintf("key %d \x00\uFFFE<", i%3), Data: fmt.Append(nil, "record ", i), Reason: deadletter.Attempts,
		})
	}
	return letters
}

// left returns the number of messages in a queue, including those that were received.
func left(t *testing.T, q *sqsletters.Queue) int {
	t.Helper()
	a, err := q.About(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return a.Messages + a.InFlight
}

func everything(deadletter.Item) bool { return true }

func TestSQS(t *testing.T) {
	client := servers.SQSClient(servers.SQS(t).Addr)
	queue := func(t *testing.T, name string, attributes map[string]string) *sqsletters.Queue {
		t.Helper()
		q, err := sqsletters.New(client, servers.SQSQueue(t, client, name, attributes))
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	for _, kind := range []struct {
		name, ending string
		attributes   map[string]string
	}{
		{"a standard queue", "", nil},
		{"a FIFO queue", ".fifo", map[string]string{"FifoQueue": "true"}},
	} {
		fifo := kind.ending != ""
		t.Run(kind.name, func(t *testing.T) {
			t.Run("what was handled is gone, and the rest is given back", func(t *testing.T) {
				q := queue(t, "handled"+kind.ending, kind.attributes)
				if err := q.Check(t.Context()); err != nil {
					t.Error(err)
				}
				if n := left(t, q); n != 0 {
					t.Errorf("to look whether dead letters can be put has put %d", n)
				}
				letters := about(25)
				if err := q.Put(t.Context(), letters); err != nil {
					t.Fatal(err)
				}
				refused := errors.New("refused")
				handled := map[string][]string{}
				handle := func(bad string) func(context.Context, deadletter.Item) error {
					return func(_ context.Context, i deadletter.Item) error {
						if string(i.Data) == bad {
							return refused
						}
						handled[i.PartitionKey] = append(handled[i.PartitionKey], i.ID)
						return nil
					}
				}
				o, err := q.Retry(t.Context(), everything, handle("record 4"))
				// In a FIFO queue, the later records of its key wait for record 4: 7, 10, …, 22.
				wanted := deadletter.Outcome{Done: 24, Failed: 1}
				if fifo {
					wanted.Done = 18
				}
				if o != wanted || !errors.Is(err, refused) {
					t.Errorf("%+v, %v; want %+v", o, err, wanted)
				}
				if n := left(t, q); n != 25-wanted.Done {
					t.Errorf("%d are left", n)
				}
				o, err = q.Retry(t.Context(), everything, handle(""))
				if o.Done != 25-wanted.Done || err != nil {
					t.Errorf("%+v, %v", o, err)
				}
				if n := left(t, q); n != 0 {
					t.Errorf("%d are left", n)
				}
				all := 0
				for _, l := range letters[:3] {
					ids := handled[l.PartitionKey]
					if all += len(ids); fifo && !slices.IsSorted(ids) {
						t.Errorf("out of order: %q", ids)
					}
				}
				if all != 25 {
					t.Errorf("handled %d: %q", all, handled)
				}
			})
			t.Run("two applications, and a worker of an earlier version", func(t *testing.T) {
				q := queue(t, "shared"+kind.ending, kind.attributes)
				var got []deadletter.Item
				read := func(ctx context.Context) ([]deadletter.Item, error) {
					got = nil
					_, err := q.Retry(ctx, everything, func(_ context.Context, i deadletter.Item) error {
						got = append(got, i)
						return nil
					})
					return got, err
				}
				boxtest.Applications(t, q, read)
				url := servers.SQSQueue(t, client, "shared"+kind.ending, kind.attributes)
				old := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(oldletters.Text)}
				if fifo {
					old.MessageGroupId, old.MessageDeduplicationId = aws.String(oldletters.Group), aws.String(oldletters.Hash)
				}
				if _, err := client.SendMessage(t.Context(), old); err != nil {
					t.Fatal(err)
				}
				if _, err := read(t.Context()); err != nil || len(got) != 1 || got[0].ID != oldletters.ID || got[0].App != oldletters.App {
					t.Errorf("%+v, %v", got, err)
				}
			})
			t.Run("a look takes nothing and counts", func(t *testing.T) {
				q := queue(t, "looked"+kind.ending, kind.attributes)
				letters := about(12)
				if err := q.Put(t.Context(), letters); err != nil {
					t.Fatal(err)
				}
				for look := 1; look <= 2; look++ {
					got, err := q.Peek(t.Context(), 1000)
					if err != nil || len(got) != 12 && !fifo {
						t.Errorf("look %d: %d letters, %v", look, len(got), err)
					}
					for _, r := range got {
						at := slices.IndexFunc(letters, func(l deadletter.Letter) bool { return l.ID == r.ID })
						if at < 0 || r.PartitionKey != letters[at].PartitionKey || string(r.Data) != string(letters[at].Data) || r.Receives < look && !fifo {
							t.Errorf("look %d: %+v", look, r)
						}
					}
				}
				if n := left(t, q); n != 12 {
					t.Errorf("%d are left", n)
				}
			})
			t.Run("dead letters that are put again", func(t *testing.T) {
				q := queue(t, "again"+kind.ending, kind.attributes)
				for range 2 {
					if err := q.Put(t.Context(), about(12)); err != nil {
						t.Fatal(err)
					}
				}
				want := 24
				if fifo {
					want = 12
				}
				if n := left(t, q); n != want {
					t.Errorf("there are %d, want %d", n, want)
				}
				calls := map[string]int{}
				o, err := q.Retry(t.Context(), everything, func(_ context.Context, i deadletter.Item) error { calls[i.ID]++; return nil })
				if o.Done != 12 || len(calls) != 12 || err != nil || left(t, q) != 0 {
					t.Errorf("%+v, %v; %d are left; calls: %v", o, err, left(t, q), calls)
				}
			})
			t.Run("a large letter", func(t *testing.T) {
				q := queue(t, "large"+kind.ending, kind.attributes)
				letters := about(8)
				for i := range letters {
					letters[i].Data = make([]byte, 150<<10) // so that a request contains one dead letter
				}
				if err := q.Put(t.Context(), letters); err != nil {
					t.Fatal(err)
				}
				if n := left(t, q); n != 8 {
					t.Errorf("there are %d", n)
				}
				letters[3].Data = make([]byte, 1<<20)
				if err := q.Put(t.Context(), letters); !errors.Is(err, sqsletters.ErrTooLarge) {
					t.Errorf("%v", err)
				}
			})
		})
	}
	t.Run("the queue's own dead-letter queue", func(t *testing.T) {
		dlq := servers.SQSQueue(t, client, "dlq", nil)
		out, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &dlq, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
		if err != nil {
			t.Fatal(err)
		}
		q := queue(t, "redriven", map[string]string{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"2"}`, out.Attributes["QueueArn"])})
		if a, err := q.About(t.Context()); err != nil || a.MaxReceives != 2 {
			t.Errorf("%+v, %v", a, err)
		}
		if err := q.Put(t.Context(), about(1)); err != nil {
			t.Fatal(err)
		}
		seen := 0
		for range 3 {
			got, err := q.Peek(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			seen += len(got)
		}
		moved, err := sqsletters.New(client, dlq)
		if err != nil {
			t.Fatal(err)
		}
		if seen != 2 || left(t, q) != 0 || left(t, moved) != 1 {
			t.Errorf("seen %d times, %d left, %d moved", seen, left(t, q), left(t, moved))
		}
	})
	t.Run("messages that are no dead letters are left alone", func(t *testing.T) {
		q := queue(t, "foreign", nil)
		url := servers.SQSQueue(t, client, "foreign", nil)
		body := `{"version":"1.0"}`
		if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err != nil {
			t.Fatal(err)
		}
		if err := q.Put(t.Context(), about(1)); err != nil {
			t.Fatal(err)
		}
		o, err := q.Retry(t.Context(), everything, func(context.Context, deadletter.Item) error { return nil })
		if o.Done != 1 || err == nil || !strings.Contains(err.Error(), `is not a dead letter: it has no "weir_letter"`) || left(t, q) != 1 {
			t.Errorf("%+v, %v; %d are left", o, err, left(t, q))
		}
	})
	t.Run("a queue that is not there", func(t *testing.T) {
		q, err := sqsletters.New(client, strings.TrimSuffix(servers.SQSQueue(t, client, "there", nil), "there")+"nowhere")
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "looking at the queue") {
			t.Errorf("%v", err)
		}
	})
}
