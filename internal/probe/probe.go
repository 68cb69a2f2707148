// Package probe serves health checks over HTTP.
package probe

import (
	"encoding/json"
	"net/http"
	"path"

	"github.com/weir-go/weir/internal/hostcheck"
)

// A Check returns the body of an answer, as a value for JSON, and whether the check passed.
type Check func() (body any, ok bool)

// Handler serves live under paths that end in /livez, and ready under paths that end in /readyz.
// The status is 200, or 503 if the check did not pass.
//
// Other paths get 404, and methods other than GET and HEAD get 405. Requests that
// [hostcheck.Allows] does not allow get 403. The answer contains nothing from the request.
func Handler(live, ready Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !hostcheck.Allows(req) {
			http.Error(w, "over a loopback address, health checks are served only to requests for localhost and IP addresses", http.StatusForbidden)
			return
		}
		var check Check
		switch path.Base(req.URL.Path) {
		case "livez":
			check = live
		case "readyz":
			check = ready
		default:
			http.NotFound(w, req)
			return
		}
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		answer, ok := check()
		status := http.StatusOK
		if !ok {
			status = http.StatusServiceUnavailable
		}
		body, err := json.Marshal(answer)
		if err != nil { // cannot be
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		if req.Method == http.MethodGet {
			_, _ = w.Write(append(body, '\n')) // the caller may have left
		}
	})
}
