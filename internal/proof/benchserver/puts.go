package benchserver

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"sync"
)

// anyShard is the index of a closed shard that has all hash keys. It is the shard of each answer to
// PutRecords, so that the server need not look at the keys.
const anyShard = 999_999_999

// puts has prepared answers to PutRecords.
type puts struct {
	mu      sync.Mutex // guards answers
	answers map[putKey][]byte
}

type putKey struct {
	f       format
	records int
}

// putRecords answers with a result for each record.
func (s *Server) putRecords(w http.ResponseWriter, f format, body []byte) error {
	mark := []byte(`"Data":`)
	if f == cborFormat {
		mark = []byte("\x64Data")
	}
	n := bytes.Count(body, mark)
	if n == 0 {
		return fmt.Errorf("no records")
	}
	b := s.puts.answer(f, n)
	w.Header().Set("Content-Type", f.contentType())
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	s.write(w, b)
	return nil
}

func (p *puts) answer(f format, n int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := putKey{f, n}
	if b := p.answers[key]; b != nil {
		return b
	}
	var b []byte
	if f == cborFormat {
		b = appendHead(appendText(append(b, cborMap|2), "FailedRecordCount"), cborUint, 0)
		b = appendHead(appendText(b, "Records"), cborArray, uint64(n))
	} else {
		b = append(b, `{"FailedRecordCount":0,"Records":[`...)
	}
	for i := range n {
		if f == cborFormat {
			b = appendText(appendText(append(b, cborMap|2), "SequenceNumber"), sequence(i))
			b = appendText(appendText(b, "ShardId"), shardID(anyShard))
			continue
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"SequenceNumber":"%s","ShardId":"%s"}`, sequence(i), shardID(anyShard))
	}
	if f == jsonFormat {
		b = append(b, `]}`...)
	}
	if p.answers == nil {
		p.answers = map[putKey][]byte{}
	}
	p.answers[key] = b
	return b
}
