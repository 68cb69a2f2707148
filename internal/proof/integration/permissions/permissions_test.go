// Package permissions_test compares the documented IAM policies with the requests of weir. It
// records every action of a role's programs and commands. Each action must be allowed. An allowed
// action that is never used is an error.
package permissions_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/roles"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/dynamostore"
)

const table = "weir"

// record contains the actions that were requested since the last take.
type record struct {
	mu      sync.Mutex
	kinesis map[string]bool
	dynamo  map[string]bool
	indexes []string // indexes that a call named
}

func (r *record) take() (kinesis, dynamo []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for a := range r.kinesis {
		kinesis = append(kinesis, a)
	}
	for a := range r.dynamo {
		dynamo = append(dynamo, a)
	}
	slices.Sort(kinesis)
	slices.Sort(dynamo)
	r.kinesis, r.dynamo = map[string]bool{}, map[string]bool{}
	return kinesis, dynamo
}

// proxy starts a recording proxy for a DynamoDB server and returns its URL.
func (r *record) proxy(t *testing.T, server string) string {
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the client has disconnected
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		var about struct{ IndexName string }
		_ = json.Unmarshal(body, &about) // invalid requests name no index
		_, action, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
		r.mu.Lock()
		r.dynamo[action] = true
		if about.IndexName != "" {
			r.indexes = append(r.indexes, about.IndexName)
		}
		r.mu.Unlock()
		through.ServeHTTP(w, req)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// stage is the environment for the programs of a role.
type stage struct {
	*testing.T
	weir    string // path of the command
	kinesis *kinesistest.Server
	dynamo  string // URL of the DynamoDB server
	env     []string
}

func (s *stage) command(words string) *exec.Cmd {
	args := strings.Fields(words)
	cmd := exec.CommandContext(s.Context(), s.weir, args...)
	cmd.Dir = s.TempDir() // for the backup before a change
	cmd.Env = append(cmd.Environ(), s.env...)
	return cmd
}

// run runs a command to its end. It may fail.
func (s *stage) run(words, input string) string {
	s.Helper()
	cmd := s.command(words)
	cmd.Stdin = strings.NewReader(input)
	out, _ := cmd.CombinedOutput() // only the recorded actions matter; see ok
	return string(out)
}

// ok runs a command that must succeed.
func (s *stage) ok(words, input string) {
	s.Helper()
	cmd := s.command(words)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Errorf("weir %s: %v, %s", words, err, out)
	}
}

// until runs a command until it has printed n lines, and then ends it gracefully.
func (s *stage) until(words string, lines int, meanwhile func(line int)) {
	s.Helper()
	cmd := s.command(words)
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	in := bufio.NewScanner(out)
	n := 0
	for n < lines && in.Scan() {
		n++
		if meanwhile != nil {
			meanwhile(n)
		}
	}
	_ = cmd.Process.Signal(os.Interrupt) // the command may have ended
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil || n < lines {
		s.Errorf("weir %s: %v after %d lines, %s", words, err, n, &said)
	}
}

// store opens the store like a program.
func (s *stage) store() *dynamostore.Store {
	return dynamostore.New((&servers.Server{URL: s.dynamo}).DynamoDB(), dynamostore.Options{Table: table})
}

// records returns input for the command put.
func records(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		b.WriteString(`{"key":"` + strconv.Itoa(i) + "\"}\n")
	}
	return b.String()
}

// played contains the activities of each role. The names are those in the table of
// docs/security.md. A role with a base may also make the calls of its base.
var played = []struct {
	role, base string
	play       func(*stage)
}{
	{"who sets up (`store create`)", "", func(s *stage) { s.ok("store create", "") }},
	{"who sets up a table with settings, besides", "who sets up (`store create`)", func(s *stage) {
		for range 2 { // the server does not support all settings
			s.run("store create --store dynamodb:settled?point_in_time_recovery=true&tag=team=billing", "")
		}
	}},
	{"who makes streams (`stream create`)", "", func(s *stage) {
		for range 2 {
			s.ok("stream create --stream new --shards 2 --kms-key alias/aws/kinesis --retention 48h --tag team=billing", "")
		}
	}},
	{"producer (`weir put`)", "", func(s *stage) { s.ok("put --stream orders --key key -q", records(0, 40)) }},
	{"producer that makes the stream (`--create`), besides", "producer (`weir put`)", func(s *stage) {
		s.ok("put --stream made --create --key key -q", records(0, 1))
	}},
	{"worker, leading or not", "", func(s *stage) {
		if err := roles.Work(s.Context(), s.store(), "work"); err != nil {
			s.Error(err)
		}
		s.until("consume --stream orders --app billing", 60, func(n int) {
			if n == 40 { // read the children too
				s.kinesis.Split("orders", s.kinesis.OpenShards("orders")[0])
				for i := range 20 {
					s.kinesis.Put("orders", strconv.Itoa(i), []byte("{}"))
				}
			}
		})
		// The command explains the problem of a missing table.
		if said := s.run("consume --stream orders --app billing --store dynamodb:missing", ""); !strings.Contains(said, "missing") {
			s.Errorf("without a table it says %s", said)
		}
	}},
	{"worker with fan-out, besides", "worker, leading or not", func(s *stage) {
		s.kinesis.RegisterConsumer("orders", "theirs")
		s.until("consume --stream orders --app given --fan-out existing --fan-out-name theirs", 60, nil)
	}},
	{"worker that registers its consumer (`--fan-out register`), besides", "worker with fan-out, besides", func(s *stage) {
		s.until("consume --stream orders --app pushed --fan-out register", 60, nil)
	}},
	{"worker that removes it at the end (`--fan-out temporary`), besides", "worker that registers its consumer (`--fan-out register`), besides", func(s *stage) {
		s.until("consume --stream orders --app removed --fan-out temporary", 60, nil)
	}},
	{"worker that makes its stream (`--create-stream`), besides", "worker, leading or not", func(s *stage) {
		// The command ends by itself.
		s.run("consume --stream own --create-stream 1 --app owner --store dynamodb:missing", "")
	}},
	{"reader (`weir tail`)", "", func(s *stage) { s.ok("tail --stream orders --until-tip", "") }},
	{"reader with fan-out, besides", "reader (`weir tail`)", func(s *stage) {
		s.until("tail --stream orders --from oldest --fan-out existing --fan-out-name pushed", 60, nil)
	}},
	{"reader that registers (`--fan-out temporary`), besides", "reader with fan-out, besides", func(s *stage) {
		s.until("tail --stream orders --from oldest --fan-out temporary --fan-out-name me", 60, nil)
	}},
	{"operator who looks (`group list`, `describe`, `lag`, `plan`, `export`, `doctor`, `fanout list`)", "", func(s *stage) {
		for _, c := range []string{"group list --no-lag", "group describe --app billing", "group lag --app billing", "group plan --app billing --look 0", "group export --app billing -",
			"doctor --app billing --look 50ms", "fanout list --stream orders"} {
			s.run(c, "") // the exit codes contain the findings
		}
	}},
	{"operator who changes (`group reset`, `pause`, `drain`, `delete`, `import`, `fanout remove`), besides",
		"operator who looks (`group list`, `describe`, `lag`, `plan`, `export`, `doctor`, `fanout list`)", func(s *stage) {
			s.ok("group pause --app billing", "")
			s.ok("group resume --app billing", "")
			s.ok("group reset --app billing --to oldest --yes", "")
			s.ok("group reset --app billing --to latest --yes", "")
			s.run("group drain --app billing nobody", "")
			// A lease that has moved in the meantime is read again.
			stale := lease.Action{Kind: lease.Move, Key: lease.Key{Stream: "orders", Shard: "shardId-000000000000"}, Epoch: 999, Position: shard.Oldest}
			if done, err := s.store().Apply(s.Context(), "billing", []lease.Action{stale}); err != nil || done[0] {
				s.Errorf("a move of a lease that moved: %v, %v", done, err)
			}
			s.ok("group import --app copy --yes -", s.run("group export --app billing -", ""))
			s.ok("group import --app copy --replace --yes -", s.run("group export --app billing -", ""))
			s.ok("group delete --app copy --yes", "")
			s.ok("fanout remove --stream orders --name pushed --yes", "")
		}},
}

func TestThePoliciesAreWhatIsAskedFor(t *testing.T) {
	local := servers.DynamoDBLocal(t)
	seen := &record{kinesis: map[string]bool{}, dynamo: map[string]bool{}}
	kinesis := kinesistest.NewServer(t)
	kinesis.CreateStream("orders", 2)
	kinesis.Control("", func(c *kinesistest.Call) kinesistest.Fault {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		seen.kinesis[c.Action] = true
		return kinesistest.Fault{}
	})
	weir := filepath.Join(t.TempDir(), "weir")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", weir, ".")
	build.Dir = filepath.Join("..", "..", "..", "..", "cmd", "weir")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	dynamo := seen.proxy(t, local.URL)
	s := &stage{T: t, weir: weir, kinesis: kinesis, dynamo: dynamo, env: []string{"WEIR_STORE=dynamodb:" + table, "AWS_ENDPOINT_URL_KINESIS=" + kinesis.URL(), "AWS_ENDPOINT_URL_DYNAMODB=" + dynamo,
		"AWS_REGION=" + servers.Region, "AWS_ACCESS_KEY_ID=" + servers.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + servers.SecretAccessKey}}
	documented := readTable(t)
	allowed := map[string]permissions{}
	seen.take()
	for _, p := range played {
		row, ok := documented[p.role]
		if !ok {
			t.Errorf("docs/security.md has no row for %s", p.role)
		}
		delete(documented, p.role)
		base := allowed[p.base]
		allowed[p.role] = permissions{slices.Concat(base.kinesis, row.kinesis), slices.Concat(base.dynamo, row.dynamo)}
		p.play(s)
		k, d := seen.take()
		compare(t, p.role+": Kinesis", k, row.kinesis, base.kinesis)
		compare(t, p.role+": DynamoDB", d, row.dynamo, base.dynamo)
	}
	for role := range documented {
		t.Errorf("nobody has played %s", role)
	}
	if len(seen.indexes) > 0 {
		t.Errorf("calls name the indexes %q: they have ARNs of their own", seen.indexes)
	}
	policies(t, allowed["worker that registers its consumer (`--fan-out register`), besides"], allowed["worker, leading or not"])
}

// compare compares the requested actions with a row of the table. All actions of the row must have
// been used. All used actions must be in the row or in its base row.
func compare(t *testing.T, what string, asked, row, base []string) {
	t.Helper()
	for _, a := range asked {
		if !slices.Contains(row, a) && !slices.Contains(base, a) {
			t.Errorf("%s: %s is asked for and not documented", what, a)
		}
	}
	for _, a := range row {
		if !slices.Contains(asked, a) {
			t.Errorf("%s: %s is documented and nobody asks for it", what, a)
		}
		if slices.Contains(base, a) {
			t.Errorf("%s: %s is said twice", what, a)
		}
	}
}

type permissions struct{ kinesis, dynamo []string }

const securityPage = "../../../../docs/security.md"

var (
	rowForm    = regexp.MustCompile(`(?m)^\| (.*) \| (.*?) ?\| (.*?) ?\|$`)
	actionForm = regexp.MustCompile("`([A-Z][A-Za-z]+)`")
	policyForm = regexp.MustCompile("(?s)```json\n(.*?)```")
)

// readTable reads the table of roles.
func readTable(t *testing.T) map[string]permissions {
	t.Helper()
	page, err := os.ReadFile(securityPage)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "| Role | Kinesis | DynamoDB |\n| --- | --- | --- |\n")
	text, _, _ = strings.Cut(text, "\n\n")
	actions := func(cell string) (all []string) {
		for _, m := range actionForm.FindAllStringSubmatch(cell, -1) {
			all = append(all, m[1])
		}
		return all
	}
	rows := map[string]permissions{}
	for _, m := range rowForm.FindAllStringSubmatch(text, -1) {
		rows[m[1]] = permissions{actions(m[2]), actions(m[3])}
	}
	if len(rows) != strings.Count(text, "\n")+1 {
		t.Fatalf("%d rows of the table are not to be understood", strings.Count(text, "\n")+1-len(rows))
	}
	return rows
}

// policies compares the policies for workers with the table. The policies are on the page and in
// [dynamostore.Policy].
func policies(t *testing.T, worker, polling permissions) {
	page, err := os.ReadFile(securityPage)
	if err != nil {
		t.Fatal(err)
	}
	found := policyForm.FindSubmatch(page)
	if found == nil {
		t.Fatal("the page has no policy")
	}
	compare := func(what string, got, want []string) {
		slices.Sort(got)
		want = slices.Sorted(slices.Values(want))
		if !slices.Equal(got, want) {
			t.Errorf("%s allows %q, the table %q", what, got, want)
		}
	}
	got := map[string][]string{}
	for action, resources := range readPolicy(t, found[1]) {
		service, name, _ := strings.Cut(action, ":")
		got[service] = append(got[service], name)
		for _, r := range resources {
			want := map[string]bool{"dynamodb": strings.HasSuffix(r, ":table/TABLE"), "kinesis": strings.HasSuffix(r, ":stream/NAME") || strings.HasSuffix(r, ":stream/NAME/consumer/*")}
			if !want[service] || name == "SubscribeToShard" && !strings.Contains(r, "/consumer/") {
				t.Errorf("the policy allows %s on %s", action, r)
			}
		}
	}
	compare("the policy for workers on Kinesis", got["kinesis"], worker.kinesis)
	compare("the policy for workers on DynamoDB", got["dynamodb"], worker.dynamo)

	var ours []string
	for action, resources := range readPolicy(t, []byte(dynamostore.Policy("arn:T"))) {
		ours = append(ours, strings.TrimPrefix(action, "dynamodb:"))
		if !slices.Equal(resources, []string{"arn:T"}) {
			t.Errorf("Policy allows %s on %q", action, resources)
		}
	}
	compare("dynamostore.Policy", ours, polling.dynamo)
}

// readPolicy returns the allowed actions of a policy, with their resources.
func readPolicy(t *testing.T, text []byte) map[string][]string {
	t.Helper()
	type names []string
	var policy struct {
		Statement []struct {
			Effect           string
			Action, Resource json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &policy); err != nil {
		t.Fatal(err)
	}
	list := func(raw json.RawMessage) (all names) { // a single string counts as a list of one
		var one string
		if json.Unmarshal(raw, &one) == nil {
			return names{one}
		}
		if err := json.Unmarshal(raw, &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	allowed := map[string][]string{}
	for _, s := range policy.Statement {
		if s.Effect != "Allow" {
			t.Errorf("a statement has the effect %q", s.Effect)
		}
		for _, a := range list(s.Action) {
			if allowed[a] != nil {
				t.Errorf("%s is allowed twice", a)
			}
			allowed[a] = list(s.Resource)
		}
	}
	return allowed
}
