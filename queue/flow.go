package queue

const (
	largestRecord = 10 << 20 // bytes of data that the service allows
	usualRecord   = 1 << 20  // a stream allows this by default
	mostPerCall   = 10       // records of a receive, and entries of a batch
	mostCalls     = 64       // calls of one kind in flight
	mostAhead     = 1000     // records that are fetched before a handler is free
	// decoding is what the decoder of an answer takes besides the records: one encoded record,
	// in a buffer that may be twice as large.
	decoding = largestRecord*4/3*2 + 1<<20
)
