// Package redact removes passwords from texts for users and logs.
package redact

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// hidden replaces a removed secret.
const hidden = "xxxxx"

// shown lists the parameters of a store's URL that are not secret. All others are hidden, because
// drivers have too many parameters to list the secret ones.
var shown = []string{"weir_prefix", "weir_schema", "weir_replicas", "sslmode", "tls", "addr", "db", "protocol", "master_name"}

// URL removes the password from a URL, and parameters that may contain one. Some texts are not
// valid URLs, for example a driver's data source name, or a URL with an unescaped character. Such a
// text is cut off where a password could begin.
func URL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Opaque != "" || strings.Contains(u.Path+u.Fragment, "@") {
		return cut(s)
	}
	u.Fragment, u.RawFragment = "", "" // a # may be part of a password
	query := u.Query()
	for name := range query {
		if !slices.Contains(shown, name) {
			// Remove the name too. If a password contains &, the name is the rest of the password.
			query.Del(name)
		}
	}
	if u.RawQuery != "" {
		all := len(u.Query()) == len(query)
		if u.RawQuery = query.Encode(); !all {
			u.RawQuery += "…"
		}
	}
	return u.Redacted()
}

func cut(s string) string {
	if !strings.ContainsAny(s, "@=%#") {
		return s
	}
	if kind, _, found := strings.Cut(s, "://"); found && !strings.ContainsAny(kind, ":@= ") {
		return kind + "://…"
	}
	if kind, _, found := strings.Cut(s, ":"); found && !strings.ContainsAny(kind, "@= ") {
		return kind + ":…"
	}
	return "…"
}

var (
	userInfo = regexp.MustCompile(`(://[^\s/?#:@"'` + "`" + `]*):[^\s"'` + "`" + `]*@`)
	// A server that does not know the command for passwords quotes its arguments.
	arguments = regexp.MustCompile(`(?i)(with args beginning with:).*`)
	setting   = regexp.MustCompile(`(?i)((?:passw(?:or)?d|passphrase|pwd|secret|token)[a-z_-]*=)('[^']*'|[^\s&"';,)]+)`)
)

// Text removes passwords from the URLs and settings in a text. An example is the error of a library
// that quotes the URL of a proxy.
func Text(s string) string {
	if strings.Contains(s, "@") {
		s = userInfo.ReplaceAllString(s, "${1}:"+hidden+"@")
	}
	if strings.Contains(s, ": ") {
		s = arguments.ReplaceAllString(s, "${1} "+hidden)
	}
	if strings.Contains(s, "=") {
		s = setting.ReplaceAllString(s, "${1}"+hidden)
	}
	return s
}
