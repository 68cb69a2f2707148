package multilang

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/weir-go/weir"
)

// fate says what weir does with a property.
type fate string

const (
	obeyed fate = "obeyed" // it has the meaning that it has for the MultiLangDaemon
	mapped fate = "mapped" // it sets something of weir with a similar meaning
	unused fate = "unused" // weir warns, unless the value is the usual one
)

// property is a property of the MultiLangDaemon.
type property struct {
	key   string
	also  []string // further spellings
	fate  fate
	text  string // the effect; for an unused property, the reason and the replacement
	usual string // of an unused property: a value that needs no warning
	apply func(s *settings, e entry) error
}

const longest = 24 * time.Hour

// properties is the table of all properties. docs/moving/multilang.md contains it, too.
var properties = []property{
	{key: "executableName", fate: obeyed, text: "the command of the program, divided at spaces, without a shell",
		apply: func(s *settings, e entry) error { s.executable = e.value; return nil }},
	{key: "applicationName", fate: obeyed, text: "the application in the store, and the name of the fan-out consumer",
		apply: func(s *settings, e entry) error { s.options.App = e.value; return nil }},
	{key: "streamName", fate: obeyed, text: "the stream",
		apply: func(s *settings, e entry) error {
			if s.stream == "" {
				s.stream = e.value
			}
			return nil
		}},
	{key: "streamArn", fate: obeyed, text: "only the name in the ARN is used, and it overrides `streamName`; region and account are ignored, as by the daemon",
		apply: func(s *settings, e entry) error {
			_, name, ok := strings.Cut(e.value, ":stream/")
			if !ok {
				return errors.New("it is not the ARN of a stream")
			}
			s.stream = name
			return nil
		}},
	{key: "awsCredentialsProvider", also: []string{"AwsCredentialsProvider", "AWSCredentialsProvider"}, fate: mapped,
		text:  "the default chain of the AWS SDK; `ProfileCredentialsProvider` sets the profile, and the providers for roles set `--role` and its flags. Other classes are an error",
		apply: (*settings).providers},
	{key: "awsCredentialsProviderDynamoDB", also: []string{"AWSCredentialsProviderDynamoDB"}, fate: unused,
		text: "the store has the normal AWS credentials"},
	{key: "awsCredentialsProviderCloudWatch", also: []string{"AWSCredentialsProviderCloudWatch"}, fate: unused,
		text: "weir sends no metrics to CloudWatch"},
	{key: "regionName", fate: obeyed, text: "`--region`", apply: flag("region")},
	{key: "kinesisEndpoint", also: []string{"kinesisClient.endpointOverride"}, fate: obeyed, text: "`--endpoint`", apply: flag("endpoint")},
	{key: "dynamoDBEndpoint", also: []string{"dynamoDbClient.endpointOverride"}, fate: obeyed, text: "`--dynamodb-endpoint`", apply: flag("dynamodb-endpoint")},
	{key: "kinesisClient.region", fate: obeyed, text: "`--region`", apply: flag("region")},
	{key: "dynamoDbClient.region", fate: unused, text: "the store has the region of `regionName`"},
	{key: "cloudWatchClient.region", also: []string{"cloudWatchClient.endpointOverride"}, fate: unused, text: "weir sends no metrics to CloudWatch"},
	{key: "workerId", also: []string{"workerIdentifier"}, fate: mapped, text: "`Options.Worker`, a name for logs. It need not be unique or fixed, because a new process of weir takes its leases after `failoverTimeMillis` in any case",
		apply: func(s *settings, e entry) error { s.options.Worker = e.value; return nil }},
	{key: "tableName", fate: unused, text: "name the table in `--store dynamodb:TABLE`"},
	{key: "initialPositionInStream", fate: obeyed, text: "`Options.Start`: `LATEST`, the default, or `TRIM_HORIZON`", apply: initialPosition},
	{key: "initialPositionInStreamExtended", fate: obeyed, text: "`Options.Start`: a time in seconds since 1970. It overrides `initialPositionInStream`",
		apply: func(s *settings, e entry) error {
			n, err := number(e)
			s.options.Start, s.extended = weir.At(time.Unix(n, 0)), true
			return err
		}},
	{key: "retrievalMode", fate: obeyed, text: "`FANOUT` registers a consumer, `POLLING` polls. `DEFAULT` is `FANOUT`, unless a property for polling is set. weir polls while fan-out is not available", apply: retrieval},
	{key: "maxRecords", fate: mapped, text: "`Batching.MaxRecords`; more than 10,000 is an error", apply: func(s *settings, e entry) error {
		n, err := number(e)
		s.polls = s.polls || n != 0
		if err != nil || n == 0 {
			return err
		}
		if n < 1 || n > 10_000 {
			return errors.New("it must be 1 to 10000")
		}
		s.options.Batching.MaxRecords = int(n)
		return nil
	}},
	{key: "idleTimeBetweenReadsInMillis", fate: mapped, text: "`Polling.IdleInterval`, at most a minute", apply: func(s *settings, e entry) (err error) {
		s.polls = true
		s.options.Polling.IdleInterval, err = s.span(e, 200*time.Millisecond, time.Minute)
		return err
	}},
	{key: "millisBehindLatestThresholdForReducedTps", fate: unused, text: "weir reads idle shards less often by itself", usual: "0"},
	{key: "retryGetRecordsInSeconds", fate: unused, text: "weir repeats a read that gets no answer by itself"},
	{key: "maxGetRecordsThreadPool", fate: unused, text: "weir has no threads for reading"},
	{key: "fanoutConfig.consumerArn", fate: obeyed, text: "`FanOut.ARNs`", apply: func(s *settings, e entry) error { s.arn = e.value; return nil }},
	{key: "fanoutConfig.consumerName", fate: obeyed, text: "`FanOut.Name`", apply: func(s *settings, e entry) error { s.consumer = e.value; return nil }},
	{key: "fanoutConfig.maxDescribeStreamSummaryRetries", also: []string{"fanoutConfig.maxDescribeStreamConsumerRetries", "fanoutConfig.registerStreamConsumerRetries", "fanoutConfig.retryBackoffMillis"},
		fate: unused, text: "weir retries without end, and polls meanwhile"},
	{key: "failoverTimeMillis", fate: mapped, text: "`Timing.FailoverAfter`, at least 3 s. Without it, weir needs 5 s", apply: func(s *settings, e entry) (err error) {
		s.options.Timing.FailoverAfter, err = s.span(e, 3*time.Second, time.Hour)
		return err
	}},
	{key: "leaseAssignmentIntervalMillis", fate: unused, text: "the leader plans twice per heartbeat, and only when something has changed"},
	{key: "shardSyncIntervalMillis", fate: mapped, text: "`Timing.ListInterval`, 1 s to 1 h", apply: func(s *settings, e entry) (err error) {
		s.options.Timing.ListInterval, err = s.span(e, time.Second, time.Hour)
		return err
	}},
	{key: "parentShardPollIntervalMillis", fate: unused, text: "children begin as soon as their parents have ended"},
	{key: "taskBackoffTimeMillis", fate: mapped, text: "`Retry.MinBackoff`: the first pause before a program that failed is started again", apply: func(s *settings, e entry) (err error) {
		s.options.Retry.MinBackoff, err = s.span(e, time.Millisecond, time.Hour)
		return err
	}},
	{key: "cleanupLeasesUponShardCompletion", fate: unused, text: "weir removes the lease of an ended shard when the shard has left the stream", usual: "true"},
	{key: "maxLeasesForWorker", fate: obeyed, text: "`Options.MaxLeases`", apply: func(s *settings, e entry) error {
		n, err := number(e)
		if err == nil && (n < 0 || n > 1<<31-1) {
			err = errors.New("it must be 1 or more")
		}
		if n < 1<<31-1 { // the KCL's default means no limit
			s.options.MaxLeases = int(max(n, 0))
		}
		return err
	}},
	{key: "maxLeasesToStealAtOneTime", also: []string{"enablePriorityLeaseAssignment"}, fate: unused, text: "the leader moves all leases that it has to move at once"},
	{key: "initialLeaseTableReadCapacity", also: []string{"initialLeaseTableWriteCapacity", "leaseTableDeletionProtectionEnabled", "leaseTablePitrEnabled"}, fate: unused,
		text: "set up the table with `weir store create`, or with your own tools"},
	{key: "leaseTableScanTotalSegments", also: []string{"maxLeaseRenewalThreads"}, fate: unused, text: "weir scans no table, and one heartbeat renews all leases"},
	{key: "listShardsBackoffTimeInMillis", also: []string{"maxListShardsRetryAttempts", "schedulerInitializationBackoffTimeMillis"}, fate: unused, text: "weir retries without end, with its own pauses"},
	{key: "ignoreUnexpectedChildShards", fate: unused, text: "weir keeps the order of shards in any case", usual: "false"},
	{key: "logWarningForTaskAfterMillis", fate: unused, text: "weir reports a shard that makes no progress for 2 minutes"},
	{key: "skipShardSyncAtWorkerInitializationIfLeasesExist", fate: unused, text: "only the leader lists shards"},
	{key: "callProcessRecordsEvenForEmptyRecordList", fate: obeyed, text: "the program gets an empty batch after each pause of `idleTimeBetweenReadsInMillis` without records",
		apply: func(s *settings, e entry) error { s.empty = truth(e); return nil }},
	{key: "metricsLevel", fate: unused, text: "weir sends no metrics to CloudWatch; `weir exporter` serves metrics to Prometheus", usual: "NONE"},
	{key: "metricsEnabledDimensions", also: []string{"metricsBufferTimeMillis", "metricsMaxQueueSize"}, fate: unused, text: "weir sends no metrics to CloudWatch; `weir exporter` serves metrics to Prometheus"},
	{key: "shutdownGraceMillis", fate: obeyed, text: "`Timing.StopTimeout`. Without it, programs have 5 s, not 0", apply: func(s *settings, e entry) error {
		n, err := s.span(e, 0, longest)
		s.grace = &n
		return err
	}},
	{key: "timeoutInSeconds", fate: obeyed, text: "the longest wait for a message of the program. Then weir kills this one program; 0 is no limit", apply: func(s *settings, e entry) error {
		n, err := strconv.Atoi(e.value)
		if err != nil || n <= 0 || n > 86_400 {
			s.warn(e, "= %.40s is no limit: use 1 to 86400", e.value)
			return nil
		}
		s.timeout = time.Duration(n) * time.Second
		return nil
	}},
	{key: "maxActiveThreads", fate: unused, text: "weir starts a process for each shard, and has no pool of threads", usual: "0"},
	{key: "processingLanguage", fate: obeyed, text: "no effect, as in the daemon", apply: nothing},
	{key: "validateSequenceNumberBeforeCheckpointing", fate: obeyed, text: "no effect, as in the daemon", apply: nothing},
	{key: "clientVersionConfig", fate: unused, text: "it is about tables of older KCLs; `weir migrate kcl` moves checkpoints", usual: "CLIENT_VERSION_CONFIG_3X"},
	{key: "migrateAllEntitiesToLeaseTable", also: []string{"tableMigrationCompleteBakeTimeSeconds"}, fate: unused, text: "it is about tables of older KCLs; `weir migrate kcl` moves checkpoints"},
	{key: "isGracefulLeaseHandoffEnabled", fate: unused, text: "weir always hands leases off in order", usual: "true"},
	{key: "gracefulLeaseHandoffTimeoutMillis", fate: obeyed, text: "`Timing.HandoffTimeout`, at least a second", apply: func(s *settings, e entry) (err error) {
		s.options.Timing.HandoffTimeout, err = s.span(e, time.Second, longest)
		return err
	}},
	{key: "coordinatorStateTableName", also: append([]string{"workerMetricsTableName"}, tableKeys()...), fate: unused, text: "weir has one table, which `--store` names"},
	{key: "disableWorkerMetrics", also: []string{"maxThroughputPerHostKBps", "allowThroughputOvershoot", "workerMetricsEMAAlpha", "dampeningPercentage", "reBalanceThresholdPercentage",
		"varianceBalancingFrequency", "inMemoryWorkerMetricsCaptureFrequencyMillis", "workerMetricsReporterFreqInMillis", "noOfPersistedMetricsPerWorkerMetrics", "staleWorkerMetricsEntryCleanupDuration"},
		fate: unused, text: "weir balances by the measured load of shards"},
	{key: "userAgent", also: []string{"skipShardSyncAtStartupIfLeasesExist", "timestampAtInitialPositionInStream", "maxPendingProcessRecordsInput", "maxCacheByteSize", "maxRecordsCount",
		"idleMillisBetweenCalls", "dataFetchingStrategy", "shardPrioritizationStrategy", "kinesisClientConfig", "DynamoDBEndpoint", "MetricsLevel"}, fate: unused,
		text: "it is a property of the KCL 1.x without effect since 2.x"},
}

// tableKeys returns the properties about the further tables of the KCL 3.
func tableKeys() (keys []string) {
	for _, prefix := range []string{"coordinatorState", "workerMetrics"} {
		for _, suffix := range []string{"BillingMode", "ReadCapacity", "WriteCapacity", "PointInTimeRecoveryEnabled", "DeletionProtectionEnabled", "Tags"} {
			keys = append(keys, prefix+suffix)
		}
	}
	return keys
}

func nothing(*settings, entry) error { return nil }

// flag returns a function that sets a flag, unless it is on the command line.
func flag(name string) func(*settings, entry) error {
	return func(s *settings, e entry) error { s.flags[name] = e.value; return nil }
}

func initialPosition(s *settings, e entry) error {
	at := weir.Latest
	switch strings.ToUpper(e.value) {
	case latest:
	case trimHorizon:
		at = weir.Oldest
	case atTimestamp:
		return errors.New("set initialPositionInStreamExtended to the time in seconds instead")
	default:
		return errors.New("use LATEST or TRIM_HORIZON")
	}
	if !s.extended {
		s.options.Start = at
	}
	return nil
}

func retrieval(s *settings, e entry) error {
	s.retrieval = strings.ToUpper(e.value)
	if !slices.Contains([]string{"DEFAULT", "FANOUT", "POLLING"}, s.retrieval) {
		return errors.New("use DEFAULT, FANOUT or POLLING")
	}
	return nil
}

// find returns the property with a key. Keys are case-sensitive, except that the first letter may
// have either case, as in the KCL 1.x.
func find(key string) (property, bool) {
	for _, p := range properties {
		if p.key == key || slices.Contains(p.also, key) {
			return p, true
		}
	}
	for _, p := range properties {
		for _, name := range append([]string{p.key}, p.also...) {
			if name[1:] == key[min(1, len(key)):] && strings.EqualFold(name[:1], key[:1]) {
				return p, true
			}
		}
	}
	return property{}, false
}

// didYouMean names the known key that differs from key only in case or in signs, or that shares
// the longest beginning with it.
func didYouMean(key string) string {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, s)
	}
	best, most := "", 4
	for _, p := range properties {
		a, b := plain(p.key), plain(key)
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		if a == b {
			n = 1 << 20
		}
		if n > most {
			best, most = p.key, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// Table returns the table of all properties for the documentation.
func Table() string {
	var b strings.Builder
	b.WriteString("| Property | weir | |\n| --- | --- | --- |\n")
	for _, p := range properties {
		names := "`" + strings.Join(append([]string{p.key}, p.also...), "`, `") + "`"
		fmt.Fprintf(&b, "| %s | %s | %s |\n", names, p.fate, p.text)
	}
	return b.String()
}
