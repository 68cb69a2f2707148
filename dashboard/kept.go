package dashboard

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
)

// mostKept is the maximum number of views that are kept of one read of an application.
const mostKept = 32

// kept contains the views of one read of an application, so that several browsers share a view.
type kept struct {
	mu    sync.Mutex
	views map[string][]byte
}

// view returns the view with this name. If it is not kept yet, make makes it.
func (k *kept) view(name string, make func() ([]byte, error)) ([]byte, error) {
	if k == nil {
		return make()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if text, there := k.views[name]; there {
		return text, nil
	}
	text, err := make()
	if err == nil && len(k.views) < mostKept {
		if k.views == nil {
			k.views = map[string][]byte{}
		}
		k.views[name] = text
	}
	return text, err
}

// tagOf returns the entity tag of a text.
func tagOf(text []byte) string {
	sum := sha256.Sum256(text)
	return `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// unchanged sets the entity tag of an answer, and answers with 304 if the client has this text.
func unchanged(w http.ResponseWriter, r *http.Request, text []byte) bool {
	tag := tagOf(text)
	w.Header().Set("ETag", tag)
	if !matches(r.Header.Get("If-None-Match"), tag) {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

// matches reports whether the value of If-None-Match matches an entity tag. "*" matches any.
func matches(header, tag string) bool {
	return strings.TrimSpace(header) == "*" || strings.Contains(header, tag)
}
