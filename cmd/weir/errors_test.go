package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/demo"
)

// Every mistake causes one sentence and the right exit code. The sentence names the problem and the
// remedy.
func TestErrors(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	dir := t.TempDir()
	path := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	gone := clitest.UnusedAddr(t)
	port := strings.TrimPrefix(gone, "http://")
	denied := clitest.Answering(t, 400, "AccessDeniedException", "User: arn:aws:iam::1:user/x is not authorized")
	missing := clitest.Answering(t, 400, "ResourceNotFoundException", "Requested resource not found")
	unsigned := clitest.Answering(t, 403, "UnrecognizedClientException", "The security token included in the request is invalid.")
	expired := clitest.Answering(t, 400, "ExpiredTokenException", "The security token included in the request is expired")
	records := path("records", "{\"k\":\"a\"}\n\n{\"k\":\"b\"}\nplain\n{\"k\":\"c\"}\n")
	nokey := path("nokey", "{\"k\":\"a\"}\n{\"x\":1}\n")
	oddkey := path("oddkey", "{\"k\":{}}\n")
	longkey := path("longkey", fmt.Sprintf("{\"k\":%q}\n", strings.Repeat("x", 257)))
	leases := path("leases.db", "")
	if code := clitest.Start(t, "", "store", "create", "--store=sqlite:"+leases).Wait(t); code != cli.ExitDone {
		t.Fatal("no store")
	}
	notables := path("notables.db", "")
	large := path("large", "small\n"+strings.Repeat("x", 1<<20)+"\n")

	for name, c := range map[string]struct {
		args string
		code int
		want string // part of the error
	}{
		"an unknown command":             {"bogus", 2, `unknown command "bogus"`},
		"an unknown flag":                {"tail --bogus", 2, "unknown flag: --bogus"},
		"an argument too many":           {"tail --stream s x", 2, `weir tail takes no argument "x"`},
		"a flag without value":           {"tail --stream", 2, "flag needs an argument"},
		"a bad output format":            {"tail --stream s -o yaml", 2, "use text or json"},
		"no stream to tail":              {"tail", 2, "weir tail needs --stream"},
		"no stream to put to":            {"put " + records, 2, "weir put needs --stream"},
		"no stream to consume":           {"consume --app a --store memory:", 2, "needs --stream"},
		"no app and no store":            {"consume --stream s", 2, "needs --app and --store"},
		"no app to describe":             {"group describe", 2, "needs --app and --store"},
		"a bad stream name":              {"tail --stream a/b " + endpoint, 2, "stream name"},
		"an ARN of another place":        {"tail --region us-east-1 --stream arn:aws:kinesis:eu-west-1:000000000000:stream/s " + endpoint, 2, "eu-west-1"},
		"a bad limit":                    {"tail --stream s --limit -1 " + endpoint, 2, "--limit -1"},
		"a bad place to start":           {"tail --stream s --from yesterday " + endpoint, 2, `--from "yesterday"`},
		"a start in the future":          {"tail --stream s --from 2200-01-01T00:00:00Z " + endpoint, 2, "in the future"},
		"a bad application name":         {"consume --stream s --app a/b --store memory: " + endpoint, 2, "--app \"a/b\""},
		"a bad time to stop":             {"consume --stream s --app a --store memory: --stop-timeout -1s " + endpoint, 2, "--stop-timeout -1s must be between"},
		"a bad time to handle":           {"consume --stream s --app a --store memory: --handler-timeout 1ms " + endpoint, 2, "--handler-timeout 1ms must be between"},
		"a worker with a long name":      {"consume --stream s --app a --store memory: --worker " + strings.Repeat("w", 201) + " " + endpoint, 2, "--worker has 201 bytes"},
		"a bad way out":                  {"consume --stream s --app a --store memory: --expired never " + endpoint, 2, "use fail, oldest or latest"},
		"a bad prefix":                   {"group list --store postgres://u@127.0.0.1:1/d?weir_prefix=9", 2, "weir_prefix"},
		"a bad schema":                   {"group list --store mysql://u@127.0.0.1:1/d?weir_schema=9", 2, "weir_schema"},
		"a name that no worker can have": {"group import --app a/b --yes --store sqlite:" + leases + " -", 2, "--app \"a/b\" is not the name of an application"},
		"such a name to prepare":         {"group reset --app a/b --stream s --to oldest --yes --store sqlite:" + leases + " " + endpoint, 2, "--app \"a/b\" is not the name of an application"},
		"a bad batch size":               {"consume --stream s --app a --batch 10001 --store memory: " + endpoint, 2, "--batch 10001"},
		"a store without kind":           {"consume --stream s --app a --store here " + endpoint, 2, "use memory:"},
		"a store of unknown kind":        {"consume --stream s --app a --store redis:x " + endpoint, 2, "sqlite:PATH"},
		"a file without path":            {"consume --stream s --app a --store sqlite: " + endpoint, 2, "names no file"},
		"a bad table name":               {"consume --stream s --app a --store dynamodb:x " + endpoint, 2, "3 to 255"},
		"an app to group with":           {"group lag --store sqlite:x", 2, "needs --app"},
		"no place to reset to":           {"group reset --app a --store sqlite:x", 2, "needs --to"},
		"a bad place to reset to":        {"group reset --app a --store sqlite:x --to yesterday --yes", 2, `--to "yesterday"`},
		"a number without shard":         {"group reset --app a --store sqlite:x --to 17 --yes", 2, "add --shard"},
		"a shard of two streams":         {"group reset --app a --store sqlite:x --to oldest --yes --stream s --stream r --shard 1", 2, "one --stream, not of 2"},
		"nobody to ask":                  {"group reset --app a --store sqlite:x --to oldest", 2, "add --yes if you are sure"},
		"nobody to ask to delete":        {"group delete --app a --store sqlite:x", 2, "add --yes if you are sure"},
		"an answer from a pipe":          {"group import --app a --store sqlite:x -", 2, "add --yes"},
		"no file to import":              {"group import --app a --store sqlite:x", 2, "needs one FILE"},
		"nobody to drain":                {"group drain --app a --store sqlite:x", 2, "needs one WORKER"},
		"a wait of no sense":             {"group pause --app a --store sqlite:x --wait -1s", 2, "--wait -1s"},
		"a watch of no sense":            {"doctor --app a --store sqlite:x --look 6m", 2, "--look 6m0s"},
		"no watch before a reset":        {"group reset --app a --store sqlite:x --to oldest --yes --look 0s", 2, "--look 0s"},
		"a lag of no sense":              {"group lag --app a --store sqlite:x --max -1m", 2, "--max -1m"},
		"an app of no sense":             {"group lag --app " + strings.Repeat("x", 256) + " --store sqlite:x", 2, "application's name"},
		"memory to diagnose":             {"doctor --app a --store memory:", 2, "no other process can read"},
		"memory to look into":            {"group describe --app a --store memory:", 2, "no other process can read"},
		"memory to create":               {"store create --store memory:", 2, "nothing to create"},
		"no store to create":             {"store create", 2, "needs --store"},
		"an endpoint without URL":        {"tail --stream s --endpoint here", 2, `--endpoint "here"`},
		"an endpoint with a user":        {"tail --stream s --endpoint http://u:p@127.0.0.1:1", 2, "signed with the AWS credentials"},
		"an endpoint of no HTTP":         {"tail --stream s --endpoint ftp://127.0.0.1", 2, "http://127.0.0.1:4567"},
		"a bad region":                   {"tail --stream s --region Europe " + endpoint, 1, `"Europe" is not an AWS region`},
		"no shards to create":            {"put --stream s --create --shards 0 " + records + " " + endpoint, 2, "--shards 0: a stream has 1 to 10000"},
		"shards without create":          {"put --stream s --shards 2 " + records + " " + endpoint, 2, "--shards applies only to --create: add it"},
		"an address of no sense":         {"local --addr here", 2, `--addr "here"`},
		"a host with a port":             {"local --host kinesis:4567", 2, `--host "kinesis:4567"`},
		"a stream of no sense":           {"local --stream a:b", 2, `--stream "a:b"`},
		"a certificate for none":         {"local --ca-file x", 2, "--ca-file applies only to --tls: add it"},
		"a victim of no sense":           {"demo --kill all", 2, "want leader or other"},
		"too many flights":               {"demo --flights 20001", 2, "--flights 20001"},
		"a worker by hand":               {demo.WorkerName + " x", 2, "started by the demo only"},

		"no such app":               {"group describe --app none --store sqlite:" + leases, 1, "there is no application none in that store"},
		"no such app to diagnose":   {"doctor --app none --store sqlite:" + leases + " " + endpoint, 1, "there is no application none"},
		"no such app to reset":      {"group reset --app none --store sqlite:" + leases + " --to oldest --yes " + endpoint, 1, "or name a --stream"},
		"no such stream to reset":   {"group reset --app a --stream none --store sqlite:" + leases + " --to oldest --yes " + endpoint, 1, "there is no such stream"},
		"no such shard to reset":    {"group reset --app a --stream s --shard 7 --store sqlite:" + leases + " --to oldest --yes " + endpoint, 1, "no shard shardId-000000000007"},
		"a reset to the future":     {"group reset --app a --stream s --store sqlite:" + leases + " --to 2200-01-01T00:00:00Z --yes " + endpoint, 1, "is in the future for stream s"},
		"a number of no shard":      {"group reset --app a --stream s --shard 0 --store sqlite:" + leases + " --to 17 --yes " + endpoint, 1, "the service does not take it for shard shardId-000000000000"},
		"no such file to import":    {"group import --app a --store sqlite:" + leases + " --yes " + dir + "/none", 1, "there is no file"},
		"another file to import":    {"group import --app a --store sqlite:" + leases + " --yes " + records, 1, "not what \"weir group export\" writes"},
		"nobody answers a reset":    {"group reset --app a --stream s --store sqlite:" + leases + " --to oldest --yes --endpoint " + gone, 1, "stream s: nothing answers at " + gone},
		"no tables to list":         {"group list --store sqlite:" + notables, 1, "weir store create --store sqlite:"},
		"no DynamoDB to diagnose":   {"doctor --app a --store dynamodb:weir --dynamodb-endpoint " + gone + " " + endpoint, 1, "dynamostore: read the workers: nothing answers at " + gone},
		"no such stream to tail":    {"tail --stream none " + endpoint, 1, "there is no such stream"},
		"no such stream to put to":  {"put --stream none " + records + " " + endpoint, 1, "there is no such stream"},
		"no such stream to consume": {"consume --stream none --app a --store memory: " + endpoint, 1, "there is no such stream"},
		"nobody answers tail":       {"tail --stream s --endpoint " + gone, 1, "nothing answers at " + gone},
		"nobody answers put":        {"put --stream s " + records + " --endpoint " + gone, 1, "nothing answers at " + gone},
		"nobody answers consume":    {"consume --stream s --app a --store memory: --endpoint " + gone, 1, "nothing answers at " + gone},
		"no DynamoDB":               {"consume --stream s --app a --store dynamodb:weir --dynamodb-endpoint " + gone + " " + endpoint, 1, "at " + gone},
		"no permission":             {"tail --stream s --endpoint " + denied, 1, "no permission for Kinesis ListShards"},
		"bad credentials":           {"tail --stream s --endpoint " + unsigned, 1, "does not accept the credentials"},
		"expired credentials":       {"tail --stream s --endpoint " + expired, 1, "have expired"},
		"no table to consume with":  {"consume --stream s --app a --store dynamodb:weir --dynamodb-endpoint " + missing + " " + endpoint, 1, `"weir store create --store dynamodb:weir"`},
		"no table to describe":      {"group describe --app a --store dynamodb:weir --dynamodb-endpoint " + missing, 1, "there is no DynamoDB table weir at " + missing},
		"no permission for a table": {"group describe --app a --store dynamodb:weir --dynamodb-endpoint " + denied, 1, "dynamodb:"},
		"no file of leases":         {"group describe --app a --store sqlite:" + dir + "/none.db", 1, "there is no SQLite file"},
		"a file of another kind":    {"consume --stream s --app a --store sqlite:" + large + " " + endpoint, 1, "not a SQLite database"},
		"a directory of leases":     {"consume --stream s --app a --store sqlite:" + dir + " " + endpoint, 1, "is a directory"},
		"a missing directory":       {"store create --store sqlite:" + dir + "/none/x.db", 1, "there is no directory"},
		"no file to put":            {"put --stream s " + dir + "/none " + endpoint, 1, "there is no file"},
		"a directory to put":        {"put --stream s " + dir + " " + endpoint, 1, "is a directory"},
		"a line without JSON":       {"put --stream s --key k " + records + " " + endpoint, 1, "line 4: it is not a JSON object, so --key k finds nothing in it; 2 records were put: every line up to 3"},
		"a line without the key":    {"put --stream s --key k " + nokey + " " + endpoint, 1, `line 2: there is no field "k" for the partition key; 1 record was put`},
		"a key of no use":           {"put --stream s --key k " + oddkey + " " + endpoint, 1, "cannot be a partition key; nothing was put"},
		"a key too long":            {"put --stream s --key k " + longkey + " " + endpoint, 1, "257 characters"},
		"a line too large":          {"put --stream s " + large + " " + endpoint, 1, "line 2 is too large: the stream takes records of up to 1024 KiB, the key included; 1 record was put"},
		"a port in use":             {"local --addr " + server.Addr(), 1, "is taken by another program"},
		"an address of others":      {"local --addr 192.0.2.1:4567", 1, "this machine has no address 192.0.2.1:4567"},
		"a shard of no stream":      {"tail --stream s --shard shardId-000000000009 " + endpoint, 1, "stream s: the stream has no shard"},
		"no Postgres":               {"group list --store postgres://u:secret@" + port + "/d", 1, "nothing answers at " + port + ", where the store postgres://u:xxxxx@" + port + "/d should be"},
		"no MySQL":                  {"group list --store mysql://u:secret@" + port + "/d", 1, "nothing answers at " + port + ", where the store mysql://"},
		"no Redis":                  {"group describe --app a --store redis://" + port, 1, "nothing answers at " + port + ", where the store redis://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := clitest.Start(t, "", strings.Fields(c.args)...)
			code := got.Wait(t)
			said := got.Err.String()
			if code != c.code || !strings.Contains(said, c.want) {
				t.Errorf("exit code %d and %q, want %d and something with %q", code, said, c.code, c.want)
			}
			if lines := strings.Split(strings.TrimSpace(said), "\n"); strings.Contains(lines[len(lines)-1], ": weir: ") || strings.Contains(said, "Options.") {
				t.Errorf("the error names its package, or a field: %q", said)
			}
			last := said[strings.LastIndex(strings.TrimSuffix(said, "\n"), "weir: ")+1:]
			for _, ugly := range []string{"goroutine", "operation error", "RequestID", "panic", "Usage:", "%!"} {
				if strings.Contains(last, ugly) {
					t.Errorf("the error is not made for people: %q", last)
				}
			}
			if got.Out.String() != "" {
				t.Errorf("standard output got %q", got.Out)
			}
		})
	}
}

func TestNoRegionAndNoCredentials(t *testing.T) {
	for name, c := range map[string]struct{ region, want string }{
		"no region":      {"", "set AWS_REGION"},
		"no credentials": {"eu-west-1", "set AWS_PROFILE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_REGION", c.region)
			got := clitest.Start(t, "", "tail", "--stream=s")
			if code := got.Wait(t); code != cli.ExitFailed || !strings.Contains(got.Err.String(), c.want) {
				t.Errorf("exit code %d and %q, want something with %q", code, got.Err, c.want)
			}
		})
	}
}

func TestDummyCredentialsAreSaidOnce(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	missing := clitest.Answering(t, 400, "ResourceNotFoundException", "Requested resource not found")
	got := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=dynamodb:weir", "--dynamodb-endpoint="+missing)
	got.Wait(t)
	if n := strings.Count(got.Err.String(), "dummy credentials"); n != 1 {
		t.Errorf("dummy credentials are mentioned %d times: %s", n, got.Err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ENDPOINT_URL_KINESIS", server.URL())
	got = clitest.Start(t, "", "tail", "--stream=s", "--until-tip")
	if code := got.Wait(t); code != cli.ExitDone || got.Err.String() != "" {
		t.Errorf("with settings of one's own: exit code %d, %q", code, got.Err)
	}
}
