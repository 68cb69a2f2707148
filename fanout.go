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
	// Polling asks for records. Every application that polls a stream shares its shards' five reads
	// and 2 MiB a second. The default.
	Polling Reading = iota
	// FanOut reads through a registered consumer, to which the service pushes records (enhanced
	// fan-out): 2 MiB a second from each shard for this application alone, as soon as they arrive.
	// AWS bills a consumer by the shard and hour until it is deregistered, by
	// [Options].RemoveFanOut or by `weir fanout remove`; `weir fanout list` shows what is
	// registered. A stream has 20 consumers, or 50.
	//
	// Subscriptions use separate connections, made as the client's HTTP client makes them: over
	// HTTP/2 if its transport supports that, without its timeout for whole calls, because a
	// subscription lasts five minutes, and without its limit of connections. An HTTP client that is
	// neither the SDK's nor an *http.Client is used unchanged. In addition to Options.MaxMemory, up
	// to 256 KiB of each subscription may wait in HTTP/2's buffers while its handler is busy.
	//
	// While fan-out is not available, the shard is polled, and fan-out is tried again every minute;
	// [Events].ReadingChanged reports it. The reasons are: the service refuses it, three
	// subscriptions in a row failed, or there is no memory for one message of the service.
	FanOut
)

// String returns "polling" or "fan-out".
func (r Reading) String() string {
	switch r {
	case Polling:
		return "polling"
	case FanOut:
		return "fan-out"
	}
	return fmt.Sprintf("Reading(%d)", int(r))
}

// checkFanOutARNs says what is wrong with Options.FanOutARNs for the streams of the options.
func (o *Options) checkFanOutARNs(client *kinesis.Client, all []streams.Stream, bad func(format string, args ...any)) {
	if len(o.FanOutARNs) > 0 && o.Reading != FanOut {
		bad("Options.FanOutARNs %.300q are set although Options.Reading is not FanOut", o.FanOutARNs)
		return
	}
	given := map[string]string{}
	for _, arn := range o.FanOutARNs {
		of, err := streams.ParseConsumer(client, arn)
		if err != nil {
			bad("Options.FanOutARNs is wrong: %w", err)
			continue
		}
		if other, twice := given[of.Name]; twice && other != arn {
			bad("Options.FanOutARNs has two consumers of stream %s: %q and %q", of.Name, other, arn)
		}
		given[of.Name] = arn
		i := slices.IndexFunc(all, func(s streams.Stream) bool { return s.Name == of.Name })
		switch {
		case i < 0 && o.StreamsFunc == nil:
			bad("Options.FanOutARNs names %q, of a stream that is not among those to read: %s", arn, of.Name)
		case i >= 0 && all[i].ARN != "" && all[i].ARN != of.ARN:
			bad("Options.FanOutARNs names %q, which is not of the stream %s", arn, all[i].ARN)
		}
	}
}
