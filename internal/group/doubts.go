package group

import (
	"errors"
	"time"

	"github.com/weir-go/weir/internal/errtext"
	"github.com/weir-go/weir/lease"
)

// doubtPause is the minimum time from the beginning of a listing to a listing that is due only
// because of a doubt. A worker may report the same failure for hours.
const doubtPause = 10 * time.Second

// doubt adds the streams that should be listed because a worker reports that Kinesis does not know
// the stream, the shard or the position. The stream was probably deleted, or deleted and created
// again. The report only makes a listing due: what happens to leases depends on the listing.
func (s *listings) doubt(workers []lease.Worker, now time.Time, due map[string]bool) {
	for i := range workers {
		if workers[i].Ended {
			continue
		}
		for _, t := range workers[i].Troubles {
			if due[t.Stream] || !doubts(t) {
				continue
			}
			if l := s.streams[t.Stream]; l != nil && now.Sub(l.began) >= doubtPause {
				due[t.Stream] = true
			}
		}
	}
}

// doubts reports whether a trouble may mean that the stream was deleted.
func doubts(t lease.Trouble) bool {
	if t.Stream == "" || t.Failing.Attempts > 0 || t.Failing.Letters {
		return false // it is about the handler, whose errors may contain any text
	}
	return errtext.Unknown(t.Why) || errtext.Refused(t.Why)
}

// pause returns the time until a failed listing is repeated. If the stream does not exist, it is
// short, because workers begin to read a stream that was created again only after its listing.
func (l *listed) pause(err error, cfg Config) time.Duration {
	most := min(cfg.Times.Heartbeat<<min(l.errors, 5), cfg.ListInterval)
	if errors.Is(err, ErrNoStream) {
		return min(most, doubtPause)
	}
	return most
}
