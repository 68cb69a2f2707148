// Package wire calls Kinesis and reads the answers. A GetRecords call costs little more than
// receiving the bytes. PutRecords calls work in the same way.
//
// # Cost
//
// The SDK's client uses JSON. Base64 needs a third more bytes and must be decoded. Each record
// needs five objects on the heap. The middleware stack costs 70 µs per call. This package differs
// as follows:
//
//   - Answers are requested in CBOR, where record data are bytes. Data, keys and numbers of records
//     refer to the received body (package codec). A page costs a few allocations, and a record
//     costs none.
//   - Clients that are [Plain] are called without the SDK's stack, but with its endpoint,
//     credentials and errors. They use HTTP/1.1, which costs half as much as HTTP/2 for answers of
//     a megabyte.
//   - Calls of other clients go through the SDK, with a protocol that decodes answers in the same
//     way. The user's middleware, tracing and HTTP client work as usual.
//
// # Untrusted input
//
// All input is limited: the size of an answer, its contents, and the time until its last byte. If
// an answer cannot be read, the whole answer is an error. The caller then continues from its last
// position.
//
// Servers other than AWS may not support CBOR or may have bugs in it. If an endpoint refuses CBOR
// or its answers cannot be read, the Caller tries JSON. If JSON works, it is used for the endpoint
// from then on ([Options.Format]). GetShardIterator is requested in JSON ([Caller.Iterator]). It is
// called rarely, and one server silently misreads times in CBOR.
package wire
