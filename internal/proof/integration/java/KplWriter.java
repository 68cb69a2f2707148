import com.google.common.util.concurrent.ListenableFuture;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.kinesis.producer.KinesisProducer;
import software.amazon.kinesis.producer.KinesisProducerConfiguration;
import software.amazon.kinesis.producer.UserRecordResult;

/**
 * Writes records with the KPL and prints where each went: "W number shard sequence". Arguments: the port of Kinesis and that of STS,
 * both on 127.0.0.1 with TLS, the stream, the number of records, and a directory for the KPL's program.
 */
public final class KplWriter {
  public static void main(String[] args) throws Exception {
    KinesisProducerConfiguration config =
        new KinesisProducerConfiguration()
            .setCredentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("test", "test")))
            .setRegion("eu-central-1")
            .setKinesisEndpoint("127.0.0.1")
            .setKinesisPort(Integer.parseInt(args[0]))
            .setStsEndpoint("127.0.0.1")
            .setStsPort(Integer.parseInt(args[1]))
            .setVerifyCertificate(false)
            .setMetricsLevel("none")
            .setLogLevel("warning")
            .setTempDirectory(args[4]);
    KinesisProducer producer = new KinesisProducer(config);
    int count = Integer.parseInt(args[3]);
    List<ListenableFuture<UserRecordResult>> all = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      all.add(producer.addUserRecord(args[2], "key-" + i % 97, ByteBuffer.wrap(("record-" + i).getBytes(StandardCharsets.UTF_8))));
      if (i % 2000 == 1999) {
        producer.flushSync();
      }
    }
    producer.flushSync();
    StringBuilder lines = new StringBuilder();
    for (int i = 0; i < count; i++) {
      UserRecordResult r = all.get(i).get();
      lines.append("W ").append(i).append(' ').append(r.getShardId()).append(' ').append(r.getSequenceNumber()).append('\n');
    }
    System.out.print(lines);
    System.out.flush();
    producer.destroy();
    Runtime.getRuntime().halt(0);
  }
}
