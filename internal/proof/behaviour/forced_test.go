package behaviour

import (
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/wire"
)

// forced returns a client whose calls use the named path. Two of the paths exist only for proofs
// and benchmarks. With any other name it returns the client itself.
func forced(client *kinesis.Client, by string) weir.Kinesis {
	switch by {
	case "under the SDK":
		return wire.Forced{Client: client, Path: wire.UnderSDK}
	case "by the SDK":
		return wire.Forced{Client: client, Path: wire.PlainSDK}
	case "over net/http":
		return wire.Forced{Client: client, NetHTTP: true}
	}
	return client
}
