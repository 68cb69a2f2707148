package records

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

// The ID of a shard has several forms. Tables show only the digits. JSON and the service use the
// whole ID. Plans put the stream in front, and users leave out the zeros. [ShortID] returns the
// first form, and [ParseShard] accepts all of them.

const shardPrefix = "shardId-"

// ShardHelp is a help text about the values that ParseShard accepts.
const ShardHelp = "as any command shows it: shardId-000000000003, 000000000003 or 3"

// shardForm is the service's own rule for shard IDs.
var shardForm = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)

// ShortID returns the ID of a shard as tables show it: only the digits, if the ID is shardId- and
// digits.
func ShortID(shard string) string {
	if number := strings.TrimPrefix(shard, shardPrefix); isNumber(number) {
		return number
	}
	return shard
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// ParseShard returns the ID of the shard in a value of --shard. It also returns the stream, if the
// value contains one ("flights/3"). An ID that has none of the forms above is used unchanged,
// because other servers may use other forms.
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

// ParseShardOf returns the ID of the shard, like ParseShard, for a command about a single stream.
// stream is the name or the ARN of this stream.
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
