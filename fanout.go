package weir

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/streams"
)

// Reading chooses how records come from the service.
type Reading int

const (
	// ByPolling requests records. All applications that poll a stream share five reads and 2 MiB
	// a second of each shard. The default.
	ByPolling Reading = iota
	// ByFanOut reads through a registered consumer (enhanced fan-out). The service pushes records
	// to it as soon as they arrive: up to 2 MiB a second from each shard, for this application
	// alone. AWS bills a consumer by the shard and hour until it is deregistered, by
	// [Options].RemoveFanOut or by `weir fanout remove`. `weir fanout list` shows the registered
	// consumers. A stream can have 20 consumers, in some modes 50.
	//
	// Subscriptions use separate connections, which the client's HTTP client makes. The connections
	// use HTTP/2 if the transport of the HTTP client supports that. The HTTP client's timeout for
	// whole calls and its limit of connections do not apply, because a subscription lasts five
	// minutes. An HTTP client that is neither the SDK's nor an *http.Client is used unchanged.
	// While the handler is busy, up to 256 KiB of each subscription may wait in the buffers of
	// HTTP/2, in addition to Options.MaxMemory.
	//
	// If the service refuses a subscription, if three subscriptions in a row fail, or if there is
	// no memory for one message, weir polls the shard and tries fan-out again every minute.
	// [Events].ReadingChanged reports both changes.
	ByFanOut
)

// String returns "polling" or "fan-out".
func (r Reading) String() string {
	switch r {
	case ByPolling:
		return "polling"
	case ByFanOut:
		return "fan-out"
	}
	return fmt.Sprintf("Reading(%d)", int(r))
}

// checkFanOutARNs says what is wrong with Options.FanOutARNs for the streams of the options.
func (o *Options) checkFanOutARNs(client *kinesis.Client, all []streams.Stream, bad func(option, format string, args ...any)) {
	if len(o.FanOutARNs) > 0 && o.Reading != ByFanOut {
		bad("Options.FanOutARNs", "%.300q are set although Options.Reading is not FanOut", o.FanOutARNs)
		return
	}
	given := map[string]string{}
	for _, arn := range o.FanOutARNs {
		of, err := streams.ParseConsumer(client, arn)
		if err != nil {
			bad("Options.FanOutARNs", "is wrong: %w", err)
			continue
		}
		if other, twice := given[of.Name]; twice && other != arn {
			bad("Options.FanOutARNs", "has two consumers of stream %s: %q and %q", of.Name, other, arn)
		}
		given[of.Name] = arn
		i := slices.IndexFunc(all, func(s streams.Stream) bool { return s.Name == of.Name })
		switch {
		case i < 0 && o.DiscoverStreams == nil:
			bad("Options.FanOutARNs", "names %q, of a stream that is not among those to read: %s", arn, of.Name)
		case i >= 0 && all[i].ARN != "" && all[i].ARN != of.ARN:
			bad("Options.FanOutARNs", "names %q, which is not of the stream %s", arn, all[i].ARN)
		}
	}
}
