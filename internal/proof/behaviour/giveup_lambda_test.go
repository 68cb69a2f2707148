package behaviour

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// The table compares weir with AWS Lambda's event source, as documented and recorded: what happens
// to failed batches. The records are named a to f. A call is written as the records that it
// received, followed by a ! if the call failed. If weir differs on purpose, the field differs
// contains the reason.
//
// The following behaviour has no row:
//
//   - Pauses between attempts. Lambda's schedule is not published, except that the pauses grow.
//     Here all pauses are equal.
//   - How an odd number of records is halved. No document says it. weir puts the extra record into
//     the first half.
//   - Answers that only JSON can express: a null or empty list, an empty object, a misspelt name,
//     or text that is not JSON. A handler in Go returns nil or an error. "weir consume
//     --exec-results" has such answers. It treats unknown answers as a failure of the batch, while
//     Lambda treats some of them as success.
//   - The switch without which Lambda ignores partial answers. [weir.FailedAt] has no such switch.
//   - A record that blocks its shard until it leaves the stream. After that, the policy for expired
//     positions applies, and not the policy for failures.
//
// Calls that fail before the function runs are in TestReadsThatFailAreNoAttempts.
func TestWhatLambdaDoesWithFailures(t *testing.T) {
	// at fails at the first bad record and names it.
	at := func(bad string) answer {
		return func(b *weir.Batch) error {
			for _, r := range b.Records {
				if strings.Contains(bad, string(r.Data)) {
					return weir.FailedAt(r, errOnceMore)
				}
			}
			return nil
		}
	}
	// throws fails if the batch contains a bad record, and does not name it.
	throws := func(bad string) answer {
		return func(b *weir.Batch) error {
			for _, r := range b.Records {
				if strings.Contains(bad, string(r.Data)) {
					return errOnceMore
				}
			}
			return nil
		}
	}
	// leavesOld skips records older than an hour.
	leavesOld := func(b *weir.Batch) error {
		n := 0
		for n < len(b.Records) && time.Since(b.Records[n].ArrivalTime()) > time.Hour {
			n++
		}
		if n == 0 {
			return nil
		}
		return weir.RejectOld(b.Records[0], n, nil)
	}
	named := func(err func(b *weir.Batch) error) answer {
		return func(b *weir.Batch) error {
			if strings.Contains(string(b.Records[0].Data), "a") && len(b.Records) == 6 && b.Attempt == 1 {
				return err(b)
			}
			return nil
		}
	}
	for _, row := range []lambdaRow{
		// Retries.
		{
			fact: "with defaults a bad record blocks its shard", policy: nil, batch: 3, answers: throws("b"),
			calls: "abc! abc! abc! abc! abc! …",
		},
		{
			fact: "2 retries are 3 calls", policy: &weir.FailurePolicy{MaxAttempts: 3}, batch: 3, answers: throws("b"),
			calls: "abc! abc! abc! def", letters: "abc:3",
			differs: "Attempts counts calls, as the dead letter does, not repeats",
		},
		{
			fact: "a shrunken remainder has a budget of its own: of 4 calls the last record was seen in 5", policy: &weir.FailurePolicy{MaxAttempts: 4}, batch: 3, answers: at("f"),
			calls: "abc def! f! f! f!", letters: "f:4",
			differs: "attempts belong to the record, so that Attempts is how often it was handed over, whatever was beside it",
		},
		{
			fact: "a function that times out has used up an attempt", policy: &weir.FailurePolicy{MaxAttempts: 3}, batch: 6, answers: func(*weir.Batch) error { return context.DeadlineExceeded },
			calls: "abcdef! abcdef! abcdef!", letters: "abcdef:3",
		},
		{
			fact: "the age is that of each record, not of its batch", policy: &weir.FailurePolicy{MaxAge: time.Hour}, old: 1, batch: 6, answers: throws("a"),
			calls: "abcdef! bcdef", letters: "a:1",
			differs: "Lambda drops an old record without a try; weir gives up only what has failed, unless the handler says RejectOld",
		},
		{
			fact: "what is too old is not handed over, and reported as called once", policy: &weir.FailurePolicy{MaxAge: time.Hour}, old: 6, batch: 6, answers: throws(""),
			calls: "abcdef", letters: "",
			differs: "after an outage, or a reset to yesterday, old records are handled; none becomes a dead letter untried",
		},
		{
			fact: "a handler that leaves old records out: the age is that of each record", policy: &weir.FailurePolicy{}, old: 2, batch: 3, answers: leavesOld,
			calls: "abc! c def", letters: "ab:0",
		},
		{
			fact: "a handler that leaves old records out: what is too old is not handed over", policy: &weir.FailurePolicy{}, old: 6, batch: 3, answers: leavesOld,
			calls: "abc! def!", letters: "abcdef:0",
			differs: "Lambda reports one call, and so does the dead letter in its form",
		},
		// Bisecting.
		{
			fact: "a batch that failed becomes two, in order; the next has its size again", policy: &weir.FailurePolicy{MaxAttempts: 1, Bisect: true}, batch: 4, answers: throws("b"),
			calls: "abcd! ab! a b! cd ef", letters: "b:1",
		},
		{
			fact: "splitting uses up no attempts", policy: &weir.FailurePolicy{MaxAttempts: 2, Bisect: true}, batch: 4, answers: throws("c"),
			calls: "abcd! ab cd! c! c! d ef", letters: "c:2",
		},
		{
			fact: "both parts may fail, each with attempts of its own", policy: &weir.FailurePolicy{MaxAttempts: 2, Bisect: true}, batch: 4, answers: throws("ad"),
			calls: "abcd! ab! a! a! b cd! c d! d! ef", letters: "a:2 d:2",
		},
		{
			fact: "with a partial answer the split is where the answer says", policy: &weir.FailurePolicy{MaxAttempts: 2, Bisect: true}, batch: 6, answers: at("e"),
			calls: "abcdef! ef! f", letters: "e:2",
		},
		{
			fact: "a function that threw gives no partial answer: halves", policy: &weir.FailurePolicy{MaxAttempts: 2, Bisect: true}, batch: 6, answers: throws("e"),
			calls: "abcdef! abc def! de! d e! e! f", letters: "e:2",
		},
		// Partial answers.
		{
			fact: "no failure: all of it succeeded", policy: &weir.FailurePolicy{MaxAttempts: 1}, batch: 6, answers: throws(""),
			calls: "abcdef",
		},
		{
			fact: "one record: it and all after it are handed over again", policy: &weir.FailurePolicy{MaxAttempts: 9}, batch: 6,
			answers: named(func(b *weir.Batch) error { return weir.FailedAt(b.Records[2], errOnceMore) }),
			calls:   "abcdef! cdef",
		},
		{
			fact: "several: the lowest counts", policy: &weir.FailurePolicy{MaxAttempts: 9}, batch: 6,
			answers: named(func(b *weir.Batch) error {
				return errors.Join(weir.FailedAt(b.Records[4], errOnceMore), weir.FailedAt(b.Records[1], errOnceMore), weir.FailedAt(b.Records[3], errOnceMore))
			}),
			calls: "abcdef! bcdef",
		},
		{
			fact: "several, and the lowest is not the one that can never succeed", policy: &weir.FailurePolicy{MaxAttempts: 9}, batch: 6,
			answers: named(func(b *weir.Batch) error {
				return errors.Join(weir.FailedAt(b.Records[4], weir.Reject(errOnceMore)), weir.FailedAt(b.Records[1], errOnceMore))
			}),
			calls:   "abcdef! bcdef",
			differs: "Lambda knows no rejects",
		},
		{
			fact: "several, and the lowest can never succeed", policy: &weir.FailurePolicy{MaxAttempts: 9}, batch: 6,
			answers: named(func(b *weir.Batch) error {
				return errors.Join(weir.FailedAt(b.Records[4], errOnceMore), fmt.Errorf("so: %w", weir.Reject(weir.FailedAt(b.Records[1], errOnceMore))))
			}),
			calls:   "abcdef! cdef",
			letters: "b:1",
			differs: "Lambda knows no rejects",
		},
		{
			fact: "an empty name: all of it failed", policy: &weir.FailurePolicy{MaxAttempts: 9}, batch: 6,
			answers: named(func(*weir.Batch) error { return weir.FailedAt(weir.Record{}, errOnceMore) }),
			calls:   "abcdef! abcdef",
		},
		{
			fact: "a record that is not in the batch: all of it failed", policy: &weir.FailurePolicy{MaxAttempts: 9}, batch: 6,
			answers: named(func(b *weir.Batch) error {
				return errors.Join(weir.FailedAt(weir.Record{SequenceNumber: "17"}, errOnceMore), weir.FailedAt(b.Records[3], errOnceMore))
			}),
			calls: "abcdef! abcdef",
		},
		{
			fact: "an exception: all of it failed", policy: &weir.FailurePolicy{MaxAttempts: 9}, batch: 6,
			answers: named(func(*weir.Batch) error { panic("exception") }),
			calls:   "abcdef! abcdef",
		},
		{
			fact: "given up after partial answers that say where", policy: &weir.FailurePolicy{MaxAttempts: 2}, batch: 6, answers: at("bd"),
			calls: "abcdef! bcdef! cdef! def! ef", letters: "b:2 d:2",
			differs: "Lambda gives up all that is left of the batch; weir what was named",
		},
	} {
		t.Run(row.fact, row.check)
	}
}

type answer func(b *weir.Batch) error

type lambdaRow struct {
	fact    string
	policy  *weir.FailurePolicy
	old     int // records that are older than any age limit
	batch   int
	answers answer
	calls   string // "…" means forever
	letters string // with the number of attempts in each dead letter
	differs string
}

func (row lambdaRow) check(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		put := func(names string) {
			for _, r := range names {
				srv.Put("s", "key", []byte(string(r)))
			}
		}
		put("abcdef"[:row.old])
		if row.old > 0 {
			time.Sleep(2 * time.Hour)
		}
		put("abcdef"[row.old:])
		box := &letterbox{}
		opts := weir.Options{Batching: weir.Batching{MaxRecords: row.batch}, Retry: weir.Retry{MinBackoff: time.Second, MaxBackoff: time.Second}}
		if row.policy != nil {
			opts.OnFailure = *row.policy
			opts.OnFailure.Destination, opts.OnFailure.OutageGrace, opts.OnFailure.MaxPerMinute = box, -1, -1
		}
		var calls []string
		stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) (err error) {
			i := len(calls)
			calls = append(calls, strings.Join(data(b.Records), "")+"!")
			if err = row.answers(b); err == nil {
				calls[i] = strings.TrimSuffix(calls[i], "!")
			}
			return err
		})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		want, forever := strings.CutSuffix(row.calls, " …")
		if got := strings.Join(calls, " "); got != want && !(forever && strings.HasPrefix(got, want+" ")) {
			t.Errorf("calls %s, want %s", got, row.calls)
		}
		var got []string
		for _, l := range box.letters() {
			if n := len(got); l.Together > 1 && n > 0 && strings.HasSuffix(got[n-1], fmt.Sprint(":", l.Attempts)) {
				name, _, _ := strings.Cut(got[n-1], ":")
				got[n-1] = fmt.Sprintf("%s%s:%d", name, l.Data, l.Attempts)
				continue
			}
			got = append(got, fmt.Sprintf("%s:%d", l.Data, l.Attempts))
		}
		if got := strings.Join(got, " "); got != row.letters {
			t.Errorf("letters %s, want %s", got, row.letters)
		}
	})
}

// A failure before the handler is called is not an attempt.
func TestReadsThatFailAreNoAttempts(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		names := putSome(t, srv, false)
		began := time.Now()
		srv.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault {
			if time.Since(began) < 5*time.Minute {
				return kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure", Status: 500}}
			}
			return kinesistest.Fault{}
		})
		box := &letterbox{}
		var got []string
		opts := weir.Options{OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 1, MaxAge: time.Second, OutageGrace: -1}}
		stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
			if b.Attempt != 1 {
				t.Errorf("attempt %d", b.Attempt)
			}
			got = append(got, data(b.Records)...)
			return nil
		})
		time.Sleep(10 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if !slices.Equal(got, names) || len(box.letters()) > 0 {
			t.Errorf("handled %q, dead letters of %q", got, box.data())
		}
	})
}

// One bad record among many is found with a logarithmic number of failed calls. All other records
// are done.
func TestBisectingTakesALogarithmOfCalls(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		const records, bad = 1024, 700
		for i := range records {
			srv.Put("s", "key", fmt.Append(nil, i))
		}
		box := &letterbox{}
		handled, failed, handedOver := 0, 0, 0
		opts := weir.Options{Batching: weir.Batching{MaxRecords: records}, Retry: weir.Retry{MinBackoff: time.Millisecond}, OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 3, Bisect: true, OutageGrace: -1}}
		stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
			handedOver += len(b.Records)
			if slices.ContainsFunc(b.Records, func(r weir.Record) bool { return string(r.Data) == fmt.Sprint(bad) }) {
				failed++
				return errOnceMore
			}
			handled += len(b.Records)
			return nil
		})
		time.Sleep(5 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if handled != records-1 || failed != 10+3 || handedOver > 4*records || len(box.letters()) != 1 || box.letters()[0].Reason != deadletter.Attempts {
			t.Errorf("%d handled, %d calls failed, %d handed over, dead letters of %q", handled, failed, handedOver, box.data())
		}
	})
}
