package wire

import (
	"errors"

	"github.com/weir-go/weir/internal/http1"
)

// strange handles an answer that this package's HTTP client could not parse. The server or a proxy
// may have sent it. From then on, net/http makes all calls to the endpoint, because it tolerates
// more.
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
