// Package lambda lets functions that were written for AWS Lambda handle the records of a
// [weir.Consumer], unchanged.
//
// [Handler] turns a batch into the event that Lambda makes of records of Kinesis, gives it to a
// function and reads the answer as Lambda does. [Runtime] is what the function's own runtime client
// talks to: Lambda's Runtime API, for one process, on 127.0.0.1. The command of weir starts such
// processes; a program may start its own and set AWS_LAMBDA_RUNTIME_API to [Runtime.Addr].
package lambda
