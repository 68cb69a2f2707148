package migrate

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/oldside"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/store/memstore"
)

// finding is a finding of weir doctor.
type finding struct{ Severity, Code, Text string }

// After a move, weir doctor reports a worker of the KCL that has used the old table. The move is
// not an application of its own. After the way back there is nothing to report.
func TestDoctorFindsAWorkerOfTheKCLThatStartsLater(t *testing.T) {
	t.Parallel()
	endpoint, plain, _ := orders(t)
	d, dynamo := table(t, kclLease(shard0, "SHARD_END", 0, ""), kclLease(shard1, plain[0], 0, ""))
	store := "sqlite:" + filepath.Join(t.TempDir(), "weir.db")
	base := []string{endpoint, dynamo, "--app=billing"}
	migrate := func(more ...string) {
		t.Helper()
		clitest.MustRun(t, "", append(append([]string{"migrate", "kcl", "--table=billing", "--stream=orders", "--yes"}, base...), more...)...)
	}
	old := func() (found []finding) {
		t.Helper()
		look := clitest.Start(t, "", append([]string{"doctor", "--store=" + store, "-o=json", "--look=1s"}, base...)...)
		look.Wait(t) // the exit code is that of other findings, too
		out := look.Out.String()
		for _, f := range clitest.Decode[struct{ Findings []finding }](t, out).Findings {
			if strings.HasPrefix(f.Code, "old-") {
				found = append(found, f)
			}
		}
		return found
	}
	migrate("--to=" + store)
	if found := old(); len(found) > 0 {
		t.Errorf("right after the move: %+v", found)
	}
	if list := clitest.MustRun(t, "", "group", "list", "--store="+store); strings.Contains(list, operate.MovesApp) {
		t.Errorf("the list has %s", list)
	}
	d.set(shard1, "leaseCounter", n(15))
	d.set(shard1, "leaseOwner", s("worker-9"))
	if found := old(); len(found) != 1 || found[0].Severity != "warning" || found[0].Code != "old-worker" || !strings.Contains(found[0].Text, "worker-9") {
		t.Errorf("after a worker has used the table: %+v", found)
	}
	count := int64(20)
	d.onScan = func(_ int, items map[string]item) {
		count++
		items[shard1]["leaseCounter"] = n(count)
	}
	if found := old(); len(found) != 1 || found[0].Severity != "error" || !strings.Contains(found[0].Text, "a worker of the KCL runs with the table billing") {
		t.Errorf("while a worker runs: %+v", found)
	}
	d.mu.Lock()
	d.onScan = nil
	d.mu.Unlock()
	d.set(shard1, "leaseOwner", nil)
	migrate("--from=" + store)
	if found := old(); len(found) > 0 {
		t.Errorf("after the way back: %+v", found)
	}
}

// A worker logs each time that the old table has changed, and ends the watch when it is deleted.
func TestAWorkerLogsThatTheOldTableIsUsed(t *testing.T) {
	t.Parallel()
	d, _ := table(t, kclLease(shard0, "TRIM_HORIZON", 0, "worker-9"))
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(d.URL),
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	})
	var out bytes.Buffer // Watch logs on this goroutine alone
	log := slog.New(slog.NewTextHandler(&out, nil))
	d.onScan = func(scans int, items map[string]item) {
		switch scans {
		case 1: // between the first and the second read
			items[shard0]["leaseCounter"] = n(13)
		case 3:
			d.absent = true
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	oldside.Watch(ctx, client, []operate.Move{{Kind: oldside.KCL, Table: "billing", Sum: 12, At: time.UnixMilli(0)}}, time.Millisecond, log)
	if ctx.Err() != nil || strings.Count(out.String(), "has used its old table") != 1 || !strings.Contains(out.String(), "owners=worker-9") {
		t.Errorf("it logs %s", &out)
	}
}

// weir consume and weir multilang watch the tables of an application that came from the KCL, and
// call DynamoDB for no other application.
func TestWorkersWatchTheTablesTheyCameFrom(t *testing.T) {
	t.Parallel()
	d, _ := table(t, kclLease(shard0, "TRIM_HORIZON", 0, "worker-9"))
	store := memstore.New()
	if err := operate.Remember(t.Context(), store, "billing", operate.Move{Kind: oldside.KCL, Table: "billing", Sum: 11, At: time.UnixMilli(0)}); err != nil {
		t.Fatal(err)
	}
	logged := make(chan string, 1)
	log := slog.New(slog.NewTextHandler(lines(logged), nil))
	calls := 0
	dynamo := func() (*dynamodb.Client, error) {
		calls++
		return dynamodb.New(dynamodb.Options{
			Region: "eu-central-1", BaseEndpoint: aws.String(d.URL),
			Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		}), nil
	}
	oldside.Start(t.Context(), store, "other", dynamo, log)()
	if calls != 0 {
		t.Error("an application without a move calls DynamoDB")
	}
	end := oldside.Start(t.Context(), store, "billing", dynamo, log)
	defer end()
	if line := <-logged; !strings.Contains(line, "has used its old table") {
		t.Errorf("it logs %s", line)
	}
}

// lines sends each line of a log.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}
