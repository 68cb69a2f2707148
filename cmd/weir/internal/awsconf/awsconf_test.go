package awsconf

import (
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/internal/wire"
)

// Commands read with weir's own calls over weir's own HTTP client, which is the fastest way. weir
// does this only if the Kinesis client still has the HTTP client of the SDK.
func TestCommandsReadByWeirsOwnCalls(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		f := Flags{endpoint: "http://127.0.0.1:1", region: "eu-west-1", HTTP2: http2, Reads: true}
		client, err := f.Kinesis(t.Context(), cli.Terminal{Out: clitest.NewOutput(), Err: clitest.NewOutput()})
		if err != nil {
			t.Fatal(err)
		}
		if reason, ok := wire.Plain(client.Options()); !ok {
			t.Errorf("not by own calls: %s", reason)
		}
		if c, ok := client.Options().HTTPClient.(*awshttp.BuildableClient); !ok {
			t.Errorf("the HTTP client is a %T", c)
		}
	}
}
