// Encodes and decodes records as lifion-kinesis does, with its own modules. Each line of the input
// is a JSON object with the option "compression", and "encode" (data) or "decode" (a payload in
// base64). The output has one JSON object for each: "payload" in base64, or "record".
//
// Arguments: the URL of S3, the bucket, the stream.
const { getRecordsDecoder, getRecordsEncoder } = require("lifion-kinesis/lib/records");
const S3Client = require("lifion-kinesis/lib/s3-client");

const [endpoint, bucketName, streamName] = process.argv.slice(2);
const logger = { debug() {}, warn: console.error, error: console.error };
const s3 = { bucketName, largeItemThreshold: 2, nonS3Keys: ["kind"] };
const s3Client = new S3Client({
  ...s3, logger, endpoint, s3ForcePathStyle: true, region: process.env.AWS_REGION,
  accessKeyId: process.env.AWS_ACCESS_KEY_ID, secretAccessKey: process.env.AWS_SECRET_ACCESS_KEY,
});

async function main() {
  for await (const line of require("readline").createInterface({ input: process.stdin })) {
    const { compression, encode, decode } = JSON.parse(line);
    const common = { compression, logger, s3Client, useS3ForLargeItems: true };
    let answer;
    if (encode !== undefined) {
      const encoder = getRecordsEncoder({ ...common, outputEncoding: "Buffer", s3, streamName });
      const { Data } = await encoder({ data: encode, partitionKey: "k" });
      answer = { payload: Buffer.from(Data).toString("base64") };
    } else {
      const decoder = getRecordsDecoder({ ...common, inputEncoding: "Buffer" });
      answer = { record: await decoder({ Data: Buffer.from(decode, "base64"), PartitionKey: "k" }) };
    }
    console.log(JSON.stringify(answer));
  }
}
main().catch((err) => {
  console.error(err);
  process.exit(1);
});
