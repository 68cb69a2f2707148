package benchserver

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"math/bits"
	"net/http"
	"strconv"
)

// putRecords answers with a result for each record. The partition key, which must be plain text,
// determines the shard.
func (s *Server) putRecords(w http.ResponseWriter, f format, body []byte) error {
	keys, err := partitionKeys(f, body)
	if err != nil {
		return err
	}
	b := make([]byte, 0, 64+128*len(keys))
	if f == cborFormat {
		b = appendHead(appendText(append(b, cborMap|2), "FailedRecordCount"), cborUint, 0)
		b = appendHead(appendText(b, "Records"), cborArray, uint64(len(keys)))
	} else {
		b = append(b, `{"FailedRecordCount":0,"Records":[`...)
	}
	for i, key := range keys {
		number, shard := sequence(int(s.puts.Add(1))), shardID(s.shardOf(key))
		if f == cborFormat {
			b = appendText(appendText(append(b, cborMap|2), "SequenceNumber"), number)
			b = appendText(appendText(b, "ShardId"), shard)
			continue
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(append(append(b, `{"SequenceNumber":"`...), number...), `","ShardId":"`...), shard...), `"}`...)
	}
	if f == jsonFormat {
		b = append(b, `]}`...)
	}
	w.Header().Set("Content-Type", f.contentType())
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	s.write(w, b)
	return nil
}

// shardOf returns the shard to which a key belongs. The shards divide the hash keys evenly.
func (s *Server) shardOf(key []byte) int {
	sum := md5.Sum(key)
	shard, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:]), uint64(s.cfg.Shards))
	return int(shard)
}

// partitionKeys returns the partition keys of the records in a request.
func partitionKeys(f format, body []byte) (keys [][]byte, err error) {
	mark := []byte(`"PartitionKey":"`)
	if f == cborFormat {
		mark = []byte("\x6cPartitionKey")
	}
	for {
		at := bytes.Index(body, mark)
		if at < 0 {
			break
		}
		body = body[at+len(mark):]
		n := bytes.IndexByte(body, '"')
		if f == cborFormat {
			n = -1
			switch {
			case len(body) > 0 && body[0]>>5 == 3 && body[0]&31 < 24:
				n, body = int(body[0]&31), body[1:]
			case len(body) > 1 && body[0] == cborText|24:
				n, body = int(body[1]), body[2:]
			}
		}
		if n < 0 || n > len(body) {
			return nil, errors.New("a partition key is not plain text of at most 255 bytes")
		}
		keys = append(keys, body[:n])
		body = body[n:]
	}
	if len(keys) == 0 {
		return nil, errors.New("no records")
	}
	return keys, nil
}
