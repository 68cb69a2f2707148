// Package codec writes requests to Kinesis and reads its answers, in CBOR, JSON and event frames.
// It makes no calls.
//
// A [Page] is one answer. Its records refer to the body as it was received, so that a record costs
// no allocation. [Bodies] manages the memory of bodies, which a page gives back when it is
// released. [Decode] reads a whole body, [Parts] a large one window by window, and a [FrameReader]
// finds the bodies in an event stream.
//
// All input is untrusted. The size of an answer and the counts and nesting in it are limited. If an
// answer cannot be read, nothing from it is used. The CBOR reader supports all of RFC 8949: lengths
// in front or a break at the end, strings in chunks, members in any order, tags, and unknown
// members. It first tries the layout of the previous record, and reads a record that differs in the
// general way.
package codec
