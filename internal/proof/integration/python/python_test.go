// Package python_test tests boto3 and the AWS CLI with the embedded Kinesis server.
package python_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
)

// run runs a script and decodes its output into the given value.
func run(t *testing.T, cmd *exec.Cmd, into any) {
	t.Helper()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, problems.String())
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		t.Fatalf("%v: %.300s", err, out.String())
	}
}

// served is the number of operations that the embedded server supports.
const served = 52

// explained reports whether a refusal names the reason and the server.
func explained(text string) bool {
	return strings.Contains(text, "not served here") && strings.Contains(text, "channels") && strings.Contains(text, "weir local")
}

func TestBoto3CallsEveryOperation(t *testing.T) {
	srv := kinesistest.NewServer(t, kinesistest.Config{Region: servers.Region, NoLimits: true})
	var got struct {
		Served  []string
		Refused map[string][2]string
	}
	run(t, servers.Python(t, "everything.py", srv.URL()), &got)
	if len(got.Served) != served {
		t.Errorf("%d operations are served: %v", len(got.Served), got.Served)
	}
	if len(got.Refused) == 0 {
		t.Error("none is refused")
	}
	for name, answer := range got.Refused {
		if answer[0] != "UnknownOperationException" || !strings.HasPrefix(answer[1], name+" ") || !explained(answer[1]) {
			t.Errorf("%s: %s", name, answer)
		}
	}
}

func TestTheAWSCLICallsEveryOperation(t *testing.T) {
	srv := kinesistest.NewServer(t, kinesistest.Config{Region: servers.Region, NoLimits: true})
	var got struct {
		Served, Unknown []string
		Refused, Failed map[string]string
	}
	run(t, servers.Python(t, "cli.py", srv.URL()), &got)
	if len(got.Failed) > 0 {
		t.Errorf("failed: %v", got.Failed)
	}
	// The CLI does not support SubscribeToShard. It gets new operations later than boto3.
	other := slices.DeleteFunc(slices.Clone(got.Unknown), func(command string) bool { return strings.Contains(command, "queue") })
	if len(other) > 1 || len(got.Served)+len(got.Unknown) != served-1 {
		t.Errorf("%d operations are served: %v, and unknown: %v", len(got.Served), got.Served, got.Unknown)
	}
	for command, said := range got.Refused {
		if !explained(said) {
			t.Errorf("%s: %s", command, said)
		}
	}
}

// The states of the stream take time to change, so boto3 has to wait.
func TestBoto3ReadsAndReshards(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %v", secure), func(t *testing.T) {
			srv := kinesistest.NewServer(t, kinesistest.Config{Region: servers.Region, NoLimits: true, StateDelay: 700 * time.Millisecond, TLS: secure})
			var once sync.Once
			kept := map[string][]kinesistest.Record{}
			// Read the records just before the stream is deleted.
			srv.Control("DeleteStream", func(*kinesistest.Call) kinesistest.Fault {
				once.Do(func() {
					for _, r := range srv.Records("orders") {
						kept[r.Shard] = append(kept[r.Shard], r)
					}
				})
				return kinesistest.Fault{}
			})
			cmd := servers.Python(t, "reads.py", srv.URL())
			if secure {
				cmd.Env = append(cmd.Env, "AWS_CA_BUNDLE="+servers.CAFile(t, srv.CACertPEM()))
			}
			var got struct {
				Pages          map[string][]string
				Polled, Pushed map[string][][3]string
				Ends           map[string][]string
			}
			run(t, cmd, &got)

			all := "[shardId-000000000000 shardId-000000000001 shardId-000000000002 shardId-000000000003]"
			for name, want := range map[string]string{"list_shards": all, "describe_stream": all, "list_streams": "[orders]", "list_stream_consumers": "[reader]"} {
				if list := fmt.Sprint(got.Pages[name]); list != want {
					t.Errorf("%s: %s", name, list)
				}
			}
			if ends := fmt.Sprint(got.Ends["shardId-000000000000"]); ends != "[shardId-000000000002 shardId-000000000003]" {
				t.Errorf("the split shard ends with %s", ends)
			}
			n := 0
			for shard, records := range kept {
				n += len(records)
				for way, list := range map[string][][3]string{"polled": got.Polled[shard], "pushed": got.Pushed[shard]} {
					if len(list) != len(records) {
						t.Errorf("%s: %d of %d records were %s", shard, len(list), len(records), way)
						continue
					}
					for i, r := range records {
						if want := [3]string{r.SequenceNumber, r.PartitionKey, base64.StdEncoding.EncodeToString(r.Data)}; list[i] != want {
							t.Errorf("%s: record %d %s is %v, want %v", shard, i, way, list[i], want)
						}
					}
				}
			}
			if n != 600 {
				t.Errorf("%d records were put", n)
			}
		})
	}
}
