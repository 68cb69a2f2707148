package history

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-go/weir/lease"
)

const (
	version = 1
	// MostMinutes is the maximum number of minutes in a chunk.
	MostMinutes = 60
	// mostName is the maximum number of bytes of a worker's name in a chunk.
	mostName = 40
	// unit is the size that DynamoDB writes for one write unit. It includes the keys and the names
	// of attributes.
	unit = 1024
	// beside is the size of a row without the data and without the names of application and
	// session.
	beside = 64
)

// Room returns the maximum size of a session's chunks. A row with a chunk of this size costs one of
// DynamoDB's write units. Room returns at least 256, even if the names of the application and the
// session are long.
func Room(app, session string) int { return max(unit-beside-len(app)-len(session), 256) }

// Writer puts samples into chunks. It is not safe for concurrent use.
type Writer struct {
	room    int
	name    string
	since   int64
	last    int64 // the minute of the last block
	data    []byte
	streams map[string]uint64
	places  map[lease.Key]int
	before  []values // by index in the table
}

// NewWriter returns a Writer for the worker with the given name. Each chunk contains the beginning
// of the name. A chunk has at most room bytes, unless a single minute needs more.
func NewWriter(room int, name string) *Writer {
	name = strings.ToValidUTF8(name, "\uFFFD")
	for len(name) > mostName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return &Writer{room: room, name: name}
}

// Add adds the samples of a minute to the current chunk, at most one for each shard. If the chunk
// is full, Add begins another chunk. It returns the chunk with the samples. If the samples of one
// minute exceed [lease.MaxHistoryBytes], Add omits the last ones.
func (w *Writer) Add(minute int64, samples []Sample) (since int64, data []byte) {
	if w.data != nil && minute >= w.last && minute < w.since+MostMinutes {
		w.block(minute, samples)
		if len(w.data) <= w.room {
			return w.since, slices.Clone(w.data)
		}
	}
	w.begin(minute)
	w.block(minute, samples)
	for len(w.data) > lease.MaxHistoryBytes {
		samples = samples[:len(samples)*9/10]
		w.begin(minute)
		w.block(minute, samples)
	}
	return w.since, slices.Clone(w.data)
}

func (w *Writer) begin(minute int64) {
	w.since, w.last = minute, minute
	w.data = binary.AppendUvarint(append(w.data[:0], version), uint64(minute))
	w.data = append(binary.AppendUvarint(w.data, uint64(len(w.name))), w.name...)
	w.streams, w.places, w.before = map[string]uint64{}, map[lease.Key]int{}, nil
}

func (w *Writer) block(minute int64, samples []Sample) {
	w.data = binary.AppendUvarint(w.data, uint64(minute-w.last))
	w.last = minute
	added := 0
	for i := range samples {
		if _, known := w.places[samples[i].Key]; !known {
			w.places[samples[i].Key] = len(w.before) + added
			added++
		}
	}
	w.data = binary.AppendUvarint(w.data, uint64(added))
	first := len(w.before)
	at := make([]*Sample, first+added)
	for i := range samples {
		place := w.places[samples[i].Key]
		if at[place] == nil && place >= first {
			w.entry(samples[i].Key)
		}
		at[place] = &samples[i]
	}
	w.before = append(w.before, make([]values, added)...)
	for place, s := range at {
		if s == nil {
			w.data = append(w.data, 0)
			continue
		}
		w.sample(place, s)
	}
}

// entry adds a shard to the table.
func (w *Writer) entry(k lease.Key) {
	stream, known := w.streams[k.Stream]
	if !known {
		stream = uint64(len(w.streams))
		w.streams[k.Stream] = stream
	}
	w.data = binary.AppendUvarint(w.data, stream)
	if !known {
		w.data = append(binary.AppendUvarint(w.data, uint64(len(k.Stream))), k.Stream...)
	}
	if n, ok := numberOf(k.Shard); ok {
		w.data = binary.AppendUvarint(w.data, n<<1|1)
		return
	}
	w.data = append(binary.AppendUvarint(w.data, uint64(len(k.Shard))<<1), k.Shard...)
}

func (w *Writer) sample(place int, s *Sample) {
	at := len(w.data)
	w.data = append(w.data, held)
	now := valuesOf(*s)
	for i, b := range now {
		if b != w.before[place][i] {
			w.data[at] |= 1 << i
			w.data = append(w.data, b)
		}
	}
	marks := s.Marks
	if s.Throttled > 0 {
		marks &^= lasting // the byte of the throttling contains them
	}
	if marks != 0 {
		w.data[at] |= hasMarks
		w.data = append(w.data, byte(marks))
	}
	if s.Throttled > 0 {
		w.data[at] |= hasThrottled
		w.data = append(w.data, throttledByte(s))
	}
	w.before[place] = now
}
