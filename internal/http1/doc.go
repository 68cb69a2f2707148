// Package http1 is an HTTP/1.1 client with a single purpose. It sends requests to few hosts at a
// high rate, and reads their answers directly into the caller's memory. A small answer costs about
// half as much as with net/http, because connections have no goroutines and almost nothing is
// allocated. The calling goroutine dials, writes and reads.
//
// A [Client] keeps a limited number of connections for each [Host]. [Host.Do] sends a complete
// request with head and body, and returns when the head of the answer was read. The caller reads
// the [Response] to its end and closes it, which returns the connection.
//
// A [Line] keeps the connection from one request to the next. It can send a request now and read
// the answer later. One goroutine can therefore have many requests in progress and wait for all of
// them at once.
//
// A caller may allow that a silent connection is closed long before the deadline of its call
// ([Bound], [Listener]). It can then repeat the request over a new connection ([Host.Fresh]). Idle
// connections that have received no byte for at least as long are closed as well.
//
// The package intentionally does not support redirects, cookies, proxies, compression, HTTP/2,
// traces, and requests of unknown length. [FromTransport] uses the settings of a net/http
// transport. It returns an error if they require an unsupported feature.
//
// # Strictness
//
// The package reads the same answers as net/http, with the same result. Exceptions are inputs that
// are used in request smuggling and response splitting. The following inputs are errors
// ([ErrMalformed]) here, but not in net/http:
//
//   - lines of the head that do not end in CR LF
//   - continued lines
//   - blanks in the name of a field
//   - a status that is not three digits from 100 to 999
//   - both Content-Length and Transfer-Encoding
//   - a Transfer-Encoding in an answer of HTTP/1.0
//   - a version outside 1.0 to 1.9
//   - status 101, because no switch was requested
//   - trailers that are not fields
//
// A head, including interim heads, may have 64 KiB and 256 fields ([ErrHeadTooLarge]).
//
// A connection is not reused if data follows the answer. Data that arrives later is detected before
// the next use, if the system can check without waiting, as it can for sockets on Unix. A
// connection that a [Line] uses again within 50 ms is not checked.
package http1
