// Package http1 is a client for HTTP/1.1 that does one thing: send small requests to few hosts,
// very often, and read their answers straight into the caller's memory. It costs about half of what
// net/http does for a small answer, because no goroutine belongs to a connection and next to
// nothing is allocated: whoever asks also dials, writes and reads.
//
// A [Client] keeps connections for each [Host], at most so many at a time. [Host.Do] sends a
// request that was rendered before, head and body in one piece, and returns when the head of the
// answer is there. The [Response] is read to its end and closed, which gives the connection back.
//
// A [Line] keeps the connection from one request to the next, and can be asked now and read later,
// so that one goroutine has many requests under way and waits for all of them at once.
//
// A connection over which nothing comes while an answer is waited for can be given up long before
// the call is over, if whoever made the call says so ([Bound], [Listener]), and the request made
// once more over a new one ([Host.Fresh]). Idle connections over which nothing has come since are
// closed then, too.
//
// What it leaves out, on purpose: redirects, cookies, proxies, compression, HTTP/2, traces, and
// requests of unknown length. [FromTransport] takes the settings of a net/http transport, and says
// so when they ask for any of that.
//
// # Strictness
//
// It reads what net/http reads, with the same result, but for what request smuggling and response
// splitting live from. These are errors ([ErrMalformed]) here and not there: lines of the head that
// do not end in CR LF; continued lines; blanks in the name of a field; a status that is not three
// digits from 100 to 999; both Content-Length and Transfer-Encoding; a Transfer-Encoding in an
// answer of HTTP/1.0; a version other than 1.0 to 1.9; 101, since nobody asked to switch; trailers
// that are no fields. A head, interim ones included, may have 64 KiB and 256 fields
// ([ErrHeadTooLarge]).
//
// A connection on which anything follows an answer is not used again. What follows later is noticed
// before the connection is used again, where the system can tell without waiting, which is so for
// sockets of Unix systems; but for one that a [Line] uses again within 50 ms.
package http1
