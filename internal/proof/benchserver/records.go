package benchserver

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
)

// format is the encoding of requests and answers.
type format int

const (
	jsonFormat format = iota
	cborFormat
)

func (f format) contentType() string {
	if f == cborFormat {
		return "application/x-amz-cbor-1.1"
	}
	return "application/x-amz-json-1.1"
}

// record contains the fields of a record.
type record struct {
	sequence, key string
	arrival       int64 // in milliseconds
	data          []byte
}

// A sequence number has 56 digits: a common prefix, the index of the record, and a common suffix.
const (
	sequenceHead = "49668899999999999999"
	sequenceTail = "0000000314159266"
	indexDigits  = 20
)

func sequence(index int) string {
	return fmt.Sprintf("%s%0*d%s", sequenceHead, indexDigits, index, sequenceTail)
}

func indexOf(sequence string) (int, error) {
	digits, ok := strings.CutPrefix(sequence, sequenceHead)
	if ok {
		digits, ok = strings.CutSuffix(digits, sequenceTail)
	}
	if !ok || len(digits) != indexDigits {
		return 0, fmt.Errorf("%.100q is no sequence number of this server", sequence)
	}
	return strconv.Atoi(digits)
}

// An iterator has the length of the service's iterators. It contains the shard and the index of the
// next record.
const (
	iteratorHead   = "AAAAAAAAAAG-"
	iteratorLength = 224
)

// Iterator returns an iterator for a shard and a record, both counted from 0.
func Iterator(shard, index int) string {
	b := fmt.Appendf(make([]byte, 0, iteratorLength), "%s%08x%016x", iteratorHead, shard, index)
	for len(b) < iteratorLength {
		b = append(b, "Kinesis+"[len(b)%8])
	}
	return string(b)
}

func parseIterator(it string) (shard, index int, err error) {
	const shardAt, indexAt, end = len(iteratorHead), len(iteratorHead) + 8, len(iteratorHead) + 24
	if len(it) != iteratorLength || !strings.HasPrefix(it, iteratorHead) {
		return 0, 0, fmt.Errorf("%.100q is no iterator of this server", it)
	}
	s, err := strconv.ParseUint(it[shardAt:indexAt], 16, 31)
	if err == nil {
		var i uint64
		i, err = strconv.ParseUint(it[indexAt:end], 16, 62)
		return int(s), int(i), err
	}
	return 0, 0, err
}

// stock contains the records of a shard in encoded form. All records have the same size, so any
// sequence of records can be copied.
type stock struct {
	count, size int
	keys        int // 0 means that each record has its own key
	zipf        bool
	began       time.Time
	formats     [2]struct {
		once  sync.Once
		bytes []byte // in JSON, with a comma after each record
		each  int    // bytes per record
	}
}

// encoded returns the records from index from up to index to, encoded as the elements of a list.
func (s *stock) encoded(f format, from, to int) []byte {
	e := &s.formats[f]
	e.once.Do(func() {
		random := rand.New(rand.NewPCG(1, 2))
		data := make([]byte, s.size)
		key := func(i int) int { return i }
		if s.keys > 0 {
			key = func(int) int { return random.IntN(s.keys) }
		}
		if s.zipf {
			often := rand.NewZipf(random, 1.1, 1, uint64(max(s.keys, 1)-1))
			key = func(int) int { return int(often.Uint64()) }
		}
		for i := range s.count {
			for j := 0; j < len(data); j += 8 {
				var b [8]byte
				binary.LittleEndian.PutUint64(b[:], random.Uint64())
				copy(data[j:], b[:])
			}
			// There is one record per millisecond. The time is in the past, so that all times have
			// the same number of digits.
			r := record{sequence(i), fmt.Sprintf("%036d", key(i)), s.began.UnixMilli() + int64(i), data}
			before := len(e.bytes)
			e.bytes = appendRecord(e.bytes, f, &r)
			if f == jsonFormat {
				e.bytes = append(e.bytes, ',')
			}
			if i == 0 {
				e.each = len(e.bytes) - before
				e.bytes = append(make([]byte, 0, e.each*s.count), e.bytes...)
			}
		}
	})
	if from >= to {
		return nil
	}
	b := e.bytes[from*e.each : to*e.each]
	if f == jsonFormat {
		b = b[:len(b)-1]
	}
	return b
}

// appendRecord appends a record. The fields have the same order as in kinesistest.
func appendRecord(b []byte, f format, r *record) []byte {
	if f == jsonFormat {
		b = fmt.Appendf(b, `{"SequenceNumber":"%s","ApproximateArrivalTimestamp":%d.%03d,"Data":"`, r.sequence, r.arrival/1000, r.arrival%1000)
		b = base64.StdEncoding.AppendEncode(b, r.data)
		return fmt.Appendf(b, `","PartitionKey":"%s"}`, r.key)
	}
	b = append(b, cborMap|4)
	b = appendText(appendText(b, "SequenceNumber"), r.sequence)
	b = appendHead(append(appendText(b, "ApproximateArrivalTimestamp"), cborTag|1), cborUint, uint64(r.arrival))
	b = append(appendHead(appendText(b, "Data"), cborBytes, uint64(len(r.data))), r.data...)
	return appendText(appendText(b, "PartitionKey"), r.key)
}

// appendPageHead appends the part of a page before its records. appendPageTail appends the part
// after them.
func appendPageHead(b []byte, f format, behind int64, next string, records int) []byte {
	if f == jsonFormat {
		return fmt.Appendf(b, `{"MillisBehindLatest":%d,"NextShardIterator":"%s","Records":[`, behind, next)
	}
	b = appendHead(appendText(append(b, cborMap|3), "MillisBehindLatest"), cborUint, uint64(behind))
	b = appendText(appendText(b, "NextShardIterator"), next)
	return appendHead(appendText(b, "Records"), cborArray, uint64(records))
}

func appendPageTail(b []byte, f format) []byte {
	if f == jsonFormat {
		return append(b, `]}`...)
	}
	return b
}

// appendEventHead appends the part of an event before its records. appendEventTail appends the part
// after them.
func appendEventHead(b []byte, f format, records int) []byte {
	if f == jsonFormat {
		return append(b, `{"Records":[`...)
	}
	return appendHead(appendText(append(b, cborMap|3), "Records"), cborArray, uint64(records))
}

func appendEventTail(b []byte, f format, continuation string, behind int64) []byte {
	if f == jsonFormat {
		return fmt.Appendf(b, `],"ContinuationSequenceNumber":"%s","MillisBehindLatest":%d}`, continuation, behind)
	}
	b = appendText(appendText(b, "ContinuationSequenceNumber"), continuation)
	return appendHead(appendText(b, "MillisBehindLatest"), cborUint, uint64(behind))
}

const (
	cborUint  = 0 << 5
	cborBytes = 2 << 5
	cborText  = 3 << 5
	cborArray = 4 << 5
	cborMap   = 5 << 5
	cborTag   = 6 << 5
)

func appendText(b []byte, s string) []byte {
	return append(appendHead(b, cborText, uint64(len(s))), s...)
}

func appendHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n < 1<<8:
		return append(b, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, major|27), n)
	}
}
