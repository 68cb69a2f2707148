// Package wire makes GetRecords calls and reads their answers at little more than the cost of
// receiving the bytes.
//
// # What costs, and what is done about it
//
// The SDK's client asks in JSON: base64 is a third more to receive and must be decoded, each record
// is five objects on the heap, and the stack of middleware costs 70 µs a call. Here
//
//   - answers are asked for in CBOR, where data are bytes; record data, keys and numbers lie in the
//     body as it was received (package codec), so that a page costs a few allocations and a record
//     none;
//   - calls of clients that are [Plain] are made without the SDK's stack, with its endpoint,
//     credentials and errors, and over HTTP/1.1, which costs half of what HTTP/2 does for answers
//     of a megabyte;
//   - other clients' calls go through the SDK, with a protocol that reads answers in the same way,
//     so that the user's middleware, tracing and HTTP client work as ever.
//
// # Trust
//
// Everything that is received is bounded: the size of an answer, what is in it, and the time until
// its last byte. An answer that cannot be read is an error as a whole, and the caller reads on from
// where it was.
//
// Servers other than AWS may not speak CBOR, or have flaws in it. An endpoint that refuses it, or
// whose answers cannot be read, is asked in JSON with the same iterator at once, and remembered if
// that works ([Options.Format]). GetShardIterator is always asked in JSON ([Caller.Iterator]): it
// is rare, and a known server reads CBOR's times wrongly without saying so.
package wire
