// Creates, writes, splits and reads a stream with the unmodified AWS SDK for JavaScript. It prints
// the records that it read as JSON, for the test that runs it.
//
// Arguments: the URL of the server, and optionally "h1". With "h1" the client uses HTTP/1.1,
// otherwise the SDK chooses the protocol.
const {
  KinesisClient, CreateStreamCommand, DescribeStreamSummaryCommand, PutRecordsCommand, ListShardsCommand, SplitShardCommand,
  GetShardIteratorCommand, GetRecordsCommand,
} = require("@aws-sdk/client-kinesis");
const { NodeHttpHandler } = require("@smithy/node-http-handler");

const [url, http] = process.argv.slice(2);
const StreamName = "from-js";
const client = new KinesisClient({
  endpoint: url, region: "us-east-1", credentials: { accessKeyId: "a", secretAccessKey: "b" },
  ...(http === "h1" ? { requestHandler: new NodeHttpHandler() } : {}),
});

async function active() {
  for (;;) {
    const { StreamDescriptionSummary: s } = await client.send(new DescribeStreamSummaryCommand({ StreamName }));
    if (s.StreamStatus === "ACTIVE") return s;
  }
}

async function put(from, to) {
  const Records = [];
  for (let i = from; i < to; i++) Records.push({ PartitionKey: `key-${i % 7}`, Data: Buffer.from(`record ${i}`) });
  const out = await client.send(new PutRecordsCommand({ StreamName, Records }));
  if (out.FailedRecordCount) throw new Error(`${out.FailedRecordCount} records failed`);
}

// read returns the records of a shard. It stops at the end of a closed shard, and at the tip of an
// open one.
async function read(ShardId) {
  const records = [];
  let { ShardIterator } = await client.send(new GetShardIteratorCommand({ StreamName, ShardId, ShardIteratorType: "TRIM_HORIZON" }));
  for (;;) {
    const page = await client.send(new GetRecordsCommand({ ShardIterator, Limit: 50 }));
    for (const r of page.Records) records.push({ key: r.PartitionKey, data: Buffer.from(r.Data).toString(), arrival: r.ApproximateArrivalTimestamp.getTime() });
    if (!page.NextShardIterator) return { records, closed: true, children: (page.ChildShards || []).map((c) => c.ShardId) };
    if (page.MillisBehindLatest === 0 && page.Records.length === 0) return { records, closed: false, children: [] };
    ShardIterator = page.NextShardIterator;
    await new Promise((again) => setTimeout(again, 250)); // the limit is five reads per second
  }
}

(async () => {
  await client.send(new CreateStreamCommand({ StreamName, ShardCount: 2 }));
  await active();
  await put(0, 100);
  const { Shards: before } = await client.send(new ListShardsCommand({ StreamName }));
  const { StartingHashKey, EndingHashKey } = before[0].HashKeyRange;
  const middle = (BigInt(StartingHashKey) + BigInt(EndingHashKey)) / 2n;
  await client.send(new SplitShardCommand({ StreamName, ShardToSplit: before[0].ShardId, NewStartingHashKey: middle.toString() }));
  await active();
  await put(100, 200);
  const { Shards: after } = await client.send(new ListShardsCommand({ StreamName }));
  const shards = {};
  for (const s of after) shards[s.ShardId] = { parent: s.ParentShardId, ...(await read(s.ShardId)) };
  let refused = "";
  try {
    await client.send(new DescribeStreamSummaryCommand({ StreamName: "nowhere" }));
  } catch (e) {
    refused = e.name;
  }
  console.log(JSON.stringify({ split: before[0].ShardId, shards, refused }));
  client.destroy();
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
