// Package provision creates streams with a mode, shards, encryption, tags and a retention. It does
// not change an existing stream, and reports how it differs from the wanted one.
//
// Package weir never calls provision, so workers need no permission to create streams. A program
// calls [CreateStream] before [github.com/weir-go/weir.New], or a deployment runs "weir stream
// create".
package provision

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/streams"
)

// Stream describes the wanted stream. Name is required. For every other field, the zero value means
// the service's default.
type Stream struct {
	// Name is the name of the stream: 1 to 128 characters of a-z, A-Z, 0-9, _ . -. The stream is
	// created in the client's account and region.
	Name string
	// Shards is the initial number of shards in provisioned mode, from 1 to 100,000. The value 0
	// means on-demand mode, in which the service chooses the number.
	Shards int
	// KMSKey is the key that encrypts the stored records: its ARN or ID, or an alias. The alias
	// "alias/aws/kinesis" is the key that AWS provides. By default records are not encrypted.
	KMSKey string
	// Retention is how long records are kept: 24 h to 8,760 h (a year) in whole hours. The default
	// is 24 h. A longer retention costs more.
	Retention time.Duration
	// MaxRecordSize is the maximum size of a record in bytes: 1 MiB to 10 MiB in whole KiB. The
	// default is 1 MiB.
	MaxRecordSize int
	// Tags contains the tags of the stream, at most 50. The map is copied.
	Tags map[string]string
}

const mostTags = 50

// checked returns a copy of the stream, or an error that lists all problems.
func (s Stream) checked(client *kinesis.Client) (Stream, error) {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("provision: "+format, args...))
	}
	if client == nil {
		bad("the Kinesis client is nil; make one with kinesis.NewFromConfig")
	}
	if strings.HasPrefix(s.Name, "arn:") {
		bad("Stream.Name %.200q is an ARN: a stream is made by its name, in the client's account and region", s.Name)
	} else if _, err := streams.Parse(nil, s.Name); err != nil {
		bad("Stream.Name: %w", err)
	}
	if s.Shards < 0 || s.Shards > 100_000 {
		bad("Stream.Shards %d must be 1 to 100,000, or 0 for on-demand mode", s.Shards)
	}
	if len(s.KMSKey) > 2048 || strings.ContainsFunc(s.KMSKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		bad("Stream.KMSKey %.200q is not a key: give an ARN, an ID or an alias such as alias/aws/kinesis", s.KMSKey)
	}
	if s.Retention != 0 && (s.Retention < 24*time.Hour || s.Retention > 8760*time.Hour || s.Retention%time.Hour != 0) {
		bad("Stream.Retention %v must be 24h to 8760h, in whole hours", s.Retention)
	}
	if s.MaxRecordSize != 0 && (s.MaxRecordSize < 1<<20 || s.MaxRecordSize > 10<<20 || s.MaxRecordSize%1024 != 0) {
		bad("Stream.MaxRecordSize %d must be 1 MiB to 10 MiB, in whole KiB", s.MaxRecordSize)
	}
	if len(s.Tags) > mostTags {
		bad("Stream.Tags has %d tags, a stream may have %d", len(s.Tags), mostTags)
	}
	s.Tags = maps.Clone(s.Tags)
	for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
		if err := checkTag(key, s.Tags[key]); err != nil {
			bad("Stream.Tags: %w", err)
		}
	}
	return s, errors.Join(problems...)
}

func checkTag(key, value string) error {
	switch {
	case key == "":
		return errors.New("a tag has no key")
	case len([]rune(key)) > 128:
		return fmt.Errorf("the key %.140q has more than 128 characters", key)
	case len([]rune(value)) > 256:
		return fmt.Errorf("the value of %q has more than 256 characters", key)
	case strings.HasPrefix(strings.ToLower(key), "aws:"):
		return fmt.Errorf("the key %q begins with aws:, which is AWS's own", key)
	}
	return nil
}

// Result describes the stream that [CreateStream] found or created.
type Result struct {
	// ARN is the ARN of the stream.
	ARN string
	// Created reports that the stream did not exist before. This call or a concurrent one created
	// it.
	Created bool
	// Differences lists how an existing stream differs from the wanted one, with a sentence for
	// each difference. Settings that the wanted stream leaves at their defaults are not compared,
	// except for the mode. The stream was not changed.
	Differences []string
}
