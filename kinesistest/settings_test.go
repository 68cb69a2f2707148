package kinesistest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

func TestRetentionPeriodErrors(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 1)
	name := aws.String("s")
	change := func(hours int32, longer bool) error {
		if longer {
			_, err := c.IncreaseStreamRetentionPeriod(t.Context(), &kinesis.IncreaseStreamRetentionPeriodInput{StreamName: name, RetentionPeriodHours: &hours})
			return err
		}
		_, err := c.DecreaseStreamRetentionPeriod(t.Context(), &kinesis.DecreaseStreamRetentionPeriodInput{StreamName: name, RetentionPeriodHours: &hours})
		return err
	}
	for _, tc := range []struct {
		hours  int32
		longer bool
		good   bool
	}{
		{23, true, false},
		{24, true, true}, // the current value is accepted and changes nothing
		{24, false, true},
		{8761, true, false},
		{8760, true, true},
		{8760, false, true},
		{8759, true, false},
		{23, false, false},
		{24, false, true},
		{25, false, false},
	} {
		if err := change(tc.hours, tc.longer); tc.good && err != nil {
			t.Errorf("%d h: %v", tc.hours, err)
		} else if !tc.good {
			wantCode(t, err, "InvalidArgumentException")
		}
	}
}

// Terraform sets the retention period of each stream that it creates, even to the value that the
// stream already has.
func TestTheRetentionPeriodAStreamHasChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, kinesistest.Config{InMemory: true, StateDelay: time.Minute})
		s.CreateStream("s", 1)
		name, hours := aws.String("s"), aws.Int32(24)
		if _, err := c.IncreaseStreamRetentionPeriod(t.Context(), &kinesis.IncreaseStreamRetentionPeriodInput{StreamName: name, RetentionPeriodHours: hours}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.DecreaseStreamRetentionPeriod(t.Context(), &kinesis.DecreaseStreamRetentionPeriodInput{StreamName: name, RetentionPeriodHours: hours}); err != nil {
			t.Fatal(err)
		}
		d := ok[*kinesis.DescribeStreamSummaryOutput](t)(c.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: name})).StreamDescriptionSummary
		if d.StreamStatus != types.StreamStatusActive || *d.RetentionPeriodHours != 24 {
			t.Errorf("it is %s with %d h", d.StreamStatus, *d.RetentionPeriodHours)
		}
	})
}

func TestEncryption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, kinesistest.Config{InMemory: true})
		s.CreateStream("s", 1)
		name, key := aws.String("s"), aws.String("alias/aws/kinesis")
		put := func() types.EncryptionType {
			t.Helper()
			return ok[*kinesis.PutRecordOutput](t)(c.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: name, PartitionKey: aws.String("k"), Data: []byte("x")})).EncryptionType
		}
		describe := func() *types.StreamDescriptionSummary {
			t.Helper()
			return ok[*kinesis.DescribeStreamSummaryOutput](t)(c.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: name})).StreamDescriptionSummary
		}
		if put() != "" || describe().EncryptionType != types.EncryptionTypeNone || describe().KeyId != nil {
			t.Error("a new stream is encrypted")
		}
		ok[*kinesis.StartStreamEncryptionOutput](t)(c.StartStreamEncryption(t.Context(), &kinesis.StartStreamEncryptionInput{StreamName: name, EncryptionType: types.EncryptionTypeKms, KeyId: key}))
		if d := describe(); put() != types.EncryptionTypeKms || d.EncryptionType != types.EncryptionTypeKms || *d.KeyId != *key {
			t.Error("the stream is not encrypted")
		}
		ok[*kinesis.StopStreamEncryptionOutput](t)(c.StopStreamEncryption(t.Context(), &kinesis.StopStreamEncryptionInput{StreamName: name, EncryptionType: types.EncryptionTypeKms, KeyId: key}))
		if put() != "" {
			t.Error("the stream is encrypted for ever")
		}
		r := reader{t, t.Context(), c, "s"}
		var kinds []types.EncryptionType
		for _, rec := range r.page(r.iterator(shardID(0), types.ShardIteratorTypeTrimHorizon)).Records {
			kinds = append(kinds, rec.EncryptionType)
		}
		if fmt.Sprint(kinds) != "[ KMS ]" {
			t.Errorf("the records are %v", kinds)
		}
		_, err := c.StartStreamEncryption(t.Context(), &kinesis.StartStreamEncryptionInput{StreamName: name, EncryptionType: types.EncryptionTypeNone, KeyId: key})
		wantCode(t, err, "InvalidArgumentException")
		for i := range 25 {
			time.Sleep(time.Second)
			_, err = c.StartStreamEncryption(t.Context(), &kinesis.StartStreamEncryptionInput{StreamName: name, EncryptionType: types.EncryptionTypeKms, KeyId: key})
			if i < 24 && err != nil {
				t.Fatal(err)
			}
		}
		wantCode(t, err, "LimitExceededException")
	})
}

func TestEnhancedMonitoring(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 1)
	enable := func(m ...types.MetricsName) string {
		t.Helper()
		out := ok[*kinesis.EnableEnhancedMonitoringOutput](t)(c.EnableEnhancedMonitoring(t.Context(), &kinesis.EnableEnhancedMonitoringInput{StreamName: aws.String("s"), ShardLevelMetrics: m}))
		return fmt.Sprint(len(out.CurrentShardLevelMetrics), " to ", len(out.DesiredShardLevelMetrics))
	}
	disable := func(m ...types.MetricsName) string {
		t.Helper()
		out := ok[*kinesis.DisableEnhancedMonitoringOutput](t)(c.DisableEnhancedMonitoring(t.Context(), &kinesis.DisableEnhancedMonitoringInput{StreamName: aws.String("s"), ShardLevelMetrics: m}))
		return fmt.Sprint(len(out.CurrentShardLevelMetrics), " to ", len(out.DesiredShardLevelMetrics))
	}
	got := []string{
		enable(types.MetricsNameIncomingBytes, types.MetricsNameOutgoingBytes),
		enable(types.MetricsNameIncomingBytes),
		enable(types.MetricsNameAll),
		disable(types.MetricsNameIteratorAgeMilliseconds),
		disable(types.MetricsNameAll),
	}
	if fmt.Sprint(got) != "[0 to 2 2 to 2 2 to 7 7 to 6 6 to 0]" {
		t.Errorf("got %v", got)
	}
	enable(types.MetricsNameIncomingBytes)
	d := ok[*kinesis.DescribeStreamOutput](t)(c.DescribeStream(t.Context(), &kinesis.DescribeStreamInput{StreamName: aws.String("s")})).StreamDescription
	if len(d.EnhancedMonitoring) != 1 || fmt.Sprint(d.EnhancedMonitoring[0].ShardLevelMetrics) != "[IncomingBytes]" {
		t.Errorf("described as %v", d.EnhancedMonitoring)
	}
	_, err := c.EnableEnhancedMonitoring(t.Context(), &kinesis.EnableEnhancedMonitoringInput{StreamName: aws.String("s"), ShardLevelMetrics: []types.MetricsName{"Heat"}})
	wantCode(t, err, "ValidationException")
}

func TestStreamModes(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 2)
	arn := aws.String(s.StreamARN("s"))
	mode := func(m types.StreamMode) error {
		_, err := c.UpdateStreamMode(t.Context(), &kinesis.UpdateStreamModeInput{StreamARN: arn, StreamModeDetails: &types.StreamModeDetails{StreamMode: m}})
		return err
	}
	describe := func() *types.StreamDescriptionSummary {
		t.Helper()
		return ok[*kinesis.DescribeStreamSummaryOutput](t)(c.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamARN: arn})).StreamDescriptionSummary
	}
	spread := func(how types.RecordDistributionStrategy) error {
		_, err := c.UpdateStreamRecordDistributionStrategy(t.Context(), &kinesis.UpdateStreamRecordDistributionStrategyInput{StreamARN: arn, RecordDistributionStrategy: how})
		return err
	}
	wantCode(t, spread(types.RecordDistributionStrategyAuto), "InvalidArgumentException")
	if d := describe(); d.StreamModeDetails.StreamMode != types.StreamModeProvisioned || d.RecordDistributionStrategy != "" {
		t.Errorf("got %+v", d)
	}
	if err := mode(types.StreamModeOnDemand); err != nil {
		t.Fatal(err)
	}
	if d := describe(); d.StreamModeDetails.StreamMode != types.StreamModeOnDemand || *d.OpenShardCount != 2 || d.RecordDistributionStrategy != types.RecordDistributionStrategyUserPartitionKey {
		t.Errorf("got %+v", d)
	}

	if err := spread(types.RecordDistributionStrategyAuto); err != nil {
		t.Fatal(err)
	}
	shards := map[string]int{}
	for _, key := range []*string{nil, aws.String("same"), aws.String("same"), nil} {
		out := ok[*kinesis.PutRecordOutput](t)(c.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamARN: arn, PartitionKey: key, Data: []byte("x")}))
		shards[*out.ShardId]++
	}
	if shards[shardID(0)] != 2 || shards[shardID(1)] != 2 {
		t.Errorf("spread as %v", shards)
	}
	r := reader{t, t.Context(), c, "s"}
	keys := 0
	for i := range 2 {
		for _, rec := range r.page(r.iterator(shardID(i), types.ShardIteratorTypeTrimHorizon)).Records {
			if rec.PartitionKey != nil {
				keys++
			}
		}
	}
	if keys != 2 {
		t.Errorf("%d records have a key", keys)
	}
	if err := mode(types.StreamModeProvisioned); err != nil {
		t.Fatal(err)
	}
	_, err := c.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamARN: arn, Data: []byte("x")})
	wantCode(t, err, "ValidationException")
}

func TestAccountSettingsAndWarmThroughput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true})
		type status = types.MinimumThroughputBillingCommitmentOutputStatus
		set := func(to types.MinimumThroughputBillingCommitmentInputStatus) status {
			t.Helper()
			return ok[*kinesis.UpdateAccountSettingsOutput](t)(c.UpdateAccountSettings(t.Context(), &kinesis.UpdateAccountSettingsInput{
				MinimumThroughputBillingCommitment: &types.MinimumThroughputBillingCommitmentInput{Status: to},
			})).MinimumThroughputBillingCommitment.Status
		}
		get := func() status {
			t.Helper()
			return ok[*kinesis.DescribeAccountSettingsOutput](t)(c.DescribeAccountSettings(t.Context(), &kinesis.DescribeAccountSettingsInput{})).MinimumThroughputBillingCommitment.Status
		}
		ok[*kinesis.CreateStreamOutput](t)(c.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: aws.String("s"), StreamModeDetails: &types.StreamModeDetails{StreamMode: types.StreamModeOnDemand}}))
		warm := func() error {
			_, err := c.UpdateStreamWarmThroughput(t.Context(), &kinesis.UpdateStreamWarmThroughputInput{StreamARN: aws.String(s.StreamARN("s")), WarmThroughputMiBps: aws.Int32(10)})
			return err
		}
		wantCode(t, warm(), "ValidationException")
		got := []status{get(), set("ENABLED"), get(), set("DISABLED"), get()}
		if err := warm(); err == nil {
			t.Error("warm after the commitment was given up")
		}
		got = append(got, set("ENABLED"))
		if err := warm(); err != nil {
			t.Error(err)
		}
		time.Sleep(25 * time.Hour)
		got = append(got, get(), set("DISABLED"), get())
		want := "[DISABLED ENABLED ENABLED ENABLED_UNTIL_EARLIEST_ALLOWED_END ENABLED_UNTIL_EARLIEST_ALLOWED_END ENABLED ENABLED DISABLED DISABLED]"
		if fmt.Sprint(got) != want {
			t.Errorf("got  %v\nwant %s", got, want)
		}
		d := ok[*kinesis.DescribeStreamSummaryOutput](t)(c.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: aws.String("s")})).StreamDescriptionSummary
		if d.WarmThroughput == nil || *d.WarmThroughput.CurrentMiBps != 10 {
			t.Errorf("described as %+v", d.WarmThroughput)
		}
	})
}

func TestTags(t *testing.T) {
	s, c := start(t)
	ok[*kinesis.CreateStreamOutput](t)(c.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: aws.String("s"), ShardCount: aws.Int32(1), Tags: map[string]string{"born": "with"}}))
	name, arn := aws.String("s"), aws.String(s.StreamARN("s"))
	ok[*kinesis.AddTagsToStreamOutput](t)(c.AddTagsToStream(t.Context(), &kinesis.AddTagsToStreamInput{StreamName: name, Tags: map[string]string{"a": "1", "b": "", "c": "3"}}))
	ok[*kinesis.RemoveTagsFromStreamOutput](t)(c.RemoveTagsFromStream(t.Context(), &kinesis.RemoveTagsFromStreamInput{StreamName: name, TagKeys: []string{"c", "never"}}))
	ok[*kinesis.TagResourceOutput](t)(c.TagResource(t.Context(), &kinesis.TagResourceInput{ResourceARN: arn, Tags: map[string]string{"a": "2", "d": "4"}}))
	show := func(tags []types.Tag) string {
		var s []string
		for _, tag := range tags {
			s = append(s, *tag.Key+"="+aws.ToString(tag.Value))
		}
		return fmt.Sprint(s)
	}
	ofStream := ok[*kinesis.ListTagsForStreamOutput](t)(c.ListTagsForStream(t.Context(), &kinesis.ListTagsForStreamInput{StreamName: name}))
	ofResource := ok[*kinesis.ListTagsForResourceOutput](t)(c.ListTagsForResource(t.Context(), &kinesis.ListTagsForResourceInput{ResourceARN: arn}))
	if want := "[a=2 b= born=with d=4]"; show(ofStream.Tags) != want || show(ofResource.Tags) != want || *ofStream.HasMoreTags {
		t.Errorf("got %s and %s", show(ofStream.Tags), show(ofResource.Tags))
	}
	paged := ok[*kinesis.ListTagsForStreamOutput](t)(c.ListTagsForStream(t.Context(), &kinesis.ListTagsForStreamInput{StreamName: name, Limit: aws.Int32(2), ExclusiveStartTagKey: aws.String("a")}))
	if show(paged.Tags) != "[b= born=with]" || !*paged.HasMoreTags {
		t.Errorf("got %s, more %v", show(paged.Tags), *paged.HasMoreTags)
	}
	ok[*kinesis.UntagResourceOutput](t)(c.UntagResource(t.Context(), &kinesis.UntagResourceInput{ResourceARN: arn, TagKeys: []string{"a", "b", "d"}}))

	many := map[string]string{}
	for i := range 50 {
		many[fmt.Sprint(i)] = "x"
	}
	_, err := c.TagResource(t.Context(), &kinesis.TagResourceInput{ResourceARN: arn, Tags: many})
	wantCode(t, err, "InvalidArgumentException")
	_, err = c.TagResource(t.Context(), &kinesis.TagResourceInput{ResourceARN: aws.String(s.StreamARN("none")), Tags: map[string]string{"a": "1"}})
	wantCode(t, err, "ResourceNotFoundException")
	_, err = c.TagResource(t.Context(), &kinesis.TagResourceInput{ResourceARN: aws.String("arn:aws:s3:::bucket"), Tags: map[string]string{"a": "1"}})
	wantCode(t, err, "ValidationException")

	// A consumer has its own tags.
	con := ok[*kinesis.RegisterStreamConsumerOutput](t)(c.RegisterStreamConsumer(t.Context(), &kinesis.RegisterStreamConsumerInput{StreamARN: arn, ConsumerName: aws.String("c"), Tags: map[string]string{"x": "1"}})).Consumer
	ok[*kinesis.TagResourceOutput](t)(c.TagResource(t.Context(), &kinesis.TagResourceInput{ResourceARN: con.ConsumerARN, Tags: map[string]string{"y": "2"}}))
	if got := show(ok[*kinesis.ListTagsForResourceOutput](t)(c.ListTagsForResource(t.Context(), &kinesis.ListTagsForResourceInput{ResourceARN: con.ConsumerARN})).Tags); got != "[x=1 y=2]" {
		t.Errorf("the consumer has %s", got)
	}
}

func TestResourcePolicies(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 1)
	arn := aws.String(s.StreamARN("s"))
	get := func() string {
		t.Helper()
		return *ok[*kinesis.GetResourcePolicyOutput](t)(c.GetResourcePolicy(t.Context(), &kinesis.GetResourcePolicyInput{ResourceARN: arn})).Policy
	}
	if got := get(); got != "{}" {
		t.Errorf("got %s", got)
	}
	_, err := c.PutResourcePolicy(t.Context(), &kinesis.PutResourcePolicyInput{ResourceARN: arn, Policy: aws.String("allow everything")})
	wantCode(t, err, "InvalidArgumentException")
	ok[*kinesis.PutResourcePolicyOutput](t)(c.PutResourcePolicy(t.Context(), &kinesis.PutResourcePolicyInput{ResourceARN: arn, Policy: aws.String(`{"Version":"2012-10-17"}`)}))
	if got := get(); got != `{"Version":"2012-10-17"}` {
		t.Errorf("got %s", got)
	}
	ok[*kinesis.DeleteResourcePolicyOutput](t)(c.DeleteResourcePolicy(t.Context(), &kinesis.DeleteResourcePolicyInput{ResourceARN: arn}))
	_, err = c.DeleteResourcePolicy(t.Context(), &kinesis.DeleteResourcePolicyInput{ResourceARN: arn})
	wantCode(t, err, "ResourceNotFoundException")
}

func TestConsumers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, kinesistest.Config{InMemory: true, NoLimits: true, StateDelay: time.Second})
		s.CreateStream("s", 1)
		s.CreateStream("other", 1)
		arn := aws.String(s.StreamARN("s"))
		register := func(name string) (*types.Consumer, error) {
			out, err := c.RegisterStreamConsumer(t.Context(), &kinesis.RegisterStreamConsumerInput{StreamARN: arn, ConsumerName: &name})
			if err != nil {
				return nil, err
			}
			return out.Consumer, nil
		}
		first := ok[*types.Consumer](t)(register("a"))
		if want := fmt.Sprintf("%s/consumer/a:%d", *arn, time.Now().Unix()); *first.ConsumerARN != want || first.ConsumerStatus != types.ConsumerStatusCreating {
			t.Errorf("got %+v", first)
		}
		_, err := register("a")
		wantCode(t, err, "ResourceInUseException")
		_, err = register("a/b")
		wantCode(t, err, "ValidationException")
		for i := range 4 {
			ok[*types.Consumer](t)(register(fmt.Sprint("b", i)))
		}
		_, err = register("c")
		wantCode(t, err, "LimitExceededException")
		for i := range 15 {
			time.Sleep(time.Second)
			ok[*types.Consumer](t)(register(fmt.Sprint("c", i)))
		}
		time.Sleep(time.Second)
		_, err = register("d")
		wantCode(t, err, "LimitExceededException") // this is the 21st

		for what, tc := range map[string]struct {
			in   kinesis.DescribeStreamConsumerInput
			code string
		}{
			"by ARN":             {in: kinesis.DescribeStreamConsumerInput{ConsumerARN: first.ConsumerARN}},
			"by name":            {in: kinesis.DescribeStreamConsumerInput{StreamARN: arn, ConsumerName: aws.String("a")}},
			"by all":             {in: kinesis.DescribeStreamConsumerInput{StreamARN: arn, ConsumerName: aws.String("a"), ConsumerARN: first.ConsumerARN}},
			"by names at odds":   {kinesis.DescribeStreamConsumerInput{ConsumerName: aws.String("b"), ConsumerARN: first.ConsumerARN}, "InvalidArgumentException"},
			"by streams at odds": {kinesis.DescribeStreamConsumerInput{StreamARN: aws.String(s.StreamARN("other")), ConsumerARN: first.ConsumerARN}, "InvalidArgumentException"},
			"by stream":          {kinesis.DescribeStreamConsumerInput{StreamARN: arn}, "InvalidArgumentException"},
			"by nothing":         {kinesis.DescribeStreamConsumerInput{}, "InvalidArgumentException"},
			"of another stream":  {kinesis.DescribeStreamConsumerInput{StreamARN: aws.String(s.StreamARN("other")), ConsumerName: aws.String("a")}, "ResourceNotFoundException"},
		} {
			out, err := c.DescribeStreamConsumer(t.Context(), &tc.in)
			if tc.code != "" {
				t.Log(what)
				wantCode(t, err, tc.code)
			} else if err != nil || *out.ConsumerDescription.ConsumerName != "a" || *out.ConsumerDescription.StreamARN != *arn || out.ConsumerDescription.ConsumerStatus != types.ConsumerStatusActive {
				t.Errorf("%s: %+v, %v", what, out, err)
			}
		}

		n := 0
		pages := kinesis.NewListStreamConsumersPaginator(c, &kinesis.ListStreamConsumersInput{StreamARN: arn, MaxResults: aws.Int32(7)})
		for pages.HasMorePages() {
			n += len(ok[*kinesis.ListStreamConsumersOutput](t)(pages.NextPage(t.Context())).Consumers)
		}
		if n != 20 {
			t.Errorf("listed %d consumers", n)
		}
		token := ok[*kinesis.ListStreamConsumersOutput](t)(c.ListStreamConsumers(t.Context(), &kinesis.ListStreamConsumersInput{StreamARN: arn, MaxResults: aws.Int32(7)})).NextToken
		time.Sleep(301 * time.Second)
		_, err = c.ListStreamConsumers(t.Context(), &kinesis.ListStreamConsumersInput{StreamARN: arn, NextToken: token})
		wantCode(t, err, "ExpiredNextTokenException")

		// A consumer that is deregistered and registered again gets another ARN.
		ok[*kinesis.DeregisterStreamConsumerOutput](t)(c.DeregisterStreamConsumer(t.Context(), &kinesis.DeregisterStreamConsumerInput{ConsumerARN: first.ConsumerARN}))
		gone := ok[*kinesis.DescribeStreamConsumerOutput](t)(c.DescribeStreamConsumer(t.Context(), &kinesis.DescribeStreamConsumerInput{ConsumerARN: first.ConsumerARN}))
		if gone.ConsumerDescription.ConsumerStatus != types.ConsumerStatusDeleting {
			t.Errorf("got %s", gone.ConsumerDescription.ConsumerStatus)
		}
		time.Sleep(time.Second)
		again := ok[*types.Consumer](t)(register("a"))
		if *again.ConsumerARN == *first.ConsumerARN {
			t.Error("the ARN came back")
		}
		_, err = c.DescribeStreamConsumer(t.Context(), &kinesis.DescribeStreamConsumerInput{ConsumerARN: first.ConsumerARN})
		wantCode(t, err, "ResourceNotFoundException")
	})
}
