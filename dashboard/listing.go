package dashboard

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/shard"
)

// Kinesis contains the calls that the page makes. A *kinesis.Client implements it. The calls need
// the permissions kinesis:ListShards and kinesis:DescribeStreamSummary.
type Kinesis interface {
	ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (*kinesis.ListShardsOutput, error)
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput, ...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
}

// listing is the description of a stream that Kinesis returned. It does not change.
type listing struct {
	at        time.Time
	err       error
	retention time.Duration
	shards    map[string]listed
}

type listed struct {
	parents        []string
	hashes         shard.HashRange
	opened, closed time.Time // zero if unknown or not closed
}

const (
	mostPages   = 400
	listBound   = 10 * time.Second
	mostStreams = 20 // maximum number of streams listed per application
)

// askStreams updates the listings of the application's streams.
func (o *observer) askStreams(ctx context.Context, w *watched, s *sighting) {
	s.streams = map[string]listing{}
	if o.opts.Kinesis == nil {
		return
	}
	for _, name := range streamsOf(s.view.Leases) {
		l := w.streams[name]
		if l == nil || s.at.Sub(l.at) >= listEvery || l.lacks(name, s) && s.at.Sub(l.at) >= 2*time.Second {
			if l == nil && len(w.streams) >= mostStreams {
				continue
			}
			asked := list(ctx, o.opts.Kinesis, name)
			if asked.err != nil && l != nil { // keep the previous listing
				asked.shards, asked.retention = l.shards, l.retention
			}
			l = &asked
			w.streams[name] = l
		}
		s.streams[name] = *l
	}
}

// lacks reports whether the application has an unfinished lease for a shard that the listing does
// not contain.
func (l *listing) lacks(stream string, s *sighting) bool {
	for i := range s.view.Leases {
		of := &s.view.Leases[i]
		if of.Stream != stream {
			continue
		}
		if _, known := l.shards[of.Shard]; !known && !of.Finished() {
			return true
		}
	}
	return false
}

func list(ctx context.Context, client Kinesis, stream string) listing {
	ctx, cancel := context.WithTimeout(ctx, listBound)
	defer cancel()
	l := listing{at: time.Now(), shards: map[string]listed{}}
	about, err := client.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: aws.String(stream)})
	if err == nil && about.StreamDescriptionSummary != nil {
		l.retention = time.Duration(aws.ToInt32(about.StreamDescriptionSummary.RetentionPeriodHours)) * time.Hour
	}
	in := &kinesis.ListShardsInput{StreamName: aws.String(stream)}
	for range mostPages {
		out, err := client.ListShards(ctx, in)
		if err != nil {
			l.err = err
			return l
		}
		for _, s := range out.Shards {
			l.add(s)
		}
		if aws.ToString(out.NextToken) == "" {
			return l
		}
		in = &kinesis.ListShardsInput{NextToken: out.NextToken}
	}
	return l
}

func (l *listing) add(s types.Shard) {
	var of listed
	for _, p := range []*string{s.ParentShardId, s.AdjacentParentShardId} {
		if p != nil {
			of.parents = append(of.parents, *p)
		}
	}
	if r := s.HashKeyRange; r != nil {
		of.hashes, _ = shard.ParseHashRange(aws.ToString(r.StartingHashKey), aws.ToString(r.EndingHashKey)) // stays unknown after an error
	}
	if r := s.SequenceNumberRange; r != nil {
		of.opened, _, _ = timesOf(aws.ToString(r.StartingSequenceNumber))
		if r.EndingSequenceNumber != nil {
			_, of.closed, _ = timesOf(*r.EndingSequenceNumber)
		}
	}
	l.shards[aws.ToString(s.ShardId)] = of
}
