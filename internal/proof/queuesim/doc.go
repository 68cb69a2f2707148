// Package queuesim simulates a queue with several processes that consume it, in virtual time. A
// seed determines the options, the handlers and the faults. The order of goroutines at the same
// instant is not determined, so a seed repeats a history approximately.
//
// The service is a model of a queue in memory. The processes are consumers of package queue, each
// with its own connection to the model. The model and the handlers report to the judge, which
// shares no code with package queue:
//
//   - No record is lost. At the end each record is acknowledged, or a dead letter for a reason.
//   - A record is acknowledged only after a handler of the same process succeeded with it, after
//     its dead letter is durable, or if the filter of the process dropped it.
//   - A handler gets the records that the filter passes, with the data that the producer wrote, and
//     no others. A dropped record has no dead letter, and is counted once per delivery.
//   - Only failures of handlers and faults make a record a dead letter. A rolling restart does not.
//   - The memory for records and answers stays within MaxBytes, and the number of received records
//     is bounded.
//   - With OrderByKey, a process handles one record of a key at a time. No process handles a record
//     twice at the same time, or again after it succeeded.
//   - If a record is delivered again while a handler has it, the context of the handler has ended
//     with ErrHoldLost before. Without faults no hold ends.
//   - Run returns in time when it stops, and its error names the records and calls that are left.
package queuesim
