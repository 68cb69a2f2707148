package producer

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/kinesistest"
)

// victimOf is an environment variable. It makes this program a process that puts records until it
// is killed, and has the endpoint of the server.
const victimOf = "WEIR_TEST_PRODUCER_VICTIM"

const victimKeys = 50

// victim puts numbered records, and prints the number of each stored record. It returns only if the
// process is not a victim.
func victim() {
	endpoint := os.Getenv(victimOf)
	if endpoint == "" {
		return
	}
	client := kinesis.New(kinesis.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(endpoint),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
	p, err := New(client, Options{Stream: "s", MaxRecords: 5000, FirstShare: 1})
	for i := 0; err == nil; i++ {
		_, err = p.Put(context.Background(), Record{
			PartitionKey: fmt.Sprint("key", i%victimKeys), Data: fmt.Append(nil, i),
			Done: func(_ Result, err error) {
				if err == nil {
					_, err = fmt.Println(i)
				}
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(2)
				}
			},
		})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}

// A process that is killed loses only records that were not confirmed. The stored records of each
// key have no gap.
func TestKilledProcessLosesOnlyUnconfirmedRecords(t *testing.T) {
	server := kinesistest.NewServer(t, kinesistest.Config{Region: "us-east-1", NoLimits: true})
	server.CreateStream("s", 4)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimOf+"="+server.URL())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	confirmed, count := map[int]bool{}, 0
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil { // a line is written at once, so none is cut
			t.Fatal(err)
		}
		confirmed[n] = true
		if count++; count == 20_000 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()

	stored := map[string][]int{}
	for data := range copiesOf(server) {
		n, err := strconv.Atoi(data)
		if err != nil {
			t.Fatalf("%.20q was never put", data)
		}
		delete(confirmed, n)
		key := fmt.Sprint("key", n%victimKeys)
		stored[key] = append(stored[key], n/victimKeys)
	}
	if len(confirmed) > 0 {
		t.Errorf("%d confirmed records are not in the stream", len(confirmed))
	}
	total := 0
	for key, numbers := range stored {
		slices.Sort(numbers)
		total += len(numbers)
		if last := numbers[len(numbers)-1]; last != len(numbers)-1 {
			t.Errorf("%s has %d records, and the last one is %d", key, len(numbers), last)
		}
	}
	if total < count {
		t.Errorf("%d records are stored, %d were confirmed", total, count)
	}
	t.Logf("%d records were confirmed, %d are stored", count, total)
}
