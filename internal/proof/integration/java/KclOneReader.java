import com.amazonaws.ClientConfiguration;
import com.amazonaws.auth.AWSStaticCredentialsProvider;
import com.amazonaws.auth.BasicAWSCredentials;
import com.amazonaws.services.kinesis.clientlibrary.interfaces.v2.IRecordProcessor;
import com.amazonaws.services.kinesis.clientlibrary.lib.worker.InitialPositionInStream;
import com.amazonaws.services.kinesis.clientlibrary.lib.worker.KinesisClientLibConfiguration;
import com.amazonaws.services.kinesis.clientlibrary.lib.worker.ShutdownReason;
import com.amazonaws.services.kinesis.clientlibrary.lib.worker.Worker;
import com.amazonaws.services.kinesis.clientlibrary.types.InitializationInput;
import com.amazonaws.services.kinesis.clientlibrary.types.ProcessRecordsInput;
import com.amazonaws.services.kinesis.clientlibrary.types.ShutdownInput;
import com.amazonaws.services.kinesis.clientlibrary.types.UserRecord;
import com.amazonaws.services.kinesis.metrics.impl.NullMetricsFactory;
import com.amazonaws.services.kinesis.model.Record;
import java.nio.charset.StandardCharsets;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/**
 * Reads a stream with KCL 1.x, and prints the same lines as KclReader. Arguments: the endpoints of Kinesis and DynamoDB, the stream,
 * and the application. Ends as KclReader does.
 */
public final class KclOneReader {
  public static void main(String[] args) throws Exception {
    AWSStaticCredentialsProvider who = new AWSStaticCredentialsProvider(new BasicAWSCredentials("test", "test"));
    KinesisClientLibConfiguration config =
        new KinesisClientLibConfiguration(args[3], args[2], who, UUID.randomUUID().toString())
            .withRegionName("eu-central-1")
            .withKinesisEndpoint(args[0])
            .withDynamoDBEndpoint(args[1])
            .withCommonClientConfig(new ClientConfiguration())
            .withInitialPositionInStream(InitialPositionInStream.TRIM_HORIZON)
            .withFailoverTimeMillis(5000)
            .withShardSyncIntervalMillis(5000)
            .withParentShardPollIntervalMillis(1000)
            .withIdleTimeBetweenReadsInMillis(250);
    Worker worker =
        new Worker.Builder().recordProcessorFactory(Processor::new).config(config).metricsFactory(new NullMetricsFactory()).build();
    Thread thread = new Thread(worker);
    thread.setDaemon(true);
    thread.start();
    for (int c = System.in.read(); c >= 0; c = System.in.read()) {
      if (c == 's') { // stop in order
        worker.startGracefulShutdown().get(60, TimeUnit.SECONDS);
        break;
      }
    }
    Runtime.getRuntime().halt(0);
  }

  private static final class Processor implements IRecordProcessor {
    private String shard;

    @Override
    public void initialize(InitializationInput in) {
      shard = in.getShardId();
    }

    @Override
    public void processRecords(ProcessRecordsInput in) {
      StringBuilder lines = new StringBuilder();
      for (Record r : in.getRecords()) {
        long sub = r instanceof UserRecord ? ((UserRecord) r).getSubSequenceNumber() : 0;
        lines.append("R ").append(shard).append(' ').append(r.getSequenceNumber()).append(' ').append(sub).append(' ')
            .append(r.getPartitionKey()).append(' ').append(StandardCharsets.UTF_8.decode(r.getData())).append('\n');
      }
      say(lines.toString());
      checkpoint(() -> in.getCheckpointer().checkpoint());
    }

    @Override
    public void shutdown(ShutdownInput in) {
      if (in.getShutdownReason() == ShutdownReason.TERMINATE) {
        say("E " + shard + "\n");
        checkpoint(() -> in.getCheckpointer().checkpoint());
      }
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
