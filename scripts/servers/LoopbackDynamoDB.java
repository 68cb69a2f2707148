import com.amazonaws.services.dynamodbv2.local.main.ServerRunner;
import com.amazonaws.services.dynamodbv2.local.server.DynamoDBProxyServer;
import java.lang.reflect.Field;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * Starts DynamoDB Local on a free port of 127.0.0.1, says which, and ends when its standard input does. By itself it listens on
 * all interfaces, wants to be given a port, sends telemetry, and outlives whoever started it.
 *
 * <p>What DynamoDB Local 2.6.1 gets wrong, seen while the store was tested against it:
 *
 * <ul>
 *   <li>it knows no IAM: nothing is ever denied, and any key pair is accepted; without -sharedDb each key and region sees tables
 *       of its own
 *   <li>all requests to one table run one after the other in SQLite, so racing writers never race for long
 *   <li>it never throttles, never answers a part of a BatchGetItem, and every read is consistent
 *   <li>a table is ACTIVE in the answer of CreateTable already
 * </ul>
 */
public final class LoopbackDynamoDB {
  public static void main(String[] args) throws Exception {
    DynamoDBProxyServer proxy =
        ServerRunner.createServerFromCommandLineArgs(new String[] {"-inMemory", "-sharedDb", "-disableTelemetry"});
    Field field = DynamoDBProxyServer.class.getDeclaredField("server");
    field.setAccessible(true);
    Server server = (Server) field.get(proxy);
    ServerConnector connector = null;
    for (Connector c : server.getConnectors()) {
      connector = (ServerConnector) c;
      connector.setHost("127.0.0.1");
      connector.setPort(0);
    }
    proxy.safeStart();
    System.out.println("weir: port 8000 is " + connector.getLocalPort());
    while (System.in.read() >= 0) {
      // Wait for the end.
    }
    Runtime.getRuntime().halt(0);
  }
}
