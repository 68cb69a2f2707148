package benchserver

import (
	"encoding/json"
	"net/http"
	"time"
)

// idleEvent is the interval of empty events at the tip.
const idleEvent = 5 * time.Second

// subscribe sends all events from a position on, as fast as the client reads. The stream then ends,
// as if its time was over. A stream that began at the tip stays open.
func (s *Server) subscribe(w http.ResponseWriter, r *http.Request, f format, body []byte) error {
	var in struct {
		ShardId          string
		StartingPosition position
	}
	if f != jsonFormat {
		return errOnlyJSON
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	shard, err := s.shard(in.ShardId)
	if err != nil {
		return err
	}
	at, err := s.index(in.StartingPosition)
	if err != nil {
		return err
	}
	defer s.stats.read(shard, at)()
	w.Header().Set("Content-Type", eventStreamType)
	initial := append(appendFrameHead(nil, "initial-response", f, 2), "{}"...)
	s.write(w, initial)
	s.write(w, checksum(initial))
	flush := http.NewResponseController(w)
	if err := flush.Flush(); err != nil {
		return nil
	}
	for at < s.cfg.Records {
		to := min(at+s.cfg.Page, s.cfg.Records)
		s.event(w, f, at, to)
		if at = to; r.Context().Err() != nil || at == s.cfg.Records {
			return nil
		}
	}
	for r.Context().Err() == nil {
		s.event(w, f, at, at)
		_ = flush.Flush()
		select {
		case <-time.After(idleEvent):
		case <-r.Context().Done():
		}
	}
	return nil
}

// event sends the records from index from up to index to in one event.
func (s *Server) event(w http.ResponseWriter, f format, from, to int) {
	records := s.stock.encoded(f, from, to)
	open := appendEventHead(nil, f, to-from)
	end := appendEventTail(nil, f, sequence(max(0, to-1)), s.behind(to))
	head := append(appendFrameHead(nil, "SubscribeToShardEvent", f, len(open)+len(records)+len(end)), open...)
	s.write(w, head)
	s.write(w, records)
	s.write(w, end)
	s.write(w, checksum(head, records, end))
}
