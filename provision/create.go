package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/streams"
)

// readyWithin is how long CreateStream waits if its context has no deadline. The service usually
// takes from seconds to a minute.
const readyWithin = 5 * time.Minute

// The maximum numbers of consecutive failures of a call. mostRefusals applies if the service asks
// to wait, or if another process is changing the stream. mostFailures applies to other errors that
// may be temporary.
const (
	mostRefusals = 8
	mostFailures = 2
)

// CreateStream creates a stream unless one with its name exists, and waits until the stream can be
// used. Any number of processes may call it at the same time and repeatedly. The first call creates
// the stream. Other calls that find the stream while it is being created help to complete it.
// CreateStream does not change an existing stream: Result.Differences lists how it differs. If the
// stream is being deleted, CreateStream waits for that and creates the stream again. If ctx has no
// deadline, CreateStream waits for at most five minutes.
//
// CreateStream sets encryption and a longer retention after it has created the stream. If a process
// dies in between, the stream lacks these settings. The next call finds such a stream and reports
// the differences. Write no records before CreateStream has returned.
//
// CreateStream needs the permissions kinesis:DescribeStreamSummary and kinesis:CreateStream.
// Depending on the settings it also needs kinesis:AddTagsToStream and kinesis:ListTagsForStream,
// kinesis:StartStreamEncryption and kinesis:IncreaseStreamRetentionPeriod.
func CreateStream(ctx context.Context, client *kinesis.Client, want Stream) (Result, error) {
	want, err := want.checked(client)
	if err != nil {
		return Result{}, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("not within %v", readyWithin))
		defer cancel()
	}
	m := &making{client: client, want: want, backoff: retry.Backoff{Low: 500 * time.Millisecond, High: 5 * time.Second}}
	has, err := m.run(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("provision: stream %s: %w", want.Name, err)
	}
	r := Result{ARN: has.arn, Created: m.fresh}
	if !m.made {
		if r.Differences, err = m.differences(ctx, has); err != nil {
			return r, fmt.Errorf("provision: stream %s: %w", want.Name, err)
		}
	}
	return r, nil
}

// making is the state of one call of CreateStream.
type making struct {
	client  *kinesis.Client
	want    Stream
	fresh   bool // the stream did not exist when this call began
	made    bool // this call created the stream
	backoff retry.Backoff
}

// run repeatedly checks the stream and makes the next change, until the stream can be used.
func (m *making) run(ctx context.Context) (state, error) {
	looks := retry.Backoff{Low: 200 * time.Millisecond, High: 2 * time.Second}
	status := "not there yet"
	for {
		has, err := m.describe(ctx)
		switch {
		case streams.Code(err) == "ResourceNotFoundException":
			if err = m.create(ctx); err == nil {
				m.fresh, m.backoff.Failures = true, 0
			}
		case err != nil:
		case has.status == string(types.StreamStatusCreating):
			m.fresh, status = true, has.status
		case has.status == string(types.StreamStatusDeleting):
			status = has.status
		case !m.fresh:
			return has, nil
		case has.status == string(types.StreamStatusActive):
			do := next(m.want, has)
			if do == nothing {
				return has, nil
			}
			status = "not complete"
			if err = m.step(ctx, do); err == nil {
				m.backoff.Reset()
			}
		}
		wait := looks.Next()
		if err != nil {
			if m.backoff.Failures >= patience(err) {
				return state{}, err
			}
			wait = m.backoff.Next()
		}
		if waited := retry.Wait(ctx, wait); waited != nil {
			if err != nil {
				return state{}, fmt.Errorf("%w (%w)", waited, err)
			}
			return state{}, fmt.Errorf("it is %s: %w", status, waited)
		}
	}
}

// patience returns the number of consecutive failures to tolerate if err is the latest.
func patience(err error) int {
	switch {
	case streams.Throttled(err), errors.Is(err, errRetained):
		return mostRefusals
	case streams.Code(err) == "ResourceInUseException", streams.Code(err) == "ResourceNotFoundException":
		// Another process is changing the stream at the same time. The next check shows the result.
		return mostRefusals
	case streams.Refused(err):
		return 0
	}
	return mostFailures
}

func (m *making) describe(ctx context.Context) (state, error) {
	out, err := call(ctx, "kinesis:DescribeStreamSummary", &kinesis.DescribeStreamSummaryInput{StreamName: &m.want.Name}, m.client.DescribeStreamSummary)
	if err != nil {
		return state{}, err
	}
	d := out.StreamDescriptionSummary
	if d == nil {
		return state{}, errors.New("the service returned no description of it")
	}
	has := state{
		arn: aws.ToString(d.StreamARN), status: string(d.StreamStatus), shards: int(aws.ToInt32(d.OpenShardCount)),
		onDemand:  d.StreamModeDetails != nil && d.StreamModeDetails.StreamMode == types.StreamModeOnDemand,
		encrypted: d.EncryptionType == types.EncryptionTypeKms, key: aws.ToString(d.KeyId),
		retention: time.Duration(aws.ToInt32(d.RetentionPeriodHours)) * time.Hour,
		record:    int(aws.ToInt32(d.MaxRecordSizeInKiB)) << 10,
	}
	if has.record == 0 { // the server does not support the setting
		has.record = 1 << 20
	}
	return has, nil
}

func (m *making) create(ctx context.Context) error {
	in := &kinesis.CreateStreamInput{StreamName: &m.want.Name, Tags: m.want.Tags, StreamModeDetails: &types.StreamModeDetails{StreamMode: types.StreamModeOnDemand}}
	if m.want.Shards > 0 {
		in.StreamModeDetails.StreamMode = types.StreamModeProvisioned
		in.ShardCount = aws.Int32(int32(m.want.Shards))
	}
	if m.want.MaxRecordSize > 0 {
		in.MaxRecordSizeInKiB = aws.Int32(int32(m.want.MaxRecordSize >> 10))
	}
	_, err := call(ctx, "kinesis:CreateStream", in, m.client.CreateStream)
	if streams.Code(err) == "ResourceInUseException" { // another process was faster
		return nil
	}
	m.made = m.made || err == nil
	return err
}

// errRetained means that the retention is no longer shorter than the requested one.
var errRetained = errors.New("the retention was changed meanwhile")

func (m *making) step(ctx context.Context, do step) error {
	var err error
	switch do {
	case encrypt:
		_, err = call(ctx, "kinesis:StartStreamEncryption", &kinesis.StartStreamEncryptionInput{
			StreamName: &m.want.Name, EncryptionType: types.EncryptionTypeKms, KeyId: &m.want.KMSKey,
		}, m.client.StartStreamEncryption)
	case retain:
		_, err = call(ctx, "kinesis:IncreaseStreamRetentionPeriod", &kinesis.IncreaseStreamRetentionPeriodInput{
			StreamName: &m.want.Name, RetentionPeriodHours: aws.Int32(int32(m.want.Retention / time.Hour)),
		}, m.client.IncreaseStreamRetentionPeriod)
		if streams.Code(err) == "InvalidArgumentException" { // the next check shows the result
			err = fmt.Errorf("%w: %w", errRetained, err)
		}
	}
	return err
}

// differences lists the differences from the wanted stream. It requests the tags only if the wanted
// stream has tags.
func (m *making) differences(ctx context.Context, has state) ([]string, error) {
	if len(m.want.Tags) == 0 {
		return differences(m.want, has, nil), nil
	}
	m.backoff.Reset()
	for {
		tags, err := m.tags(ctx)
		if err == nil {
			return differences(m.want, has, tags), nil
		}
		if m.backoff.Failures >= patience(err) {
			return nil, err
		}
		if waited := retry.Wait(ctx, m.backoff.Next()); waited != nil {
			return nil, fmt.Errorf("%w (%w)", waited, err)
		}
	}
}

func (m *making) tags(ctx context.Context) (map[string]string, error) {
	tags := map[string]string{}
	in := &kinesis.ListTagsForStreamInput{StreamName: &m.want.Name}
	for range mostTags { // a page has at least one tag
		out, err := call(ctx, "kinesis:ListTagsForStream", in, m.client.ListTagsForStream)
		if err != nil {
			return nil, err
		}
		for _, tag := range out.Tags {
			tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
			in.ExclusiveStartTagKey = tag.Key
		}
		if !aws.ToBool(out.HasMoreTags) || len(out.Tags) == 0 {
			break
		}
	}
	return tags, nil
}

// call makes one call with a time limit. Its error contains the name of the action.
func call[In, Out any](ctx context.Context, action string, in *In, f func(context.Context, *In, ...func(*kinesis.Options)) (*Out, error)) (*Out, error) {
	ctx, cancel := context.WithTimeout(ctx, streams.CallTimeout)
	defer cancel()
	out, err := f(ctx, in, streams.Once)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", action, err)
	}
	return out, nil
}
