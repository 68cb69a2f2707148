package benchserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Server is an HTTP handler. It is safe for concurrent use.
type Server struct {
	cfg   Config
	stock *stock
	stats *counters
	puts  atomic.Int64 // number of records that were put
}

// NewServer returns a server. It returns an error if cfg is invalid.
func NewServer(cfg Config) (*Server, error) {
	if cfg.Page == 0 {
		cfg.Page = maxPage
	}
	if cfg.Shards < 1 || cfg.Records < 0 || cfg.Page < 1 || cfg.Page > maxPage || cfg.Bytes < 0 || (cfg.Bytes == 0 && cfg.Records > 0) {
		return nil, fmt.Errorf("benchserver: %+v has too few or too many of something", cfg)
	}
	if cfg.Records > 0 { // pages of the service have at most 10 MiB
		cfg.Page = max(1, min(cfg.Page, maxPageBytes/cfg.Bytes))
	}
	return &Server{
		cfg: cfg, stock: &stock{count: cfg.Records, size: cfg.Bytes, keys: cfg.Keys, zipf: cfg.Zipf, began: time.Now().Add(-time.Hour)}, stats: newCounters(cfg),
	}, nil
}

const (
	maxPage      = 10_000
	maxPageBytes = 10 << 20
	maxRequest   = 11 << 20
)

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(body)
	body.Reset()
	if _, err := io.Copy(body, http.MaxBytesReader(w, r.Body, maxRequest)); err != nil {
		return // the client disconnected
	}
	action, _ := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "Kinesis_20131202.")
	f := jsonFormat
	if r.Header.Get("Content-Type") == cborFormat.contentType() {
		f = cborFormat
	}
	s.stats.called(action)
	if s.cfg.Delay > 0 {
		select {
		case <-time.After(s.cfg.Delay):
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("X-Amzn-Requestid", "00000000-0000-4000-8000-000000000000")
	var err error
	switch action {
	case "GetRecords":
		err = s.getRecords(w, f, body.Bytes())
	case "PutRecords":
		err = s.putRecords(w, f, body.Bytes())
	case "SubscribeToShard":
		err = s.subscribe(w, r, f, body.Bytes())
	default:
		err = s.control(w, action, f, body.Bytes())
	}
	if err != nil {
		w.Header().Set("Content-Type", jsonFormat.contentType())
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"__type":"InvalidArgumentException","message":%q}`, err)
	}
}

// getRecords answers with prepared records between a new head and tail.
func (s *Server) getRecords(w http.ResponseWriter, f format, body []byte) error {
	at := bytes.Index(body, []byte(iteratorHead))
	if at < 0 || len(body) < at+iteratorLength {
		return errors.New("no iterator of this server")
	}
	shard, from, err := parseIterator(string(body[at : at+iteratorLength]))
	if err != nil {
		return err
	}
	limit, err := limitOf(f, body)
	if err != nil {
		return err
	}
	if shard >= s.cfg.Shards || from > s.cfg.Records {
		return fmt.Errorf("the iterator is for record %d of shard %d", from, shard)
	}
	defer s.stats.read(shard, from)()
	to := min(from+min(limit, s.cfg.Page), s.cfg.Records)
	head := appendPageHead(make([]byte, 0, 512), f, s.behind(to), Iterator(shard, to), to-from)
	records, tail := s.stock.encoded(f, from, to), appendPageTail(nil, f)
	h := w.Header()
	h.Set("Content-Type", f.contentType())
	h.Set("Content-Length", strconv.Itoa(len(head)+len(records)+len(tail)))
	s.write(w, head)
	for s.cfg.Pause > 0 && len(records) > 0 {
		n := min(64<<10, len(records))
		s.write(w, records[:n])
		records = records[n:]
		<-time.After(s.cfg.Pause)
	}
	s.write(w, records)
	s.write(w, tail)
	return nil
}

func (s *Server) write(w io.Writer, p []byte) {
	if len(p) > 0 {
		_, _ = w.Write(p) // the client may have disconnected
	}
}

// behind returns the lag of a page that ends before the record to.
func (s *Server) behind(to int) int64 {
	if s.cfg.Live {
		return 0
	}
	return int64(s.cfg.Records - to)
}

// limitOf returns the Limit in a request. The default is 10,000.
func limitOf(f format, body []byte) (int, error) {
	n, err := maxPage, error(nil)
	if f == jsonFormat {
		if _, after, ok := bytes.Cut(body, []byte(`"Limit":`)); ok {
			n, err = strconv.Atoi(string(bytes.TrimSpace(after[:max(0, bytes.IndexAny(after, ",}"))])))
		}
	} else if _, after, ok := bytes.Cut(body, []byte("\x65Limit")); ok {
		switch {
		case len(after) > 0 && after[0] < 24:
			n = int(after[0])
		case len(after) > 1 && after[0] == 24:
			n = int(after[1])
		case len(after) > 2 && after[0] == 25:
			n = int(after[1])<<8 | int(after[2])
		default:
			n = 0
		}
	}
	if err != nil || n < 1 || n > maxPage {
		return 0, errors.New("Limit must be between 1 and 10,000")
	}
	return n, nil
}
