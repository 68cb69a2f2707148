package producer

// Counts are numbers of a producer since it was made, and what it holds now.
type Counts struct {
	// Records and Bytes were accepted by Put.
	Records, Bytes uint64
	// Stored records have a result, Failed ones an error.
	Stored, Failed uint64
	// Requests is how many calls of PutRecords were made, and Entries how many records of the
	// stream they had. StoredEntries are those that were stored: Stored divided by it is how many
	// records share one on average.
	Requests, Entries, StoredEntries uint64
	// Retried counts records each time that they are sent again, for the reasons that follow.
	Retried uint64
	// Throttled records were refused by a shard without room.
	Throttled uint64
	// Postponed records were refused by another limit of the service.
	Postponed uint64
	// Unknown records got no clear answer and may be stored twice.
	Unknown uint64
	// Unsigned records were sent with credentials that the service did not accept.
	Unsigned uint64
	// Invalid records were in a request that the service called invalid.
	Invalid uint64
	// Misplaced records were packed for a shard that was split or merged meanwhile.
	Misplaced uint64
	// Listings is how often the shards of the stream were listed.
	Listings uint64

	// BufferedRecords and BufferedBytes are what the producer holds, InFlight how many of these
	// records are in requests, and Blocked how many calls of Put wait for room.
	BufferedRecords, BufferedBytes, InFlight, Blocked int
	// CallbacksWaiting is how many records have an outcome and wait for their callback.
	CallbacksWaiting int
	// Shards is how many open shards are known; 0 if they are not.
	Shards int
}

// count adds records that were not stored.
func (c *Counts) count(o outcome, records int) {
	n := uint64(records)
	switch o {
	case throttled:
		c.Throttled += n
	case postponed:
		c.Postponed += n
	case unknown:
		c.Unknown += n
	case unsigned:
		c.Unsigned += n
	case invalid:
		c.Invalid += n
	case stored, refused:
	}
}
