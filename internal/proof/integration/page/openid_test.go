package page_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// The provider knows one client. It identifies the user by a cookie of the browser.
const (
	clientID     = "weir"
	clientSecret = "the client's secret"
	ssoCookie    = "sso"
)

// provider is an OpenID provider without a sign-in form. Its answers are those of OpenID Connect
// Core for the authorization code flow.
type provider struct {
	url      string
	redirect string // the only allowed redirect
	key      *rsa.PrivateKey

	mu     sync.Mutex
	grants map[string]grant // by code; each can be used once
}

type grant struct{ email, nonce string }

func openID(t *testing.T, redirect string) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{redirect: redirect, key: key, grants: map[string]grant{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.serveDiscovery)
	mux.HandleFunc("GET /authorize", p.serveAuthorize)
	mux.HandleFunc("POST /token", p.serveToken)
	mux.HandleFunc("GET /keys", p.serveKeys)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *provider) serveDiscovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]any{
		"issuer": p.url, "authorization_endpoint": p.url + "/authorize", "token_endpoint": p.url + "/token", "jwks_uri": p.url + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"},
	})
}

func (p *provider) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	who, err := r.Cookie(ssoCookie)
	scopes := " " + q.Get("scope") + " "
	if err != nil || q.Get("response_type") != "code" || q.Get("client_id") != clientID || q.Get("redirect_uri") != p.redirect || !strings.Contains(scopes, " openid ") {
		http.Error(w, "not so: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.grants[code] = grant{who.Value, q.Get("nonce")}
	p.mu.Unlock()
	http.Redirect(w, r, p.redirect+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (p *provider) serveToken(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if basic { // both are encoded before they are joined
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	code := r.PostFormValue("code")
	p.mu.Lock()
	of, granted := p.grants[code]
	delete(p.grants, code)
	p.mu.Unlock()
	if id != clientID || secret != clientSecret || !granted || r.PostFormValue("grant_type") != "authorization_code" || r.PostFormValue("redirect_uri") != p.redirect {
		w.WriteHeader(http.StatusBadRequest)
		answer(w, map[string]any{"error": "invalid_grant"})
		return
	}
	token, err := p.sign(map[string]any{
		"iss": p.url, "aud": clientID, "sub": subject(of.email), "nonce": of.nonce, "email": of.email, "email_verified": true,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 3600, "id_token": token})
}

func (p *provider) serveKeys(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]any{"keys": []map[string]any{{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1",
		"n": base64.RawURLEncoding.EncodeToString(p.key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(p.key.E)).Bytes()),
	}}})
}

// sign returns a signed JSON web token with the claims.
func (p *provider) sign(claims map[string]any) (string, error) {
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	token := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"1","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(body)
	hash := sha256.Sum256([]byte(token))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, hash[:])
	return token + "." + base64.RawURLEncoding.EncodeToString(signature), err
}

// subject returns the provider's opaque identifier of a user.
func subject(email string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(email)))[:16] }

func answer(w http.ResponseWriter, data map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(data) // the client may have disconnected
}
