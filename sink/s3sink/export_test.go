package s3sink

// Trust makes the sink assume that the bucket honours conditions.
func (s *Sink) Trust() { s.probed.Store(true) }

// Waiting returns how many bytes of records are not in an object yet.
func (s *Sink) Waiting() int64 { return s.waiting.Load() }

// LinkName returns the name of the link that begins after a position.
var LinkName = linkName

// ParseLink parses a link of shard shardId-0 of stream s, as found under a key.
func ParseLink(s *Sink, key string, text []byte) (to string, err error) {
	l, err := s.chain("s", "shardId-0").parse(key, text)
	if err != nil {
		return "", err
	}
	return l.To.String(), nil
}

// Continues is continues.
var Continues = continues

// AppendPayload is appendPayload.
var AppendPayload = appendPayload
