package sqsletters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/weir-go/weir/deadletter"
)

func letter(n int, key string) deadletter.Letter {
	return deadletter.Letter{
		Version: deadletter.Version, ID: fmt.Sprintf("s/shardId-000000000000/%d", n), Stream: "s", Shard: "shardId-000000000000",
		PartitionKey: key, Data: fmt.Append(nil, "record ", n), Reason: deadletter.Attempts,
	}
}

// put puts n dead letters with two keys.
func put(t *testing.T, q *Queue, n int) {
	t.Helper()
	var all []deadletter.Letter
	for i := range n {
		all = append(all, letter(i, fmt.Sprint("key ", i%2)))
	}
	if err := q.Put(t.Context(), all); err != nil {
		t.Fatal(err)
	}
}

func everything(deadletter.Item) bool { return true }

func TestWhatTheQueueRefusesForTheMomentIsPutAgainAlone(t *testing.T) {
	refused := map[string]bool{}
	f := &fake{refuse: func(body string) (string, bool) {
		if strings.Contains(body, `/3"`) && !refused[body] {
			refused[body] = true
			return "InternalError", false
		}
		return "", false
	}}
	put(t, queue(t, f, "dead"), 12)
	if len(f.messages) != 12 || len(f.sends) != 3 && len(f.sends) != 2 {
		t.Errorf("%d messages in %d requests", len(f.messages), len(f.sends))
	}
	f = &fake{refuse: func(string) (string, bool) { return "InvalidMessageContents", true }}
	err := queue(t, f, "dead").Put(t.Context(), []deadletter.Letter{letter(1, "k")})
	if err == nil || !strings.Contains(err.Error(), "the queue refuses dead letter s/shardId-000000000000/1, of ") || len(f.sends) != 1 {
		t.Errorf("%v after %d requests", err, len(f.sends))
	}
}

func TestLettersOfAKeyKeepTheirOrderInAFIFOQueue(t *testing.T) {
	n := 0
	f := &fake{refuse: func(string) (string, bool) {
		if n++; n%3 == 0 {
			return "InternalError", false
		}
		return "", false
	}}
	put(t, queue(t, f, "dead.fifo"), 8)
	var odd, even []string
	for _, m := range f.messages {
		if strings.Contains(m.body, `"key 1"`) {
			odd = append(odd, m.body)
		} else {
			even = append(even, m.body)
		}
	}
	if !slices.IsSorted(odd) || !slices.IsSorted(even) || len(odd)+len(even) != 8 {
		t.Errorf("%q", append(odd, even...))
	}
	groups, dedups := map[string]bool{}, map[string]bool{}
	for _, g := range f.groups {
		group, dedup, _ := strings.Cut(g, " ")
		groups[group], dedups[dedup] = true, true
	}
	if len(groups) != 2 || len(dedups) != 8 {
		t.Errorf("%d groups, %d deduplication IDs", len(groups), len(dedups))
	}
}

// weir puts a dead letter again if the answer was lost. A FIFO queue treats both puts as the same
// message.
func TestALetterWhoseAnswerWasLostHasTheSameDeduplicationID(t *testing.T) {
	f := &fake{lost: func(string) bool { return true }}
	q := queue(t, f, "dead.fifo")
	for range 2 {
		if err := q.Put(t.Context(), []deadletter.Letter{letter(1, "k")}); err == nil {
			t.Error("no error")
		}
	}
	f.mu.Lock() // the server's call may not have ended when the answer is lost
	defer f.mu.Unlock()
	if len(f.groups) != 2 || f.groups[0] != f.groups[1] {
		t.Errorf("%q", f.groups)
	}
}

func TestALetterThatIsTooLargeSaysWhatTheBoundIs(t *testing.T) {
	f := &fake{refuse: func(body string) (string, bool) { return "InvalidParameterValue", len(body) > 256<<10 }}
	q := queue(t, f, "dead")
	for size, want := range map[int]string{300 << 10: "at most 262144 bytes (MaximumMessageSize, up to 1048576)", 900 << 10: "at most 1048576 bytes: use S3"} {
		l := letter(1, "k")
		l.Data = make([]byte, size)
		if err := q.Put(t.Context(), []deadletter.Letter{l}); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", size, err)
		}
	}
}

func TestCharactersThatAMessageMayNotHaveAreEscaped(t *testing.T) {
	f := &fake{}
	q := queue(t, f, "dead")
	key := "a\uFFFEb\uFFFFc\x00\x1f\u2028"
	if err := q.Put(t.Context(), []deadletter.Letter{letter(1, key)}); err != nil {
		t.Fatal(err)
	}
	if body := f.messages[0].body; strings.ContainsAny(body, "\uFFFE\uFFFF\x00\x1f") {
		t.Errorf("%q", body)
	}
	got, err := q.Peek(t.Context(), 10)
	if err != nil || len(got) != 1 || got[0].PartitionKey != key {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCheckSaysWhatIsWrongAndPutsNothing(t *testing.T) {
	f := &fake{}
	q := queue(t, f, "dead")
	if err := q.Check(t.Context()); err != nil || len(f.messages) != 0 {
		t.Errorf("%v, %d messages", err, len(f.messages))
	}
	f.fails = func(action string) string {
		if action == "SendMessageBatch" {
			return "AccessDeniedException"
		}
		return ""
	}
	if err := q.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "trying to put") {
		t.Errorf("%v", err)
	}
	f.fails = func(string) string { return "QueueDoesNotExist" }
	if err := q.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "looking at the queue") {
		t.Errorf("%v", err)
	}
	f.fails, f.redrive = nil, `{"deadLetterTargetArn":"x","maxReceiveCount":"5"}`
	if a, err := q.About(t.Context()); err != nil || a.MaxReceives != 5 || a.MaxBytes != 262144 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestPeekGivesAllLettersBack(t *testing.T) {
	f := &fake{}
	q := queue(t, f, "dead")
	put(t, q, 25)
	f.messages = append(f.messages, &stored{id: "foreign", body: "<html>"})
	got, err := q.Peek(t.Context(), 12)
	if err != nil || len(got) != 12 || got[0].Receives != 1 || f.visible() != 26 {
		t.Errorf("%d dead letters, %v; %d are left", len(got), err, f.visible())
	}
	got, err = q.Peek(t.Context(), 100)
	if err == nil || !strings.Contains(err.Error(), "message foreign is not a dead letter: ") || len(got) != 25 || f.visible() != 26 {
		t.Errorf("%d dead letters, %v; %d are left", len(got), err, f.visible())
	}
}

func TestRetryDeletesWhatWasHandledAndGivesTheRestBack(t *testing.T) {
	f := &fake{}
	q := queue(t, f, "dead")
	put(t, q, 23)
	f.messages = append(f.messages, &stored{id: "twice", body: f.messages[0].body}, &stored{id: "foreign", body: "{}"})
	refused := errors.New("refused")
	var handled []string
	wants := func(i deadletter.Item) bool { return i.PartitionKey == "key 0" }
	o, err := q.Retry(t.Context(), wants, func(_ context.Context, i deadletter.Item) error {
		handled = append(handled, i.ID)
		if string(i.Data) == "record 4" {
			return refused
		}
		return nil
	})
	if o != (deadletter.Outcome{Done: 11, Failed: 1}) || !errors.Is(err, refused) || !strings.Contains(err.Error(), "message foreign is not a dead letter") {
		t.Errorf("%+v, %v", o, err)
	}
	if len(handled) != 12 || len(f.messages) != 11+1+1 || f.visible() != len(f.messages) {
		t.Errorf("%d handled, %d left, %d of them visible", len(handled), len(f.messages), f.visible())
	}
	o, err = q.Retry(t.Context(), func(deadletter.Item) bool { return false }, nil)
	if o != (deadletter.Outcome{}) || err == nil {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestAMessageThatIsReceivedTwiceIsHandledOnce(t *testing.T) {
	f := &fake{unsorted: true}
	q := queue(t, f, "dead")
	put(t, q, 3)
	n := 0
	o, err := q.Retry(t.Context(), everything, func(context.Context, deadletter.Item) error { n++; return errors.New("again") })
	if o.Failed != 3 || n != 3 || err == nil {
		t.Errorf("%+v after %d calls, %v", o, n, err)
	}
}

func TestRetryThatIsInterruptedGivesBackWhatWasNotDone(t *testing.T) {
	f := &fake{}
	q := queue(t, f, "dead")
	put(t, q, 5)
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	n := 0
	o, err := q.Retry(ctx, everything, func(context.Context, deadletter.Item) error {
		if n++; n == 2 {
			cancel(interrupted)
			return interrupted
		}
		return nil
	})
	if o != (deadletter.Outcome{Done: 1}) || !errors.Is(err, interrupted) || f.visible() != 4 {
		t.Errorf("%+v, %v; %d are left", o, err, f.visible())
	}
}

func TestALetterThatCannotBeDeletedIsTold(t *testing.T) {
	f := &fake{fails: func(action string) string {
		if action == "DeleteMessage" {
			return "AccessDeniedException"
		}
		return ""
	}}
	q := queue(t, f, "dead")
	put(t, q, 2)
	o, err := q.Retry(t.Context(), everything, func(context.Context, deadletter.Item) error { return nil })
	if o.Done != 1 || err == nil || !strings.Contains(err.Error(), "was handled but could not be deleted, so it comes again") {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestWhatNewRefuses(t *testing.T) {
	client := sqs.New(sqs.Options{})
	for _, url := range []string{"", "dead", "https://host", "ftp://h/q", "https://u:p@h/q", "https://h/q?x", "http://[::1/q"} {
		if _, err := New(client, url); err == nil || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := New(nil, "https://h/q"); err == nil {
		t.Error("no client")
	}
}
