package moving_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// theMain is a program around the function of a page. It prints a line "B data" for each record.
const theMain = `package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/store/dynamostore"
)

func main() {
	bill = func(data []byte) error { fmt.Printf("B %%s\n", data); return nil }
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		panic(err)
	}
	store := dynamostore.New(dynamodb.NewFromConfig(cfg), dynamostore.Options{Table: "weir"})
	if err := %s(ctx, kinesis.NewFromConfig(cfg), store); err != nil {
		panic(err)
	}
}
`

// A new user follows each page in an empty directory: the store, the commands of the section about
// checkpoints, and the program of the section "After", which must continue at the checkpoints. The
// old table has the rows of the old client.
func TestThePagesWorkInAnEmptyDirectory(t *testing.T) {
	for page, c := range map[string]struct {
		function string
		rows     func(t *testing.T, d *servers.Server, mv *move, done map[string]int)
	}{
		"harlow": {function: "scan", rows: func(t *testing.T, d *servers.Server, mv *move, done map[string]int) {
			table(t, d, "kinesis_consumer", "namespace", "shard_id")
			for shard, n := range done {
				if n > 0 {
					putItem(t, d, "kinesis_consumer", item{"namespace": s("billing-orders"), "shard_id": s(shard), "sequence_number": s(mv.number(t, shard, n))})
				}
			}
		}},
		"vmware-go-kcl": {function: "process", rows: func(t *testing.T, d *servers.Server, mv *move, done map[string]int) {
			table(t, d, "billing", "ShardID")
			for shard, n := range done {
				if n > 0 {
					putItem(t, d, "billing", item{"ShardID": s(shard), "Checkpoint": s(mv.orEnd(t, shard, n, "SHARD_END")), "LeaseTimeout": s("2024-03-04T10:00:10Z")})
				}
			}
		}},
		"kinsumer": {function: "next", rows: func(t *testing.T, d *servers.Server, mv *move, done map[string]int) {
			for name, key := range map[string]string{"billing_checkpoints": "Shard", "billing_clients": "ID", "billing_metadata": "Key"} {
				table(t, d, name, key)
			}
			for shard, count := range done {
				if count > 0 {
					row := item{
						"Shard": s(shard), "SequenceNumber": s(mv.number(t, shard, count)), "LastUpdate": n("1710400000000000000"),
						"LastUpdateRFC": s("Thu, 14 Mar 2024 07:06:40 +0000"), "Finished": null, "FinishedRFC": null,
					}
					if mv.over(shard, count) {
						row["Finished"], row["FinishedRFC"] = row["LastUpdate"], row["LastUpdateRFC"]
					}
					putItem(t, d, "billing_checkpoints", row)
				}
			}
		}},
		"lifion": {function: "consume", rows: func(t *testing.T, d *servers.Server, mv *move, done map[string]int) {
			table(t, d, "lifion-kinesis-state", "consumerGroup", "streamName")
			shards := item{}
			for shard, n := range done {
				state := item{"checkpoint": null, "depleted": b(mv.over(shard, n)), "leaseExpiration": null, "leaseOwner": null, "parent": null, "version": s("a")}
				if n > 0 {
					state["checkpoint"] = s(mv.number(t, shard, n))
				}
				shards[shard] = m(state)
			}
			putItem(t, d, "lifion-kinesis-state", item{
				"consumerGroup": s("billing"), "streamName": s("orders"), "version": s("x"), "shards": m(shards), "enhancedConsumers": m(item{}), "consumers": m(item{}),
			})
		}},
		"java-kcl": {function: "process", rows: func(t *testing.T, d *servers.Server, mv *move, done map[string]int) {
			table(t, d, "billing", "leaseKey")
			for shard, count := range done {
				if count > 0 {
					putItem(t, d, "billing", item{
						"leaseKey": s(shard), "leaseCounter": n("12"), "ownerSwitchesSinceCheckpoint": n("0"), "entityType": s("LEASE"),
						"checkpoint": s(mv.orEnd(t, shard, count, "SHARD_END")), "checkpointSubSequenceNumber": n("0"),
					})
				}
			}
		}},
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			d := servers.DynamoDBLocal(t)
			mv := begin(t, "", d)
			done := half(mv)
			c.rows(t, d, mv, done)
			text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "moving", page+".md"))
			if err != nil {
				t.Fatal(err)
			}
			u := newUser(t, mv, d)
			_, checkpoints, _ := strings.Cut(string(text), "\n## Checkpoints\n")
			const create = "weir store create --store dynamodb:weir"
			if !strings.Contains(strings.Join(strings.Fields(checkpoints), " "), "`"+create+"`") {
				t.Errorf("the page does not say %s", create)
			}
			commands := []string{create}
			for line := range strings.Lines(checkpoints) {
				if command := strings.TrimPrefix(strings.TrimSpace(line), "$ "); strings.HasPrefix(line, "    ") && strings.HasPrefix(command, "weir ") {
					commands = append(commands, command)
				}
			}
			if last := commands[len(commands)-1]; !strings.Contains(last, "--yes") { // the page says to add it
				commands = append(commands, last+" --yes")
			}
			for _, command := range commands {
				u.run(t, command)
			}
			_, after, _ := strings.Cut(string(text), "\n## After\n")
			_, block, _ := strings.Cut(after, "```go\n")
			block, _, _ = strings.Cut(block, "```")
			u.write(t, "billing.go", strings.Replace(block, "package billing", "package main", 1))
			u.write(t, "main.go", fmt.Sprintf(theMain, c.function))
			var want []string
			for shard, all := range mv.stored() {
				for _, r := range all[done[shard]:] {
					want = append(want, string(r.Data))
				}
			}
			got := u.bills(t, len(want))
			if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				t.Errorf("the program handled %d records, want %d", len(got), len(want))
			}
			t.Logf("%d commands of the page; the program handled exactly the %d records after the old checkpoints", len(commands), len(want))
		})
	}
}

// over reports whether the old client has handled all n records of a shard that was split or
// merged.
func (m *move) over(shard string, n int) bool { return shard <= id(2) && n == len(m.stored()[shard]) }

// orEnd returns the number of the n-th record of a shard, or end if the shard is over.
func (m *move) orEnd(t *testing.T, shard string, n int, end string) string {
	t.Helper()
	if m.over(shard, n) {
		return end
	}
	return m.number(t, shard, n)
}

// user has an empty directory with a Go module, weir in the PATH, and the usual variables.
type user struct {
	dir string
	env []string
}

func newUser(t *testing.T, m *move, d *servers.Server) *user {
	t.Helper()
	weir, err := program()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	u := &user{dir: t.TempDir(), env: slices.Clone(os.Environ())}
	for name, value := range map[string]string{
		"PATH": filepath.Dir(weir) + ":" + os.Getenv("PATH"), "GOWORK": "off", "GOFLAGS": "-mod=mod",
		"AWS_ENDPOINT_URL_KINESIS": m.srv.URL(), "AWS_ENDPOINT_URL_DYNAMODB": d.URL, "AWS_REGION": servers.Region,
		"AWS_ACCESS_KEY_ID": servers.AccessKeyID, "AWS_SECRET_ACCESS_KEY": servers.SecretAccessKey,
	} {
		u.env = append(u.env, name+"="+value)
	}
	// The versions are those of this module, which are there already.
	versions := map[string]string{}
	for _, module := range []string{"github.com/aws/aws-sdk-go-v2/config", "github.com/aws/aws-sdk-go-v2/service/dynamodb", "github.com/aws/aws-sdk-go-v2/service/kinesis"} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", module).Output()
		if err != nil {
			t.Fatal(err)
		}
		versions[module] = strings.TrimSpace(string(out))
	}
	mod := "module billing\n\ngo 1.25\n\nreplace github.com/weir-go/weir => " + root + "\n\nrequire github.com/weir-go/weir v0.0.0\n"
	for _, module := range slices.Sorted(maps.Keys(versions)) {
		mod += "require " + module + " " + versions[module] + "\n"
	}
	u.write(t, "go.mod", mod)
	return u
}

func (u *user) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(u.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (u *user) run(t *testing.T, command string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir, cmd.Env = u.dir, u.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// bills builds and runs the program until it has printed n records, stops it, and returns what it
// printed.
func (u *user) bills(t *testing.T, n int) (bills []string) {
	t.Helper()
	u.run(t, "go build -o billing .")
	out := &locked{}
	cmd := exec.CommandContext(t.Context(), filepath.Join(u.dir, "billing"))
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = u.dir, u.env, out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); strings.Count(out.String(), "B record-") < n && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the program: %v\n%.4000s", err, out)
	}
	for line := range strings.Lines(out.String()) {
		if data, is := strings.CutPrefix(strings.TrimSpace(line), "B "); is {
			bills = append(bills, data)
		}
	}
	return bills
}
