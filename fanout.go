package weir

import (
	"fmt"
	"slices"

	"github.com/weir-go/weir/internal/streams"
)

// FanOut sets whether a [Consumer] or a [Reader] reads by enhanced fan-out. The service then pushes
// records to a registered consumer as soon as they arrive: up to 2 MiB a second from each shard,
// for this consumer alone. Without fan-out, weir polls, and all applications that poll a stream
// share five reads and 2 MiB a second of each shard.
//
// AWS bills a registered consumer by the shard and hour until it is deregistered. `weir fanout
// list` shows the registered consumers, and `weir fanout remove` deregisters one. A stream can have
// 20 consumers, or 50 in some of its capacity modes.
//
// Subscriptions use separate connections, which the client's HTTP client makes. The connections use
// HTTP/2 if the transport of the HTTP client supports that. The HTTP client's timeout for whole
// calls and its limit of connections do not apply, because a subscription lasts five minutes. An
// HTTP client that is neither the SDK's nor an *http.Client is used unchanged. While the handler is
// busy, up to 256 KiB of each subscription may wait in the buffers of HTTP/2, in addition to
// MaxMemory.
//
// If the consumer is missing, if the service refuses a subscription, if three subscriptions in a
// row fail, or if there is no memory for one message, weir polls the shard and tries fan-out again
// every minute. [event.FanOutChanged] reports the change to polling and the change back.
type FanOut struct {
	// Mode selects polling or fan-out, and says whether weir registers and deregisters the
	// consumer. Defaults to FanOutOff, which is polling.
	Mode FanOutMode
	// Name is the name of the consumer, the same for each stream, 1 to 128 characters of
	// [a-zA-Z0-9_.-]. In Options it defaults to App: all workers of the application use the
	// consumer, and no other application may. In ReaderOptions there is no default, and the
	// consumer must not be that of an application or of another Reader, because the Reader takes
	// over the subscriptions of the consumer. The KCL calls it consumerName.
	Name string
	// ARNs are the ARNs of registered consumers, at most one for each stream. weir uses these
	// consumers to read their streams, and never registers or deregisters them. In Options, the
	// other streams use Name and Mode. A Reader has one stream, so ReaderOptions take one ARN,
	// without Name and with FanOutExisting. Each consumer has to belong to a stream that is read;
	// weir checks that before it uses the consumer. Do not change the slice after New or NewReader.
	// The KCL calls it consumerArn.
	ARNs []string
}

// FanOutMode selects polling or fan-out. With fan-out, it says whether weir registers and
// deregisters the consumer. The mode never applies to the consumers in [FanOut].ARNs, which stay as
// they are.
type FanOutMode int

const (
	// FanOutOff polls. The default.
	FanOutOff FanOutMode = iota
	// FanOutExisting uses a consumer that is already registered, for example by Terraform. weir
	// neither registers nor deregisters it. While it is missing, a [Consumer] polls, reports that
	// with [ErrNoConsumer], and looks for it again every minute. A [Reader] whose consumer is
	// missing at the start returns ErrNoConsumer.
	FanOutExisting
	// FanOutRegister registers the consumer if there is none, and never deregisters it.
	FanOutRegister
	// FanOutTemporary registers the consumer if there is none, and deregisters it at the end, so
	// that it costs nothing while no program reads.
	//
	// The last worker of an application deregisters the consumer when it stops, whichever worker or
	// program has registered it. A stopping worker is the last one if no other worker has a session
	// in the store. The return of its Run may take up to 10 s longer. A worker that starts at that
	// moment registers the consumer again, and polls until then.
	//
	// A Reader deregisters the consumer when reading ends, but only if it has registered the
	// consumer itself.
	//
	// If the last worker or the Reader is killed, the consumer stays registered.
	FanOutTemporary
)

// String returns "off", "existing", "register" or "temporary".
func (m FanOutMode) String() string {
	switch m {
	case FanOutOff:
		return "off"
	case FanOutExisting:
		return "existing"
	case FanOutRegister:
		return "register"
	case FanOutTemporary:
		return "temporary"
	}
	return fmt.Sprintf("FanOutMode(%d)", int(m))
}

// on reports whether records are pushed.
func (f *FanOut) on() bool { return f.Mode >= FanOutExisting && f.Mode <= FanOutTemporary }

// check reports invalid values. options is the name of the options, and all contains their streams.
// If more is true, ARNs may also be of other streams. check does not fill in Name.
func (f *FanOut) check(options string, region *string, all []streams.Stream, more bool, bad badFunc) {
	if f.Mode < FanOutOff || f.Mode > FanOutTemporary {
		bad(options+".FanOut.Mode", "%d must be FanOutOff, FanOutExisting, FanOutRegister or FanOutTemporary", f.Mode)
	}
	const without = "is set although %s.FanOut.Mode is FanOutOff: set the mode, or remove this option"
	switch {
	case f.Name == "":
	case !appForm.MatchString(f.Name):
		bad(options+".FanOut.Name", "%.140q must be 1 to 128 of a-z, A-Z, 0-9, _ . -", f.Name)
	case f.Mode == FanOutOff:
		bad(options+".FanOut.Name", without, options)
	}
	if len(f.ARNs) > 0 && f.Mode == FanOutOff {
		bad(options+".FanOut.ARNs", without, options)
		return
	}
	given := map[string]string{}
	for _, arn := range f.ARNs {
		of, err := streams.ParseConsumer(region, arn)
		if err != nil {
			bad(options+".FanOut.ARNs", "is wrong: %w", err)
			continue
		}
		if other, twice := given[of.Name]; twice && other != arn {
			bad(options+".FanOut.ARNs", "has two consumers of stream %s: %q and %q", of.Name, other, arn)
		}
		given[of.Name] = arn
		i := slices.IndexFunc(all, func(s streams.Stream) bool { return s.Name == of.Name })
		switch {
		case i < 0 && !more:
			bad(options+".FanOut.ARNs", "names %q, of a stream that is not among those to read: %s", arn, of.Name)
		case i >= 0 && all[i].ARN != "" && all[i].ARN != of.ARN:
			bad(options+".FanOut.ARNs", "names %q, which is not of the stream %s", arn, all[i].ARN)
		}
	}
}

// checkReader reports values that are invalid for a Reader, which has one stream and no
// application.
func (f *FanOut) checkReader(bad badFunc) {
	switch {
	case !f.on():
	case len(f.ARNs) > 1:
		bad("ReaderOptions.FanOut.ARNs", "has %d consumers, and a Reader has one stream: give one ARN", len(f.ARNs))
	case len(f.ARNs) == 1 && f.Name != "":
		bad("ReaderOptions.FanOut.Name", "and ReaderOptions.FanOut.ARNs are both set: name the consumer in one way")
	case len(f.ARNs) == 1 && f.Mode != FanOutExisting:
		bad("ReaderOptions.FanOut.Mode", "must be FanOutExisting with ReaderOptions.FanOut.ARNs, whose consumer is registered already")
	case len(f.ARNs) == 0 && f.Name == "":
		bad("ReaderOptions.FanOut.Name", "is empty: fan-out needs the name of a consumer, or its ARN in ReaderOptions.FanOut.ARNs")
	}
}
