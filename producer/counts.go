package producer

// Counts contains counters since the producer was made, and the current contents of the producer.
type Counts struct {
	// Records and Bytes were accepted by Put. Bytes are those of data, keys and tags.
	Records, Bytes uint64
	// Stored records have a result, and Failed records have an error.
	Stored, Failed uint64
	// Requests counts calls of PutRecords, and Entries counts the stream records in them.
	// StoredEntries counts the entries that were stored. Stored divided by StoredEntries is the
	// average number of records per stream record.
	Requests, Entries, StoredEntries uint64
	// PayloadUnits counts the PUT payload units of the stored entries. A stream record
	// costs one unit per 25 KB, rounded up. The count includes the keys.
	PayloadUnits uint64
	// Retried counts each repeated sending of a record, for the reasons that follow.
	Retried uint64
	// Throttled records were refused by a shard without room.
	Throttled uint64
	// Postponed records were refused by another limit of the service.
	Postponed uint64
	// Unknown records got no clear answer, and may be stored twice after the repetition.
	Unknown uint64
	// Unsigned records were sent with credentials that the service did not accept.
	Unsigned uint64
	// Invalid records were in a request that the service rejected as invalid.
	Invalid uint64
	// Misplaced records were in a container for a shard that was split before it arrived.
	Misplaced uint64
	// Codes counts the records of the fields from Throttled to Invalid, by the service's error
	// code. The code is "" if the service did not answer with one, for example after a broken
	// connection. The map is nil if nothing was refused, and belongs to the caller.
	Codes map[string]uint64
	// Listings counts the listings of the stream's shards.
	Listings uint64

	// BufferedRecords and BufferedBytes are the current contents of the producer. InFlight is the
	// number of these records in requests. Blocked is the number of Put calls that wait for room.
	BufferedRecords, BufferedBytes, InFlight, Blocked int
	// CallbacksWaiting is the number of records that have an outcome and wait for their callback.
	CallbacksWaiting int
	// Shards is the number of open shards, or 0 if it is unknown.
	Shards int
}

// count adds records that were not stored.
func (c *Counts) count(o outcome, code string, records int) {
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
		return
	}
	if c.Codes == nil {
		c.Codes = map[string]uint64{}
	}
	c.Codes[code] += n
}
