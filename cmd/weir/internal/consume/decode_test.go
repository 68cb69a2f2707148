package consume

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/deadletter"
)

// Producers with and without compression write to one stream. The command and the filter get
// decoded data, and dead letters contain the payloads as they are in the stream. weir dead retry
// decodes them for its command.
func TestConsumeDecodes(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	var want []string
	for i, codec := range []string{"no", "gzip", "zstd"} {
		var lines []string
		for j := range 5 {
			kind := []string{"order", "offer"}[j%2]
			lines = append(lines, fmt.Sprintf(`{"kind":%q,"n":%d,"text":%q}`, kind, 10*i+j, strings.Repeat("coffee ", 30)))
			if kind == "order" {
				want = append(want, lines[j])
			}
		}
		clitest.MustRun(t, strings.Join(lines, "\n"), "put", endpoint, "--stream=s", "--key=kind", "--aggregate", "--compress="+codec)
	}
	dead := "--dead=file:" + filepath.Join(t.TempDir(), "dead.ndjson")
	// The record 22 is refused, until the retry.
	out := clitest.MustRun(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--until-tip", "--decode=gzip,zstd", "--filter="+clitest.JustOrders,
		"--filter-not-json=drop", dead, "--max-attempts=1", "--bisect", "--outage-grace=0", "--retry-min=1ms", "--exec", `in=$(cat); case "$in" in *'"n":22'*) exit 1;; esac; echo "$in"`)
	got := strings.Split(strings.TrimSpace(out), "\n")
	if at := slices.IndexFunc(want, func(s string) bool { return strings.Contains(s, `"n":22`) }); !slices.Equal(got, slices.Delete(slices.Clone(want), at, at+1)) {
		t.Errorf("the command got %.60q", got)
	}
	var letter deadletter.Item
	if err := json.Unmarshal([]byte(clitest.MustRun(t, "", "dead", "list", dead, "-o=json")), &letter); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(letter.Data), "\x28\xb5\x2f\xfd") {
		t.Errorf("the dead letter contains %.40q", letter.Data)
	}
	retried := clitest.MustRun(t, "", "dead", "retry", dead, "--all", "--yes", "--decode=zstd", "--exec=cat")
	if !strings.Contains(retried, `"n":22`) || !strings.Contains(retried, "1 of 1 dead letter handled") {
		t.Errorf("%s", retried)
	}
}

// A payload that cannot be decoded becomes a dead letter, and the records around it are handled.
func TestConsumeRejectsWhatItCannotDecode(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	clitest.MustRun(t, "one\n\x1f\x8b\x08 torn\nthree\n", "put", endpoint, "--stream=s", "--aggregate")
	dead := "--dead=file:" + filepath.Join(t.TempDir(), "dead.ndjson")
	args := []string{"consume", endpoint, "--stream=s", "--store=memory:", "--until-tip", "--decode=gzip"}
	if out := clitest.MustRun(t, "", append(args, "--app=a", dead, "--retry-min=1ms")...); out != "one\nthree\n" {
		t.Errorf("printed %q", out)
	}
	list := clitest.MustRun(t, "", "dead", "list", dead)
	if !strings.Contains(list, "rejected") || !strings.Contains(list, "--decode gzip: payload: the payload is damaged") {
		t.Errorf("%s", list)
	}
	for want, more := range map[string][]string{
		"--decode does not go with --lambda and --invoke": {"--lambda=cat"},
		"--decode does not go with --to s3":               {"--to=s3://bucket/raw"},
		`--decode "lz4": use gzip, zstd, glue, lzutf8`:    {"--decode=lz4"},
	} {
		if _, said := clitest.MustExit(t, cli.ExitUsage, append(args, append(more, "--app=b")...)...); !strings.Contains(said, want) {
			t.Errorf("%q: %s", more, said)
		}
	}
	if _, said := clitest.MustExit(t, cli.ExitUsage, "dead", "retry", dead, "--all", "--to-stream=s", "--decode=gzip"); !strings.Contains(said, "--decode applies only to --exec") {
		t.Errorf("%s", said)
	}
}
