// Package http1 is a client for HTTP/1.1 with a single purpose: sending small requests to few hosts
// at a high rate, and reading their answers directly into the caller's memory. For a small answer
// it costs about half as much as net/http, because connections have no goroutines and almost
// nothing is allocated. The calling goroutine dials, writes and reads.
//
// A [Client] keeps a limited number of connections for each [Host]. [Host.Do] sends a complete
// request, head and body in one piece, and returns when the head of the answer was read. The caller
// reads the [Response] to its end and closes it, which returns the connection.
//
// A [Line] keeps the connection from one request to the next. It can send a request now and read
// the answer later, so that one goroutine has many requests under way and waits for all of them at
// once.
//
// A caller may allow a silent connection to be closed long before its call is over ([Bound],
// [Listener]), and repeat the request over a new one ([Host.Fresh]). Idle connections that have
// been silent since that time are closed too.
//
// It intentionally does not support redirects, cookies, proxies, compression, HTTP/2, traces, and
// requests of unknown length. [FromTransport] uses the settings of a net/http transport and returns
// an error if they require any of that.
//
// # Strictness
//
// It reads what net/http reads, with the same result, except for inputs used in request smuggling
// and response splitting. The following are errors ([ErrMalformed]) here and not in net/http: lines
// of the head that do not end in CR LF; continued lines; blanks in the name of a field; a status
// that is not three digits from 100 to 999; both Content-Length and Transfer-Encoding; a
// Transfer-Encoding in an answer of HTTP/1.0; a version outside 1.0 to 1.9; status 101, since no
// switch was requested; trailers that are not fields. A head, including interim ones, may have 64
// KiB and 256 fields ([ErrHeadTooLarge]).
//
// A connection is not reused if any data follows the answer. Data that arrives later is noticed
// before the next use if the system can check without waiting, as it can for sockets on Unix. The
// exception is a connection that a [Line] uses again within 50 ms.
package http1
