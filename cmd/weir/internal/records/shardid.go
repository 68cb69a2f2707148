package records

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

// A shard's ID is written in several ways. Tables show only the digits, JSON and the service the
// whole ID, plans put the stream before it, and people leave the zeros out. [ShortID] makes the
// first form, [ParseShard] takes all of them.

const shardPrefix = "shardId-"

// ShardHelp says in a flag's help what ParseShard takes.
const ShardHelp = "as any command shows it: shardId-000000000003, 000000000003 or 3"

// The service's own rule for the IDs of shards.
var shardForm = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)

// ShortID returns a shard's ID as tables show it: the number, if it ends in one.
func ShortID(shard string) string {
	if number := strings.TrimPrefix(shard, shardPrefix); isNumber(number) {
		return number
	}
	return shard
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// ParseShard returns the ID of the shard in a value of --shard, and the stream if the value names
// one ("flights/3"). A value without a number is used unchanged, because other servers may have IDs
// of other forms.
func ParseShard(s string) (id, stream string, err error) {
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		if stream, s = s[:i], s[i+1:]; stream == "" {
			s = ""
		}
	}
	if !shardForm.MatchString(s) {
		return "", "", cli.Usagef("--shard %.140q is not a shard: name it %s", s, ShardHelp)
	}
	number := ShortID(s)
	if !isNumber(number) {
		return s, stream, nil
	}
	return shardPrefix + fmt.Sprintf("%012s", strings.TrimLeft(number, "0")), stream, nil
}

// ParseShardOf is [ParseShard] for a command that is about one stream, which it has by name or ARN.
func ParseShardOf(stream, s string) (string, error) {
	id, of, err := ParseShard(s)
	if err != nil {
		return "", err
	}
	if of != "" && awsconf.StreamName(of) != awsconf.StreamName(stream) {
		return "", cli.Usagef("--shard %s is a shard of stream %s, not of %s: use a separate command for each stream", s, of, awsconf.StreamName(stream))
	}
	return id, nil
}
