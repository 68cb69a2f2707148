// Package codec encodes requests to Kinesis and decodes its answers. It supports CBOR, JSON and
// event frames, and makes no calls.
//
// A [Page] is one answer. Its records refer to the received body, so that a record needs no
// allocation. [Bodies] manages the memory of bodies. A page returns its memory when it is released.
// [Decode] reads a whole body, [Parts] reads a large body window by window, and a [FrameReader]
// finds the bodies in an event stream.
//
// All input is untrusted. The size of an answer, its counts and its nesting are limited. A body or
// part that cannot be read gives no records. The CBOR reader supports all of RFC 8949: definite and
// indefinite lengths, strings in chunks, members in any order, tags, and unknown members. It first
// tries the layout of the previous record. If a record differs from it, the reader uses the general
// method.
package codec
