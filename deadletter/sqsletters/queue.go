// Package sqsletters puts dead letters into a queue of Amazon SQS, and handles them again from
// there.
package sqsletters

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/deadletter"
)

// Queue is a [deadletter.Destination] in a queue, with one message for each dead letter, as JSON. A
// queue cannot be listed, stores no marks, and delivers each message to one reader at a time. It is
// therefore not a [deadletter.Box]: see [Queue.Peek] and [Queue.Retry].
//
// In a FIFO queue, a message group contains an application's dead letters about one key of a shard,
// so these dead letters are in order. The deduplication ID is derived from the dead letter's ID,
// which contains the application. A dead letter that is put again within five minutes therefore
// occurs once. In a standard queue it occurs twice, with the same ID, and there is no order.
//
// A dead letter contains its record in base64, which is a third larger. A queue allows at most 1
// MiB, or less if its MaximumMessageSize is lower. Put returns [ErrTooLarge] for a larger dead
// letter, each time that it is put, and the shard waits at that record. Use S3 if records may be so
// large.
//
// The methods of Queue may be called concurrently.
type Queue struct {
	client *sqs.Client
	url    string
	fifo   bool
}

// ErrTooLarge is returned by [Queue.Put] if a dead letter is larger than the queue allows.
var ErrTooLarge = errors.New("sqsletters: the dead letter is larger than the queue allows")

// New returns the queue with the given URL. It makes no call. The client must have the queue's
// region and endpoint.
func New(client *sqs.Client, queueURL string) (*Queue, error) {
	if client == nil {
		return nil, errors.New("sqsletters: the client is nil")
	}
	u, err := url.Parse(queueURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") == "" || u.User != nil || u.RawQuery != "" {
		return nil, errors.New("sqsletters: that is not the URL of a queue, like https://sqs.eu-west-1.amazonaws.com/111122223333/orders-dead")
	}
	return &Queue{client: client, url: queueURL, fifo: strings.HasSuffix(u.Path, ".fifo")}, nil
}

// About contains properties of a queue.
type About struct {
	Messages int // approximate number of messages that can be received
	InFlight int // approximate number of messages that were received and not deleted
	// MaxReceives is the number of receives after which the queue moves a message to its
	// dead-letter queue. 0 means no limit.
	MaxReceives int
	MaxBytes    int // maximum size of a message
}

// About reads the properties of the queue.
func (q *Queue) About(ctx context.Context) (a About, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		return a, fmt.Errorf("sqsletters: looking at the queue: %w", err)
	}
	return aboutOf(out.Attributes), nil
}

// aboutOf parses the attributes of a queue. It treats unreadable attributes as absent.
func aboutOf(attributes map[string]string) (a About) {
	number := func(text string) int {
		n, _ := strconv.Atoi(text)
		return max(0, n)
	}
	a.Messages, a.InFlight = number(attributes["ApproximateNumberOfMessages"]), number(attributes["ApproximateNumberOfMessagesNotVisible"])
	a.MaxBytes = number(attributes["MaximumMessageSize"])
	var redrive struct {
		Max json.RawMessage `json:"maxReceiveCount"` // a number, possibly in quotes
	}
	if json.Unmarshal([]byte(attributes["RedrivePolicy"]), &redrive) == nil {
		a.MaxReceives = number(strings.Trim(string(redrive.Max), `"`))
	}
	return a
}

// Check returns an error if dead letters cannot be sent. Call it at the start, before a record
// depends on the queue. It sends nothing.
func (q *Queue) Check(ctx context.Context) error {
	if _, err := q.About(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// SQS rejects a request without a message, but reports a missing permission first.
	_, err := q.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &q.url, Entries: []types.SendMessageBatchRequestEntry{}})
	var api smithy.APIError
	if err == nil || errors.As(err, &api) && !strings.Contains(api.ErrorCode(), "AccessDenied") && api.ErrorFault() != smithy.FaultServer {
		return nil
	}
	return fmt.Errorf("sqsletters: trying to put: %w", err)
}

const (
	callTimeout = 30 * time.Second
	// mostEntries and mostBytes limit a request. mostBytes is the service's former limit for all
	// messages of a request together. A larger message is sent alone.
	mostEntries = 10
	mostBytes   = 256 << 10
	mostMessage = 1 << 20
	// mostTries is the maximum number of further requests after one that leaves messages unsent.
	mostTries = 8
	firstWait = 100 * time.Millisecond
	mostWait  = 5 * time.Second
)

// message is a dead letter to send.
type message struct {
	id, group, dedup string
	text             string
}

// Put sends dead letters, and returns nil when the queue has all of them. See
// [deadletter.Destination].
func (q *Queue) Put(ctx context.Context, letters []deadletter.Letter) error {
	left := make([]message, 0, len(letters))
	for i := range letters {
		l := &letters[i]
		text, err := json.Marshal(l)
		if err != nil {
			return fmt.Errorf("sqsletters: letter %s: %w", l.ID, err)
		}
		m := message{id: l.ID, text: string(allowed(text))}
		if len(m.text) > mostMessage {
			return fmt.Errorf("%w: dead letter %s has %d bytes, but SQS allows messages of at most %d bytes: use S3 for records of this size", ErrTooLarge, l.ID, len(m.text), mostMessage)
		}
		if q.fifo {
			m.group, m.dedup = groupOf(l), hashOf(l.ID)
		}
		left = append(left, m)
	}
	return q.put(ctx, left)
}

// put sends messages. If the queue temporarily refuses some of them, it retries these several
// times.
func (q *Queue) put(ctx context.Context, left []message) error {
	for tries := 0; len(left) > 0; {
		batch, rest := next(left)
		refused, why, err := q.send(ctx, batch)
		if err != nil {
			return err
		}
		left = append(refused, rest...)
		if len(refused) == 0 {
			tries = 0
			continue
		}
		if tries++; tries > mostTries {
			return fmt.Errorf("sqsletters: the queue did not accept dead letter %s and others: %s", refused[0].id, why)
		}
		wait := min(firstWait<<(tries-1), mostWait)
		timer := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
	return ctx.Err()
}

// allowed writes two characters as JSON escapes, because they are valid in JSON but not in a
// message.
func allowed(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("\uFFFE"), []byte(`\ufffe`))
	return bytes.ReplaceAll(text, []byte("\uFFFF"), []byte(`\uffff`))
}

// groupOf returns the message group of a dead letter. Applications have separate groups, so their
// dead letters never wait for each other.
func groupOf(l *deadletter.Letter) string {
	parts := []string{l.Stream, l.Shard, l.PartitionKey}
	if l.App != "" {
		parts = append([]string{l.App}, parts...)
	}
	return hashOf(parts...)
}

// hashOf returns a hash that only contains characters that are allowed in a group and a
// deduplication ID.
func hashOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:])
}

// next splits messages into those of the next request and the rest, each in order. A request
// contains only one message of each group, because the service may refuse the first of two messages
// and accept the second.
func next(all []message) (batch, rest []message) {
	groups, bytes := map[string]bool{}, 0
	for _, m := range all {
		if m.group != "" && groups[m.group] || len(batch) == mostEntries || len(batch) > 0 && bytes+len(m.text) > mostBytes {
			rest = append(rest, m)
			groups[m.group] = true // later dead letters of this group must wait as well
			continue
		}
		groups[m.group], bytes = true, bytes+len(m.text)
		batch = append(batch, m)
	}
	return batch, rest
}

// send makes one request. It returns the messages that the service temporarily refused.
func (q *Queue) send(ctx context.Context, batch []message) (refused []message, why string, err error) {
	in := &sqs.SendMessageBatchInput{QueueUrl: &q.url}
	for i := range batch {
		e := types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: &batch[i].text}
		if q.fifo {
			e.MessageGroupId, e.MessageDeduplicationId = &batch[i].group, &batch[i].dedup
		}
		in.Entries = append(in.Entries, e)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := q.client.SendMessageBatch(ctx, in)
	if err != nil {
		err = fmt.Errorf("sqsletters: putting dead letter %s: %w", batch[0].id, err)
		var long *types.BatchRequestTooLong
		if errors.As(err, &long) && len(batch) == 1 {
			err = q.tooLarge(ctx, &batch[0], err)
		}
		return nil, "", err
	}
	sent := map[string]bool{}
	for _, s := range out.Successful {
		sent[aws.ToString(s.Id)] = true
	}
	for _, f := range out.Failed {
		i, err := strconv.Atoi(aws.ToString(f.Id))
		if err != nil || i < 0 || i >= len(batch) {
			return nil, "", fmt.Errorf("sqsletters: the service answered about a message %.100q that was not sent", aws.ToString(f.Id))
		}
		why = fmt.Sprintf("%.100s: %.300s", aws.ToString(f.Code), aws.ToString(f.Message))
		if f.SenderFault {
			return nil, "", q.tooLarge(ctx, &batch[i], fmt.Errorf("sqsletters: the queue refuses dead letter %s, of %d bytes: %s", batch[i].id, len(batch[i].text), why))
		}
	}
	for i := range batch {
		if !sent[strconv.Itoa(i)] {
			refused = append(refused, batch[i])
		}
	}
	if len(refused) > 0 && why == "" {
		why = "the service did not answer for it"
	}
	return refused, why, nil
}

// tooLarge returns ErrTooLarge with details if the message is too large for the queue. Otherwise it
// returns err.
func (q *Queue) tooLarge(ctx context.Context, m *message, err error) error {
	a, failed := q.About(ctx)
	if failed != nil || a.MaxBytes == 0 || len(m.text) <= a.MaxBytes {
		return err
	}
	return fmt.Errorf("%w: dead letter %s has %d bytes, but this queue allows messages of at most %d bytes (MaximumMessageSize, up to %d): allow larger messages, or use S3",
		ErrTooLarge, m.id, len(m.text), a.MaxBytes, mostMessage)
}
