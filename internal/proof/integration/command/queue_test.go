package command_test

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/sqsletters"
	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// An operator inspects dead letters in a queue and handles them again.
func TestLettersInAQueue(t *testing.T) {
	weir, client := built(t), servers.SQSClient(servers.SQS(t).Addr)
	for _, kind := range []struct {
		name, queue string
		attributes  map[string]string
	}{
		{"a standard queue", "dead", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:elasticmq:000000000000:dlq","maxReceiveCount":"100"}`}},
		{"a FIFO queue", "dead.fifo", map[string]string{"FifoQueue": "true"}},
	} {
		fifo := strings.HasSuffix(kind.queue, ".fifo")
		t.Run(kind.name, func(t *testing.T) {
			servers.SQSQueue(t, client, "dlq", nil)
			url := servers.SQSQueue(t, client, kind.queue, kind.attributes)
			run := func(stdin string, args ...string) (out, said string, code int) {
				t.Helper()
				var stdout, stderr bytes.Buffer
				cmd := exec.CommandContext(t.Context(), weir, append([]string{"dead"}, append(args, "--dead", "sqs:"+url)...)...)
				cmd.Env = append(cmd.Environ(), "AWS_REGION="+servers.Region, "AWS_ACCESS_KEY_ID="+servers.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+servers.SecretAccessKey)
				cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
				var exit *exec.ExitError
				if err := cmd.Run(); errors.As(err, &exit) {
					code = exit.ExitCode()
				} else if err != nil {
					t.Fatal(err)
				}
				return stdout.String(), stderr.String(), code
			}
			q, err := sqsletters.New(client, url)
			if err != nil {
				t.Fatal(err)
			}
			var letters []deadletter.Letter
			for i := range 6 {
				letters = append(letters, deadletter.Letter{
					Version: deadletter.Version, ID: fmt.Sprint("s/shardId-000000000000/", i), Stream: "s", Shard: "shardId-000000000000",
					PartitionKey: fmt.Sprint("key ", i%2), Data: fmt.Appendf(nil, "record %d\n", i), Reason: deadletter.Attempts, Error: "as asked",
				})
			}
			if err := q.Put(t.Context(), letters); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				out, said, code := run("", "peek")
				if code != 0 || strings.Contains(said, "after 100 receives") == fifo || !strings.Contains(out, "RECEIVED") || !strings.Contains(out, "s/shardId-000000000000/0") {
					t.Errorf("peek: %d %q %q", code, out, said)
				}
				if n := strings.Count(out, "as asked"); n != 6 && !fifo {
					t.Errorf("%d letters: %q", n, out)
				}
			}
			if out, said, code := run("", "peek", "-o", "json", "--most", "1"); code != 0 || !strings.Contains(out, `"weir_letter":1`) {
				t.Errorf("peek -o json: %d %q %q", code, out, said)
			}
			for want, args := range map[string][]string{
				"cannot be listed": {"list"}, "--dry-run does not apply to a queue": {"retry", "--all", "--exec", "cat", "--dry-run"},
			} {
				if out, said, code := run("", args...); code != 2 || !strings.Contains(said, want) {
					t.Errorf("%q: %d %q %q", args, code, out, said)
				}
			}
			out, said, code := run("no\n", "retry", "--all", "--exec", "cat")
			if code == 0 || out != "" || left(t, q) != 6 {
				t.Errorf("a person who does not agree: %d %q %q, %d are left", code, out, said, left(t, q))
			}
			// Record 3 of key 1 fails. In a FIFO queue, record 5 then waits for it.
			const handle = `read -r r; echo "$r"; test "$r" != "record 3"`
			out, said, code = run("", "retry", "--key", "key 1", "--yes", "--exec", handle)
			want := 4
			if fifo {
				want = 5
			}
			if code != 1 || strings.Count(out, "record") != 3-want+4 || strings.Contains(out, "record 2") || left(t, q) != want {
				t.Errorf("retry --key: %d %q %q, %d are left", code, out, said, left(t, q))
			}
			out, said, code = run("", "retry", "--all", "--yes", "--exec", "cat")
			if code != 0 || strings.Count(out, "record") != want || left(t, q) != 0 {
				t.Errorf("retry --all: %d %q %q, %d are left", code, out, said, left(t, q))
			}
			if out, _, code := run("", "peek"); code != 0 || !strings.Contains(out, "No dead letters") {
				t.Errorf("peek at nothing: %d %q", code, out)
			}
		})
	}
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
