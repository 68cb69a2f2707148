package records

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

func TestParseShard(t *testing.T) {
	const three = "shardId-000000000003"
	for named, want := range map[string]struct{ id, stream string }{
		three: {three, ""}, "000000000003": {three, ""}, "3": {three, ""}, "shardId-3": {three, ""}, "0": {"shardId-000000000000", ""},
		"00000000000000003": {three, ""}, "1234567890123": {"shardId-1234567890123", ""},
		"flights/" + three: {three, "flights"}, "flights/3": {three, "flights"},
		"odd-1": {"odd-1", ""}, "shardId-x": {"shardId-x", ""}, "shardid-3": {"shardid-3", ""},
		"arn:aws:kinesis:eu-west-1:000000000000:stream/flights/3": {three, "arn:aws:kinesis:eu-west-1:000000000000:stream/flights"},
	} {
		id, stream, err := ParseShard(named)
		if err != nil || id != want.id || stream != want.stream {
			t.Errorf("%q is %q of %q, %v; want %+v", named, id, stream, err, want)
		}
		if again, _, err := ParseShard(ShortID(id)); err != nil || again != id {
			t.Errorf("%q, as tables show it, is %q, %v; want %q", ShortID(id), again, err, id)
		}
	}
	for _, named := range []string{"", " ", "/3", "flights/", "3 4", "3,4", "-3 ", "shard\n", "ü", strings.Repeat("x", 129)} {
		var usage cli.UsageError
		if id, _, err := ParseShard(named); !errors.As(err, &usage) {
			t.Errorf("%q is %q, %v; want a wrong usage", named, id, err)
		}
	}
}
