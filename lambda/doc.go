// Package lambda runs functions written for AWS Lambda, unchanged, as handlers of a
// [weir.Consumer].
//
// [Handler] converts a batch to the event that Lambda creates from Kinesis records, passes it to a
// function and reads the answer as Lambda does. [Runtime] is the server for the function's own
// runtime client: Lambda's Runtime API, for one process, on 127.0.0.1. The weir command starts such
// processes; a program may start its own and set AWS_LAMBDA_RUNTIME_API to [Runtime.Addr].
package lambda
