// Package lambda runs functions written for AWS Lambda, unchanged, as handlers of a
// [weir.Consumer].
//
// [Handler] converts a batch to the event that Lambda creates from Kinesis records. It passes the
// event to a function and interprets the answer as Lambda does. [Runtime] is a server for the
// runtime client in the function's process. It serves Lambda's Runtime API to one process, on
// 127.0.0.1.
//
// [QueueHandler] does the same for the records of a Kinesis queue.
//
// The weir command starts such processes. A Go program can also start processes itself: it must set
// AWS_LAMBDA_RUNTIME_API to [Runtime.Addr] in their environment.
package lambda
