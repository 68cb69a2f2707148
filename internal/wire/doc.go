// Package wire makes GetRecords calls and reads their answers at little more than the cost of
// receiving the bytes. It makes PutRecords calls in the same way.
//
// # Cost
//
// The SDK's client uses JSON. Base64 takes a third more bytes and must be decoded, each record
// takes five objects on the heap, and the middleware stack costs 70 µs per call. This package
// differs as follows:
//
//   - Answers are requested in CBOR, where data are bytes. Record data, keys and numbers are used
//     in the body as received (package codec), so that a page costs a few allocations and a record
//     none.
//   - Clients that are [Plain] are called without the SDK's stack, with its endpoint, credentials
//     and errors. They use HTTP/1.1, which costs half as much as HTTP/2 for answers of a megabyte.
//   - Other clients' calls go through the SDK, with a protocol that reads answers in the same way.
//     The user's middleware, tracing and HTTP client work as usual.
//
// # Trust
//
// All input is limited: the size of an answer, its contents, and the time until its last byte. An
// answer that cannot be read is an error as a whole, and the caller continues from where it was.
//
// Servers other than AWS may not support CBOR, or have bugs in it. If an endpoint refuses CBOR, or
// its answers cannot be read, the same iterator is requested in JSON at once. If that works, JSON
// is remembered for the endpoint ([Options.Format]). GetShardIterator always uses JSON
// ([Caller.Iterator]): it is rare, and a known server silently misreads CBOR times.
package wire
