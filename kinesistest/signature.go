package kinesistest

import (
	"net/http"
	"net/url"
	"strings"
)

// checkSignature requires a complete signature of version 4, in the header or in the query. It does
// not check the key. The error texts are those of the service.
func checkSignature(r *http.Request) *Error {
	auth, query := r.Header.Get("Authorization"), r.URL.Query()
	switch inQuery := query.Has("X-Amz-Algorithm"); {
	case auth != "" && inQuery:
		return &Error{"InvalidSignatureException", "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.", 400}
	case auth != "":
		return checkAuthorization(r, auth)
	case inQuery:
		return checkPresigned(query)
	}
	return &Error{"MissingAuthenticationTokenException", "Missing Authentication Token", 400}
}

func checkAuthorization(r *http.Request, auth string) *Error {
	given := map[string]bool{}
	for i, part := range strings.FieldsFunc(auth, func(c rune) bool { return c == ',' || c == ' ' }) {
		// The first part is the algorithm.
		if name, value, _ := strings.Cut(part, "="); i > 0 && value != "" {
			given[name] = true
		}
	}
	var why strings.Builder
	for _, name := range []string{"Credential", "Signature", "SignedHeaders"} {
		if !given[name] {
			why.WriteString("Authorization header requires '" + name + "' parameter. ")
		}
	}
	if r.Header.Get("X-Amz-Date") == "" && r.Header.Get("Date") == "" {
		why.WriteString("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ")
	}
	if why.Len() == 0 {
		return nil
	}
	return &Error{"IncompleteSignatureException", why.String() + "Authorization=" + auth, 400}
}

func checkPresigned(query url.Values) *Error {
	var why strings.Builder
	for _, name := range []string{"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Signature", "X-Amz-SignedHeaders", "X-Amz-Date"} {
		if query.Get(name) == "" {
			why.WriteString("AWS query-string parameters must include '" + name + "'. ")
		}
	}
	if why.Len() == 0 {
		return nil
	}
	return &Error{"IncompleteSignatureException", why.String() + "Re-examine the query-string parameters.", 400}
}
