package streams

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/guard"
	"github.com/weir-go/weir/internal/wire"
)

// Stream identifies a stream. Leases use its name. Calls to Kinesis use its ARN if it is known.
type Stream struct{ Name, ARN string }

// NameAndARN returns the stream's parameters for a call. One of them is nil.
func (s Stream) NameAndARN() (name, arn *string) {
	if s.ARN != "" {
		return nil, aws.String(s.ARN)
	}
	return aws.String(s.Name), nil
}

var (
	nameForm     = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)
	consumerForm = regexp.MustCompile(`^(arn:[a-z0-9-]+:kinesis:[a-z0-9-]+:\d{12}:stream/[a-zA-Z0-9_.-]{1,128})/consumer/([a-zA-Z0-9_.-]{1,128}):[0-9]{1,20}$`)
	arnForm      = regexp.MustCompile(`^arn:[a-z0-9-]+:kinesis:([a-z0-9-]+):\d{12}:stream/([a-zA-Z0-9_.-]{1,128})$`)
)

// RegionOf returns the region that a client calls, or nil if it is unknown. It is known for a
// *kinesis.Client, and for a wrapper with a method Options that returns a region. client may be
// nil.
func RegionOf(client any) (region *string) {
	if wire.IsNil(client) {
		return nil
	}
	of, ok := client.(interface{ Options() kinesis.Options })
	if !ok {
		return nil
	}
	_ = guard.Call(func() error { // an embedded client may be nil
		if name := of.Options().Region; name != "" || wire.Real(client) != nil {
			region = &name
		}
		return nil
	})
	return region
}

// Parse parses the name or ARN of a stream. It returns an error if the stream is not in the given
// region. A nil region allows every region.
func Parse(region *string, s string) (Stream, error) {
	if m := arnForm.FindStringSubmatch(s); m != nil {
		if region != nil && *region != m[1] {
			return Stream{}, fmt.Errorf(
				"stream %q is in region %s but the client calls %q: the SDK uses the client's region, so make the client with region %s",
				s, m[1], *region, m[1])
		}
		return Stream{Name: m[2], ARN: s}, nil
	}
	if strings.HasPrefix(s, "arn:") {
		return Stream{}, fmt.Errorf("%.200q is not the ARN of a stream, such as arn:aws:kinesis:eu-west-1:123456789012:stream/orders", s)
	}
	if !nameForm.MatchString(s) {
		return Stream{}, fmt.Errorf("stream name %.140q must be 1 to 128 of a-z, A-Z, 0-9, _ . -", s)
	}
	return Stream{Name: s}, nil
}

// ParseConsumer parses the ARN of a fan-out consumer and returns the consumer's stream.
func ParseConsumer(region *string, arn string) (Stream, error) {
	m := consumerForm.FindStringSubmatch(arn)
	if m == nil {
		return Stream{}, fmt.Errorf("%.300q is not the ARN of a consumer, such as arn:aws:kinesis:eu-west-1:123456789012:stream/orders/consumer/billing:1700000000", arn)
	}
	return Parse(region, m[1])
}

// ParseAll is like Parse for many streams. It returns all problems at once. If the same text occurs
// twice, it counts once.
func ParseAll(region *string, given []string) ([]Stream, []error) {
	var all []Stream
	var problems []error
	for _, s := range given {
		parsed, err := Parse(region, s)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		i := slices.IndexFunc(all, func(s Stream) bool { return s.Name == parsed.Name })
		switch {
		case i < 0:
			all = append(all, parsed)
		case all[i] != parsed:
			problems = append(problems, fmt.Errorf("stream %q is given twice, as %q and %q: streams of one name need an application each",
				parsed.Name, all[i].ARN, parsed.ARN))
		}
	}
	return all, problems
}

// Set is the set of streams that are read. It is safe for concurrent use after the first Replace.
type Set struct {
	streams atomic.Pointer[map[string]Stream]
	names   atomic.Pointer[[]string] // of streams, sorted
}

// Replace sets the streams. It returns the names that were added and removed.
func (s *Set) Replace(given []Stream) (came, left []string) {
	now := make(map[string]Stream, len(given))
	for _, g := range given {
		now[g.Name] = g
	}
	before := map[string]Stream{}
	if p := s.streams.Load(); p != nil {
		before = *p
	}
	if names := slices.Sorted(maps.Keys(now)); len(before) == 0 || !maps.Equal(before, now) {
		s.streams.Store(&now)
		s.names.Store(&names)
	}
	return missing(now, before), missing(before, now)
}

// missing returns the names in a that are not in b.
func missing(a, b map[string]Stream) (names []string) {
	for name := range a {
		if _, there := b[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Names returns the sorted names of the streams. The caller must not change the slice.
func (s *Set) Names() []string { return *s.names.Load() }

// Stream returns the stream with the given name. The name need not be in the set, because an
// application may have leases of streams that only other workers read.
func (s *Set) Stream(name string) Stream {
	return Stream{Name: name, ARN: (*s.streams.Load())[name].ARN}
}
