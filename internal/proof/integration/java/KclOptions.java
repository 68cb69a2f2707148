import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Optional;
import software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.cloudwatch.CloudWatchAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.kinesis.KinesisAsyncClient;
import software.amazon.kinesis.common.ConfigsBuilder;
import software.amazon.kinesis.retrieval.fanout.FanOutConfig;
import software.amazon.kinesis.retrieval.polling.PollingConfig;

/** Prints the options of the KCL with their defaults: class, name and value, separated by tabs. It makes no request. */
public final class KclOptions {
  public static void main(String[] args) throws Exception {
    var who = AnonymousCredentialsProvider.create();
    KinesisAsyncClient kinesis = KinesisAsyncClient.builder().region(Region.EU_CENTRAL_1).credentialsProvider(who).build();
    DynamoDbAsyncClient dynamo = DynamoDbAsyncClient.builder().region(Region.EU_CENTRAL_1).credentialsProvider(who).build();
    CloudWatchAsyncClient metrics = CloudWatchAsyncClient.builder().region(Region.EU_CENTRAL_1).credentialsProvider(who).build();
    ConfigsBuilder configs = new ConfigsBuilder("stream", "app", kinesis, dynamo, metrics, "worker", () -> null);
    Object[] all = {
      configs.checkpointConfig(), configs.coordinatorConfig(), configs.leaseManagementConfig(),
      configs.leaseManagementConfig().workerUtilizationAwareAssignmentConfig(),
      configs.leaseManagementConfig().gracefulLeaseHandoffConfig(), configs.lifecycleConfig(), configs.metricsConfig(),
      configs.processorConfig(), configs.retrievalConfig(), new PollingConfig("stream", kinesis), new FanOutConfig(kinesis)
    };
    for (Object config : all) {
      for (Field f : config.getClass().getDeclaredFields()) {
        if (Modifier.isStatic(f.getModifiers()) || f.isSynthetic()) {
          continue;
        }
        f.setAccessible(true);
        Object value = f.get(config);
        if (value instanceof Optional) {
          value = ((Optional<?>) value).orElse(null);
        }
        System.out.println(config.getClass().getSimpleName() + "\t" + f.getName() + "\t" + value);
      }
    }
    Runtime.getRuntime().halt(0);
  }
}
