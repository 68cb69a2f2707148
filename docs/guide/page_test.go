package guide

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

func mountPage(mux *http.ServeMux, store lease.Store, client *kinesis.Client) {
	mux.Handle("/tools/weir/", dashboard.Handler(store, dashboard.Options{
		Prefix:  "/tools/weir",
		Kinesis: client,
	}))
}

func TestThePageIsThere(t *testing.T) {
	mux := http.NewServeMux()
	mountPage(mux, memstore.New(), kinesistest.NewServer(t).Client())
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/tools/weir/", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "No application has anything in this store.") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
