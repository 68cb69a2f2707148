#!/usr/bin/env node
const fs = require("fs"), readline = require("readline");

const results = Number(process.env.WEIR_RESULTS_FD);
const say = (line) => fs.writeSync(results, JSON.stringify(line) + "\n");

async function charge(order) {
  if (order.n === undefined) throw new Error("no number");
  console.log(order.n);
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const record = JSON.parse(line);
    try {
      await charge(JSON.parse(record.data));
    } catch (e) {
      say({ id: record.id, result: e instanceof SyntaxError ? "rejected" : "failed", error: String(e) });
      break;
    }
    say({ id: record.id, result: "done" });
  }
  say({ end: true });
}

main();
