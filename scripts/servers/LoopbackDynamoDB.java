import com.amazonaws.services.dynamodbv2.local.main.ServerRunner;
import com.amazonaws.services.dynamodbv2.local.server.DynamoDBProxyServer;
import java.lang.reflect.Field;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * Starts DynamoDB Local on a free port of 127.0.0.1, says which, and ends when its standard input does. By itself it listens on
 * all interfaces, wants to be given a port, sends telemetry, and outlives whoever started it. It keeps its tables in memory, or in the
 * directory that is its argument, where they outlive it.
 *
 * <p>What DynamoDB Local 2.6.1 does differently, seen while the store was tested against it:
 *
 * <ul>
 *   <li>nothing is ever denied, and any key pair is accepted; without -sharedDb each key and region sees tables of its own
 *   <li>requests are served one after the other: 16 writers at once are slower than one, and races are rarely close
 *   <li>in no run was a request throttled or a BatchGetItem answered in part
 *   <li>a table is ACTIVE in the answer of CreateTable already, so nobody ever meets one that is being created
 *   <li>ARNs name the region "ddblocal", whatever the client said
 * </ul>
 */
public final class LoopbackDynamoDB {
  public static void main(String[] args) throws Exception {
    DynamoDBProxyServer proxy =
        ServerRunner.createServerFromCommandLineArgs(
            args.length == 0
                ? new String[] {"-inMemory", "-sharedDb", "-disableTelemetry"}
                : new String[] {"-dbPath", args[0], "-sharedDb", "-disableTelemetry"});
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
