package kinesistest

import (
	"net/http"
	"strconv"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// shape is the format of an error.
type shape int

const (
	inFormat shape = iota // in the format of the request
	inXML                 // in XML, for errors before the service knows the format
	inOutput              // for application/json, which the service maps to an obsolete protocol
)

// undetermined returns the error for a request that cannot be a call.
func undetermined(x *exchange) *Error {
	x.shape = inXML
	return &Error{"AccessDeniedException", "Unable to determine service/operation name to be authorized", 403}
}

// refuse sends an error as the answer.
func (s *Server) refuse(x *exchange, e *Error) {
	s.debug(x, e.Status, e.Code)
	body, contentType := s.written(x, e)
	h := x.w.Header()
	h["Content-Type"] = nil // otherwise net/http would guess
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	h.Set("X-Amzn-Errortype", e.Code)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(e.Status)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(body) // the client may have disconnected
	}
}

func (s *Server) written(x *exchange, e *Error) (body []byte, contentType string) {
	switch {
	case x.shape == inXML && e.Message == "":
		return []byte("<" + e.Code + "/>\n"), ""
	case x.shape == inXML:
		return []byte("<" + e.Code + ">\n  <Message>" + e.Message + "</Message>\n</" + e.Code + ">\n"), ""
	case x.shape == inOutput:
		return []byte(`{"Output":{"__type":"com.amazon.coral.service#` + e.Code + `"},"Version":"1.0"}`), "application/json"
	}
	out := codec.NewEncoder(x.format, nil, s.cfg.IndefiniteCBOR)
	out.Map()
	out.Key("__type").Text(e.Code)
	switch {
	case e.Message == "": // the service sends some errors without a text
	case e.Code == "SerializationException": // the service capitalizes this field name
		out.Key("Message").Text(e.Message)
	default:
		out.Key("message").Text(e.Message)
	}
	out.End()
	return out.Bytes(), x.format.ContentType()
}
