// A Lambda function for flights. It stops at the first flight that fails, and reports its sequence
// number to Lambda. It appends the flights that it has handled to a file.
import { appendFileSync, closeSync, openSync } from "node:fs";
import { join } from "node:path";

// firstTime returns true for the first caller, in any process, that asks about this flight.
function firstTime(flight) {
  try {
    closeSync(openSync(join(process.env.FLIGHTS_FAILED, String(flight)), "wx"));
    return true;
  } catch (err) {
    if (err.code === "EEXIST") return false;
    throw err;
  }
}

function handle({ kinesis }) {
  const { flight, fails } = JSON.parse(Buffer.from(kinesis.data, "base64").toString());
  if (fails === "always" || (fails === "once" && firstTime(flight))) {
    throw new Error(`flight ${flight} fails ${fails}`);
  }
  appendFileSync(process.env.FLIGHTS_HANDLED, `${flight} ${kinesis.partitionKey} ${kinesis.sequenceNumber}\n`);
}

export const handler = async (event, context) => {
  console.log(`request ${context.awsRequestId} of ${context.invokedFunctionArn}, ${context.getRemainingTimeInMillis()} ms are left`);
  for (const record of event.Records) {
    try {
      handle(record);
    } catch (err) {
      console.error(err.message);
      return { batchItemFailures: [{ itemIdentifier: record.kinesis.sequenceNumber }] };
    }
  }
  return { batchItemFailures: [] };
};
