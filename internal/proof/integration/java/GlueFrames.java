import com.amazonaws.services.schemaregistry.common.configs.GlueSchemaRegistryConfiguration;
import com.amazonaws.services.schemaregistry.deserializers.GlueSchemaRegistryDeserializerDataParser;
import com.amazonaws.services.schemaregistry.serializers.SerializationDataEncoder;
import com.amazonaws.services.schemaregistry.utils.AWSSchemaRegistryConstants.COMPRESSION;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.UUID;

/**
 * Adds and reads headers with AWS's client of the Glue Schema Registry. Each line of the input is
 * "write NONE|ZLIB UUID DATA" or "read PAYLOAD", with data and payloads in base64. The output has
 * one line for each: the payload, or the UUID and the data.
 */
public final class GlueFrames {
  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      String[] words = line.split(" ");
      if (words[0].equals("write")) {
        GlueSchemaRegistryConfiguration config = new GlueSchemaRegistryConfiguration("eu-west-1");
        config.setCompressionType(COMPRESSION.valueOf(words[1]));
        byte[] payload = new SerializationDataEncoder(config)
            .write(Base64.getDecoder().decode(words[3]), UUID.fromString(words[2]));
        System.out.println(Base64.getEncoder().encodeToString(payload));
      } else {
        ByteBuffer payload = ByteBuffer.wrap(Base64.getDecoder().decode(words[1]));
        GlueSchemaRegistryDeserializerDataParser parser = GlueSchemaRegistryDeserializerDataParser.getInstance();
        UUID version = parser.getSchemaVersionId(payload.duplicate());
        System.out.println(version + " "
            + Base64.getEncoder().encodeToString(parser.getPlainData(payload.duplicate())));
      }
    }
  }
}
