// Package codec writes requests to Kinesis and reads its answers, in CBOR, JSON and event frames.
// It makes no calls.
//
// A [Page] is one answer: its records lie in the body as it was received, so that a record costs no
// allocation. [Bodies] is where bodies live, whose memory a page gives back when it is released.
// [Decode] reads a whole body, [Parts] a large one window by window, and a [FrameReader] finds the
// bodies in an event stream.
//
// Nothing that is received is trusted: the size of an answer, the counts and the nesting in it are
// bounded, and of an answer that cannot be read nothing is used. The reader of CBOR is as general
// as RFC 8949: lengths in front or a break at the end, strings in chunks, members in any order,
// tags, and members that nobody knows. It tries the layout of the record before first, and falls
// back to the general way for a record that differs.
package codec
