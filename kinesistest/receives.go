package kinesistest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// receives contains the calls of clients of this server that receive from queues. When the call of
// a client fails, for example because its context has ended, the server knows at once that the
// client has gone. It would notice the end of the connection only a moment later, and a record that
// is put in between would be hidden until the end of its hold.
type receives struct {
	mu   sync.Mutex // guards the fields below
	last int
	open map[string]chan struct{} // closed when the call has failed
}

// receiveHeader identifies the call in its request.
const receiveHeader = "X-Kinesistest-Receive"

// isReceive reports whether a request receives from a queue.
func isReceive(r *http.Request) bool {
	target := r.Header.Get("X-Amz-Target")
	return strings.HasSuffix(target, ".ReceiveQueueRecords") || strings.HasSuffix(target, ".ReceiveDeadLetterQueueRecords")
}

// begin returns the header of a call. The caller calls end when the call has returned.
func (rs *receives) begin() (id string, end func(failed bool)) {
	gone := make(chan struct{})
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.last++
	id = fmt.Sprintf("%p-%d", rs, rs.last)
	if rs.open == nil {
		rs.open = map[string]chan struct{}{}
	}
	rs.open[id] = gone
	return id, func(failed bool) {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		delete(rs.open, id)
		if failed {
			close(gone)
		}
	}
}

// of returns a channel that is closed when the client of a request has gone. Requests of other
// clients have none.
func (rs *receives) of(r *http.Request) <-chan struct{} {
	id := r.Header.Get(receiveHeader)
	if !strings.HasPrefix(id, fmt.Sprintf("%p-", rs)) {
		return nil
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if gone, ok := rs.open[id]; ok {
		return gone
	}
	gone := make(chan struct{})
	close(gone)
	return gone
}

// left reports whether the client of a receive has gone.
func left(ctx context.Context, gone <-chan struct{}) bool {
	select {
	case <-gone:
		return true
	default:
		return ctx.Err() != nil
	}
}
