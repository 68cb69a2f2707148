package kinesistest

import (
	"net/http"
	"strconv"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// shape is how an error is written down.
type shape int

const (
	inFormat shape = iota // as the answer would have been
	inXML                 // before the service knows of a format
	inOutput              // for application/json, which the service takes for a protocol long gone
)

// undetermined is the answer to what cannot be a call at all.
func undetermined(x *exchange) *Error {
	x.shape = inXML
	return &Error{"AccessDeniedException", "Unable to determine service/operation name to be authorized", 403}
}

// refuse answers with an error.
func (s *Server) refuse(x *exchange, e *Error) {
	s.debug(x, e.Status, e.Code)
	body, contentType := s.written(x, e)
	h := x.w.Header()
	h["Content-Type"] = nil // or net/http would guess
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	h.Set("X-Amzn-Errortype", e.Code)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(e.Status)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(body) // there is nobody to tell about a client that went away
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
	case e.Message == "": // the service has some that say nothing
	case e.Code == "SerializationException": // the one that spells it with a capital
		out.Key("Message").Text(e.Message)
	default:
		out.Key("message").Text(e.Message)
	}
	out.End()
	return out.Bytes(), x.format.ContentType()
}
