package wire

import (
	"errors"

	"github.com/weir-go/weir/internal/http1"
)

// strange notes what our own HTTP client made of an answer. One that it does not understand, of a
// server or of something in between, has net/http make all further calls to the endpoint: that
// bears more. It is told once for each host.
func (c *Caller) strange(ep *endpoint, err error) {
	if ep == nil || !errors.Is(err, http1.ErrMalformed) && !errors.Is(err, http1.ErrHeadTooLarge) || ep.strange.Swap(true) {
		return
	}
	c.fell.Store(true)
	host := ep.url.Scheme + "://" + ep.url.Host
	if _, told := c.strangers.LoadOrStore(host, true); !told && c.opts.FellBack != nil {
		c.opts.FellBack(host, err)
	}
}
