package records

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

const FromHelp = "oldest, latest, a time (2026-01-31T12:00:00Z), or how long ago (15m)"

// ParseFrom parses the value of --from.
func ParseFrom(s string, now time.Time) (weir.Position, error) {
	switch s {
	case "oldest":
		return weir.Oldest, nil
	case "latest":
		return weir.Latest, nil
	}
	if ago, err := time.ParseDuration(s); err == nil {
		if ago < 0 {
			return weir.Position{}, cli.Usagef("--from %s is in the future", s)
		}
		return weir.At(now.Add(-ago)), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return weir.Position{}, cli.Usagef("--from %q is not a place to start: use %s", s, FromHelp)
	}
	if t.After(now.Add(time.Minute)) {
		return weir.Position{}, cli.Usagef("--from %s is in the future", s)
	}
	return weir.At(t), nil
}

// UntilHelp describes the values of --until.
const UntilHelp = "2026-01-31T12:00:00Z, or how long ago (15m)"

// ParseUntil parses the value of --until, a time that has passed. later says what to do to wait for
// a time.
func ParseUntil(s string, now time.Time, later string) (time.Time, error) {
	if ago, err := time.ParseDuration(s); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, s)
	switch {
	case err != nil:
		return at, cli.Usagef("--until %.140q is not a time: use one like 2026-01-31T12:00:00Z, or how long ago (15m)", s)
	case at.After(now):
		return at, cli.Usagef("--until %s is in the future: %s", s, later)
	}
	return at, nil
}

func RegisterReadShare(cmd *cobra.Command, share *float64) {
	cmd.Flags().Var(&cli.Number[float64]{To: share, Parse: cli.ParseFloat, Low: .01, High: 1, Want: "0.01 to 1"}, "read-share",
		"part of each shard's 5 reads and 2 MiB a second to take at most, 0.01 to 1; the rest is for others that poll the stream (default 1)")
}

func RegisterTransport(cmd *cobra.Command, to *weir.Transport) {
	cli.Choose(cmd, "transport", to, "how records are read from the service: auto or sdk",
		cli.Word("auto", weir.AutoTransport, "weir's own client, unless the configuration of the AWS SDK prevents it"),
		cli.Word("sdk", weir.SDKTransport, "calls of the AWS SDK, with answers decoded by weir"))
}
