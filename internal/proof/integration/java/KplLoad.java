import com.google.common.util.concurrent.FutureCallback;
import com.google.common.util.concurrent.Futures;
import com.google.common.util.concurrent.MoreExecutors;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.kinesis.producer.KinesisProducer;
import software.amazon.kinesis.producer.KinesisProducerConfiguration;
import software.amazon.kinesis.producer.UserRecordResult;

/**
 * Puts records with several KPLs at their defaults, as fast as they allow, until its standard input ends. A KPL gets records while
 * fewer than 3000 are outstanding. Data are "producer number" and spaces. Arguments: the port of Kinesis and that of STS, both on
 * 127.0.0.1 with TLS, the stream, the number of KPLs, the number of keys of each, the bytes of a record, and a directory for the
 * KPL's program.
 */
public final class KplLoad {
  public static void main(String[] args) throws Exception {
    int producers = Integer.parseInt(args[3]);
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < producers; i++) {
      int producer = i;
      Thread thread = new Thread(() -> put(args, producer));
      thread.setDaemon(true);
      thread.start();
      threads.add(thread);
    }
    while (System.in.read() >= 0) {}
    Runtime.getRuntime().halt(0);
  }

  private static void put(String[] args, int number) {
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
            .setLogLevel("error")
            .setTempDirectory(args[6]);
    KinesisProducer producer = new KinesisProducer(config);
    int keys = Integer.parseInt(args[4]);
    int size = Integer.parseInt(args[5]);
    try {
      for (int i = 0; ; i++) {
        while (producer.getOutstandingRecordsCount() >= 3000) {
          Thread.sleep(2);
        }
        byte[] data = new byte[size];
        Arrays.fill(data, (byte) ' ');
        byte[] name = (number + " " + i).getBytes(StandardCharsets.US_ASCII);
        System.arraycopy(name, 0, data, 0, name.length);
        Futures.addCallback(producer.addUserRecord(args[2], number + "-" + i % keys, ByteBuffer.wrap(data)), new Lost(), MoreExecutors.directExecutor());
      }
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Reports a record that the KPL gave up. */
  private static final class Lost implements FutureCallback<UserRecordResult> {
    @Override
    public void onSuccess(UserRecordResult r) {}

    @Override
    public void onFailure(Throwable t) {
      System.out.println("L");
    }
  }
}
