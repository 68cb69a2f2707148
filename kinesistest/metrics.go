package kinesistest

import (
	"net/http"
	"strconv"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
	"github.com/weir-go/weir/kinesistest/internal/engine"
)

// metricsPath is the path to which AWS SDKs send CloudWatch's GetMetricData in CBOR.
const metricsPath = "/service/GraniteServiceVersion20100801/operation/GetMetricData"

// serveMetrics answers GetMetricData for the documented metrics of queues, so that tools work with
// this server as with AWS. Other metrics have no values.
func (s *Server) serveMetrics(x *exchange) *Error {
	if x.r.Method != http.MethodPost {
		return undetermined(x)
	}
	if err := readBody(x); err != nil {
		return err
	}
	defer x.release()
	x.format, x.action = codec.CBOR, "GetMetricData"
	if err := checkSignature(x.r); err != nil {
		return err
	}
	var ask engine.QueueMetrics
	d := codec.NewDecoder(codec.CBOR, x.body.Bytes())
	if err := ask.Decode(d); err != nil {
		return &Error{"SerializationException", err.Error(), 400}
	}
	out := codec.NewEncoder(codec.CBOR, nil, false)
	s.engine.Answer(time.Now(), &ask, out)
	h := x.w.Header()
	h.Set("Content-Type", "application/cbor")
	h.Set("Smithy-Protocol", "rpc-v2-cbor")
	h.Set("Content-Length", strconv.Itoa(len(out.Bytes())))
	_, _ = x.w.Write(out.Bytes()) // the client may have disconnected
	return nil
}
