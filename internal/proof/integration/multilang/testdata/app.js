// The record processor of the README of aws-kcl 2. It also appends each record to the file that is
// named after its process.
'use strict';
const fs = require('fs');
const kcl = require('aws-kcl');

kcl({
  initialize: (input, done) => done(),
  processRecords: (input, done) => {
    if (!input || !input.records) {
      done();
      return;
    }
    const records = input.records;
    const text = records.map((r) => `Record (Partition Key: ${r.partitionKey}, Sequence Number: ${r.sequenceNumber}, Sub`);
    fs.appendFileSync(`${process.env.OUTPUT}/${process.pid}`, text.join(''));
    input.checkpointer.checkpoint(records[records.length - 1].sequenceNumber, () => done());
  },
  leaseLost: (input, done) => done(),
  shardEnded: (input, done) => {
    input.checkpointer.checkpoint(() => done());
    done(); // the README does this, too
  },
}).run();
