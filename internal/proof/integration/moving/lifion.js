// Reads a stream with lifion-kinesis, and prints a line "R shard data" for each record. It ends when
// its standard input does, like a process that is killed.
//
// Arguments: the URLs of Kinesis and of DynamoDB.
const Kinesis = require("lifion-kinesis");

const [kinesis, dynamoDb] = process.argv.slice(2);
const common = { region: "eu-central-1", accessKeyId: "test", secretAccessKey: "test" };
const client = new Kinesis({
  ...common, endpoint: kinesis, streamName: "orders", consumerGroup: "billing", initialPositionInStream: "TRIM_HORIZON",
  createStreamIfNeeded: false, leaseAcquisitionInterval: 1000, noRecordsPollDelay: 250, shouldParseJson: false,
  dynamoDb: { ...common, endpoint: dynamoDb },
  logger: { debug() {}, warn: console.error, error: console.error },
});
client.on("data", ({ shardId, records }) => {
  process.stdout.write(records.map((r) => `R ${shardId} ${r.data}\n`).join(""));
});
client.on("error", console.error);
client.startConsumer().catch((err) => {
  console.error(err);
  process.exit(1);
});
process.stdin.on("end", () => process.exit(0)).resume();
