package s3sink

// Trust makes the sink assume that the bucket supports conditional writes.
func (s *Sink) Trust() { s.probed.Store(true) }

// Waiting returns the number of bytes of records that are not in an object yet.
func (s *Sink) Waiting() int64 { return s.waiting.Load() }

// LinkName returns the name of the link that begins at a position.
var LinkName = linkName

// ParseLink parses a link of shard shardId-0 of stream s. key is the key under which the link was
// found.
func ParseLink(s *Sink, key string, text []byte) (to string, err error) {
	l, err := s.chain("s", "shardId-0").parse(key, text)
	if err != nil {
		return "", err
	}
	return l.To.String(), nil
}

// Continues exports continues for tests.
var Continues = continues

// AppendPayload exports appendPayload for tests.
var AppendPayload = appendPayload
