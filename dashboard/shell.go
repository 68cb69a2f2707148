package dashboard

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"time"
)

// slowLook is the duration of a read of the store from which a page sends its shell first.
const slowLook = 300 * time.Millisecond

// shell is an answer whose first part, the shell of the page, is sent. The status of such an answer
// is 200.
type shell struct {
	http.ResponseWriter
	out io.Writer
	zip *gzip.Writer // nil if the answer is not compressed
}

// sendShell sends the shell of a page to a browser if the data is not at hand. It returns the
// writer for the answer. Other clients, such as probes, get the whole answer at once, because its
// status depends on the data.
func (h *handler) sendShell(w http.ResponseWriter, r *http.Request, head pageHead, atHand bool) http.ResponseWriter {
	if atHand || r.Method != http.MethodGet || r.URL.Query().Get("part") != "" ||
		!strings.Contains(r.Header.Get("Accept"), "text/html") {
		return w
	}
	head.Loading = true
	s := &shell{ResponseWriter: w, out: w}
	setKind(w, "text/html; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no") // asks nginx to pass the shell on
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		s.zip = gzip.NewWriter(w)
		s.out = s.zip
	}
	w.WriteHeader(http.StatusOK)
	var text bytes.Buffer
	if err := pages.ExecuteTemplate(&text, "shell", head); err == nil {
		_, _ = s.out.Write(withoutControls(text.Bytes())) // the client may have disconnected
	}
	if s.zip != nil {
		_ = s.zip.Flush() // as above
	}
	_ = http.NewResponseController(w).Flush() // without it the shell arrives with the data
	return s
}

// finish sends the rest of the page.
func (s *shell) finish(text []byte) {
	_, _ = s.out.Write(text) // the client may have disconnected
	if s.zip != nil {
		_ = s.zip.Close()
	}
}
