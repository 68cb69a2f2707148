import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.cloudwatch.CloudWatchAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.kinesis.KinesisAsyncClient;
import software.amazon.kinesis.common.ConfigsBuilder;
import software.amazon.kinesis.common.InitialPositionInStream;
import software.amazon.kinesis.common.InitialPositionInStreamExtended;
import software.amazon.kinesis.common.KinesisClientUtil;
import software.amazon.kinesis.coordinator.Scheduler;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.lifecycle.events.LeaseLostInput;
import software.amazon.kinesis.lifecycle.events.ProcessRecordsInput;
import software.amazon.kinesis.lifecycle.events.ShardEndedInput;
import software.amazon.kinesis.lifecycle.events.ShutdownRequestedInput;
import software.amazon.kinesis.metrics.NullMetricsFactory;
import software.amazon.kinesis.processor.ShardRecordProcessor;
import software.amazon.kinesis.processor.SingleStreamTracker;
import software.amazon.kinesis.retrieval.KinesisClientRecord;
import software.amazon.kinesis.retrieval.polling.PollingConfig;

/**
 * Reads a stream with the KCL and its default client, and prints what it is given: "R shard sequence subsequence key data" for a
 * record, "E shard" for the end of a shard. Arguments: the endpoints of Kinesis and DynamoDB, the stream, the application, and
 * polling or fanout. Ends like a crash when its standard input does, and in order after an s there.
 */
public final class KclReader {
  public static void main(String[] args) throws Exception {
    StaticCredentialsProvider who = StaticCredentialsProvider.create(AwsBasicCredentials.create("test", "test"));
    Region region = Region.EU_CENTRAL_1;
    KinesisAsyncClient kinesis =
        KinesisClientUtil.createKinesisAsyncClient(
            KinesisAsyncClient.builder().region(region).credentialsProvider(who).endpointOverride(URI.create(args[0])));
    DynamoDbAsyncClient dynamo =
        DynamoDbAsyncClient.builder().region(region).credentialsProvider(who).endpointOverride(URI.create(args[1])).build();
    CloudWatchAsyncClient metrics =
        CloudWatchAsyncClient.builder().region(region).credentialsProvider(who).endpointOverride(URI.create(args[1])).build();
    ConfigsBuilder configs =
        new ConfigsBuilder(
            new SingleStreamTracker(
                args[2], InitialPositionInStreamExtended.newInitialPosition(InitialPositionInStream.TRIM_HORIZON)),
            args[3], kinesis, dynamo, metrics, UUID.randomUUID().toString(), Processor::new);
    var retrieval = configs.retrievalConfig();
    if (args[4].equals("polling")) {
      retrieval.retrievalSpecificConfig(new PollingConfig(args[2], kinesis).idleTimeBetweenReadsInMillis(250));
    }
    // Shorter than by default, to find children sooner.
    var coordinator = configs.coordinatorConfig().parentShardPollIntervalMillis(1000).shardConsumerDispatchPollIntervalMillis(200);
    var leases = configs.leaseManagementConfig().failoverTimeMillis(5000).shardSyncIntervalMillis(5000);
    Scheduler scheduler =
        new Scheduler(
            configs.checkpointConfig(), coordinator, leases, configs.lifecycleConfig(),
            configs.metricsConfig().metricsFactory(new NullMetricsFactory()), configs.processorConfig(), retrieval);
    Thread worker = new Thread(scheduler);
    worker.setDaemon(true);
    worker.start();
    for (int c = System.in.read(); c >= 0; c = System.in.read()) {
      if (c == 's') { // stop in order, which frees the leases and the leader's lock
        scheduler.startGracefulShutdown().get(60, TimeUnit.SECONDS);
        break;
      }
    }
    Runtime.getRuntime().halt(0);
  }

  private static final class Processor implements ShardRecordProcessor {
    private String shard;

    @Override
    public void initialize(InitializationInput in) {
      shard = in.shardId();
    }

    @Override
    public void processRecords(ProcessRecordsInput in) {
      StringBuilder lines = new StringBuilder();
      for (KinesisClientRecord r : in.records()) {
        lines.append("R ").append(shard).append(' ').append(r.sequenceNumber()).append(' ').append(r.subSequenceNumber()).append(' ')
            .append(r.partitionKey()).append(' ').append(StandardCharsets.UTF_8.decode(r.data())).append('\n');
      }
      say(lines.toString());
      checkpoint(() -> in.checkpointer().checkpoint());
    }

    @Override
    public void leaseLost(LeaseLostInput in) {}

    @Override
    public void shardEnded(ShardEndedInput in) {
      say("E " + shard + "\n");
      checkpoint(() -> in.checkpointer().checkpoint());
    }

    @Override
    public void shutdownRequested(ShutdownRequestedInput in) {
      checkpoint(() -> in.checkpointer().checkpoint());
    }
  }

  private interface Action {
    void run() throws Exception;
  }

  private static void checkpoint(Action a) {
    try {
      a.run();
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  private static synchronized void say(String lines) {
    System.out.print(lines);
    System.out.flush();
  }
}
