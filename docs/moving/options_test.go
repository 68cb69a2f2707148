package moving_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// theirs lists the options and setup functions of the other clients, by page. They come from the
// clients' source.
var theirs = map[string]string{
	"harlow.md": `New WithGroup AllGroup AppName GroupName StreamName WorkerID KinesisClient Repository CheckpointStore LeaseDuration RenewInterval AssignInterval
		MaxLeasesForWorker EnableStealing MaxLeasesToSteal Clock WithStore WithStorage WithCheckpoint WithMaxInterval WithDynamoClient WithClient WithRetryer WithShardIteratorType
		WithTimestamp WithScanInterval WithMaxRecords WithGetRecordsOptions WithAggregation WithLogger WithCounter WithShardClosedHandler ShardContext ShardStopped Scan ScanShard ScanBatch
		WithBatchMaxSize WithBatchFlushInterval ErrSkipCheckpoint MillisBehindLatest ShardID`,
	"kinsumer.md": `New NewWithSession NewWithInterfaces CreateRequiredTables DeleteTables Run Stop Next WithThrottleDelay WithCommitFrequency WithShardCheckFrequency
		WithLeaderActionFrequency WithBufferSize WithStats WithDynamoReadCapacity WithDynamoWriteCapacity WithDynamoWaiterDelay WithLogger WithUseListShardsForKinesisStreamReady`,
	"vmware-go-kcl.md": `ApplicationName StreamName WorkerID RegionName KinesisEndpoint DynamoDBEndpoint KinesisCredentials DynamoDBCredentials WithKinesis WithCheckpointer TableName
		InitialPositionInStream InitialPositionInStreamExtended EnableEnhancedFanOutConsumer EnhancedFanOutConsumerName EnhancedFanOutConsumerARN FailoverTimeMillis LeaseRefreshPeriodMillis
		LeaseRefreshWaitTime MaxRecords IdleTimeBetweenReadsInMillis CallProcessRecordsEvenForEmptyRecordList ParentShardPollIntervalMillis ShardSyncIntervalMillis
		CleanupTerminatedShardsBeforeExpiry TaskBackoffTimeMillis ValidateSequenceNumberBeforeCheckpointing ShutdownGraceMillis MaxLeasesForWorker MaxLeasesToStealAtOneTime
		EnableLeaseStealing LeaseStealingIntervalMillis LeaseStealingClaimTimeoutMillis LeaseSyncingTimeIntervalMillis InitialLeaseTableReadCapacity InitialLeaseTableWriteCapacity
		SkipShardSyncAtWorkerInitializationIfLeasesExist MaxRetryCount MonitoringService Logger`,
	"lifion.md": `streamName consumerGroup compression createStreamIfNeeded shardCount encryption tags dynamoDb tableName provisionedThroughput leaseAcquisitionInterval
		leaseAcquisitionRecoveryInterval limit logger maxEnhancedConsumers enhancedConsumerIdleTimeout noRecordsPollDelay pollDelay initialPositionInStream retryOptions shardIds s3 bucketName
		largeItemThreshold nonS3Keys useS3ForLargeItems shouldDeaggregate shouldParseJson statsInterval supressThroughputWarnings useAutoCheckpoints setCheckpoint useAutoShardAssignment
		useEnhancedFanOut usePausedPolling continuePolling getStats startConsumer stopConsumer putRecord putRecords listShards`,
	"java-kcl.md": `applicationName tableName namespace workerIdentifier kinesisClient dynamoDBClient cloudWatchClient streamTracker initialPositionInStreamExtended
		formerStreamsLeasesDeletionStrategy failoverTimeMillis epsilonMillis leaseAssignmentIntervalMillis maxLeasesForWorker maxLeasesToStealAtOneTime enablePriorityLeaseAssignment
		maxLeaseRenewalThreads leaseAssignmentStrategy consistentReads dynamoDbRequestTimeout billingMode initialLeaseTableReadCapacity initialLeaseTableWriteCapacity
		leaseTableDeletionProtectionEnabled leaseTablePitrEnabled tags leaseTableScanTotalSegments shardSyncIntervalMillis leasesRecoveryAuditorExecutionFrequencyMillis
		leasesRecoveryAuditorInconsistencyConfidenceThreshold ignoreUnexpectedChildShards listShardsBackoffTimeInMillis maxListShardsRetryAttempts maxCacheMissesBeforeReload
		listShardsCacheAllowedAgeInSeconds cacheMissWarningModulus cleanupLeasesUponShardCompletion leaseCleanupIntervalMillis completedLeaseCleanupIntervalMillis
		garbageLeaseCleanupIntervalMillis inMemoryWorkerMetricsCaptureFrequencyMillis workerMetricsReporterFreqInMillis noOfPersistedMetricsPerWorkerMetrics disableWorkerMetrics
		workerMetricList maxThroughputPerHostKBps dampeningPercentage reBalanceThresholdPercentage allowThroughputOvershoot staleWorkerMetricsEntryCleanupDuration
		varianceBalancingFrequency workerMetricsEMAAlpha workerMetricsTableConfig gracefulLeaseHandoffTimeoutMillis isGracefulLeaseHandoffEnabled
		dynamoDbLockBasedLeaderLeaseDurationInMillis dynamoDbLockBasedLeaderHeartbeatPeriodInMillis clientVersionConfig maxInitializationAttempts schedulerInitializationBackoffTimeMillis
		parentShardPollIntervalMillis shardConsumerDispatchPollIntervalMillis skipShardSyncAtWorkerInitializationIfLeasesExist shardPrioritization migrateAllEntitiesToLeaseTable
		tableMigrationCompleteBakeTimeSeconds coordinatorStateTableConfig streamInfoMode streamIdOnboardingState taskBackoffTimeMillis logWarningForTaskAfterMillis
		readTimeoutsToIgnoreBeforeWarning callProcessRecordsEvenForEmptyRecordList taskExecutionListener workerStateChangeListener aggregatorUtil shardRecordProcessorFactory
		retrievalSpecificConfig glueSchemaRegistryDeserializer maxRecords idleTimeBetweenReadsInMillis maxPendingProcessRecordsInput kinesisRequestTimeout
		millisBehindLatestThresholdForReducedTps retryGetRecordsInSeconds maxGetRecordsThreadPool recordsFetcherFactory maxDescribeStreamSummaryRetries
		maxDescribeStreamConsumerRetries registerStreamConsumerRetries retryBackoffMillis consumerArn consumerName metricsLevel metricsEnabledDimensions metricsBufferTimeMillis
		metricsMaxQueueSize publisherFlushBuffer metricsFactory`,
}

// Each option of another client must be in the first column of its page's table, with a non-empty
// second column.
func TestTheTablesHaveEachOption(t *testing.T) {
	for page, names := range theirs {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		_, after, has := strings.Cut(string(text), "\n## Options\n")
		section, _, _ := strings.Cut(after, "\n## ")
		if !has {
			t.Errorf("%s has no table of options", page)
		}
		var told []string
		for line := range strings.Lines(section) {
			cells := strings.Split(strings.Trim(line, "| \n"), " | ")
			if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") {
				continue
			}
			if ours := cells[len(cells)-1]; len(cells) < 2 || strings.TrimSpace(ours) == "" {
				t.Errorf("%s: nothing is said beside %q", page, line)
			}
			for _, code := range codes(cells[0]) {
				told = append(told, strings.FieldsFunc(code, func(r rune) bool { return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9') })...)
			}
		}
		for _, name := range strings.Fields(names) {
			if !slices.Contains(told, name) {
				t.Errorf("%s says nothing of %s", page, name)
			}
		}
	}
}

// codes returns the texts between backticks.
func codes(s string) (all []string) {
	for i, part := range strings.Split(s, "`") {
		if i%2 == 1 {
			all = append(all, part)
		}
	}
	return all
}
