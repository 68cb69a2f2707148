package consume

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// register returns a command whose flags set the fields of o.
func register(o *options) *cobra.Command {
	cmd := &cobra.Command{}
	for _, r := range o.table(cmd) {
		r.register(cmd)
	}
	return cmd
}

func TestSettingsThatCannotBe(t *testing.T) {
	args := []string{"consume", "--stream=s", "--app=a", "--store=memory:", "--endpoint=http://127.0.0.1:1", "--region=eu-west-1"}
	for given, want := range map[string]string{
		"--max-memory=15MiB":          "want 16MiB to 1024GiB",
		"--max-memory=99999999999GiB": "want 16MiB to 1024GiB",
		"--max-memory=-1":             "want 16MiB to 1024GiB",
		"--max-leases=-1":             "want a number from 0 on",
		"--weight=0":                  "want a number above 0",
		"--weight=+Inf":               "want a number above 0",
		"--weight=NaN":                "want a number above 0",
		"--failover-after=0":          "want more than 0",
		"--failover-after=-5s":        "--failover-after -5s must be between",
		"--failover-after=5":          "want a time with its unit",
		"--failover-after=2s":         "--failover-after 2s must be between 3s",
		"--heartbeat-interval=1ms":    "--heartbeat-interval 1ms must be between 100ms",
		"--stall-after=1s":            "--stall-after 1s must be between 30s",
		"--idle-interval=1s --retry-min=1m --retry-max=1s": "--retry-max 1s must be between 1m",
		"--aggregates=drop": "use unpack, unpack-own or keep-packed",
		"--transport=http":  "use auto or sdk",
		"--log=yaml":        "use text or json",
	} {
		_, said := clitest.MustExit(t, cli.ExitUsage, append(args, strings.Fields(given)...)...)
		flag, _, _ := strings.Cut(given[strings.LastIndex(given, "--"):], "=")
		if !strings.Contains(said, want) || !strings.Contains(said, flag) {
			t.Errorf("%s: %s", given, said)
		}
	}
}

// If 0 has a meaning of its own for an option, the flag must pass 0 to the option.
func TestZeroMayBeGiven(t *testing.T) {
	cmd := register(&options{})
	for _, flag := range []string{"handler-timeout", "max-leases", "outage-grace", "dead-letters-per-minute"} {
		if err := cmd.Flags().Set(flag, "0"); err != nil {
			t.Errorf("--%s 0: %v", flag, err)
		}
	}
	if err := cli.RefuseBlank(cmd, nil); err != nil {
		t.Error(err)
	}
}

// All lines of the log have the same format with time, level and application. With --log=text, the
// log begins when the worker runs. Earlier messages have no such format, because only the user who
// starts the worker reads them.
func TestTheLogOfConsume(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	server.Put("s", "k", []byte("x"))
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			c := clitest.Start(t, "", "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--worker=w", "--log="+format, "-v", "--exec=exit 7")
			c.Err.Await(t, "a failure", func(s string) bool { return strings.Count(s, "exit status 7") >= 2 })
			c.Interrupt(t)
			lines := strings.Split(strings.TrimSpace(c.Err.String()), "\n")
			for format == "text" && strings.HasPrefix(lines[0], "weir: ") {
				lines = lines[1:]
			}
			failures := 0
			for i, line := range lines {
				got := map[string]any{}
				if format == "json" {
					if err := json.Unmarshal([]byte(line), &got); err != nil {
						t.Fatalf("line %d is no JSON: %s", i, line)
					}
				} else {
					for _, m := range regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*"|\S+)`).FindAllStringSubmatch(line, -1) {
						got[m[1]] = strings.Trim(m[2], `"`)
					}
				}
				for _, key := range []string{"time", "level", "msg", "app", "worker"} {
					if got[key] == nil {
						t.Errorf("line %d does not say its %s: %s", i, key, line)
					}
				}
				if got["app"] != "a" || got["worker"] != "w" {
					t.Errorf("line %d: %s", i, line)
				}
				if strings.Contains(line, "exit status 7") {
					failures++
					if got["shard"] != "shardId-000000000000" || got["stream"] != "s" || got["first"] == nil || got["attempt"] == nil {
						t.Errorf("a failure that does not say where: %s", line)
					}
				}
			}
			if failures < 2 || !strings.Contains(c.Err.String(), "lease taken") || !strings.Contains(c.Err.String(), "lease ended") {
				t.Errorf("the log:\n%s", c.Err)
			}
		})
	}
}
