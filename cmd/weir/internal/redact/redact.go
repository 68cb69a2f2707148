// Package redact keeps passwords out of what people and logs get to see.
package redact

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// hidden stands for what is not shown.
const hidden = "xxxxx"

// shown are the parameters of a store's URL that are no secrets. Drivers have more than anybody
// could list, so all others are hidden.
var shown = []string{"weir_prefix", "weir_schema", "weir_replicas", "sslmode", "tls", "addr", "db", "protocol", "master_name"}

// URL removes the password from a URL, and parameters that may hold one. A text that is not a URL
// is cut off where a password could begin: a data source name of a driver, or a URL with a
// character that has to be escaped.
func URL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Opaque != "" || strings.Contains(u.Path+u.Fragment, "@") {
		return cut(s)
	}
	u.Fragment, u.RawFragment = "", "" // a # that belongs to a password
	query := u.Query()
	for name := range query {
		if !slices.Contains(shown, name) {
			// the name too: after a password with an &, the name is the rest of the password
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
	// A server that does not know the command which brings the password quotes it.
	arguments = regexp.MustCompile(`(?i)(with args beginning with:).*`)
	setting   = regexp.MustCompile(`(?i)((?:passw(?:or)?d|passphrase|pwd|secret|token)[a-z_-]*=)('[^']*'|[^\s&"';,)]+)`)
)

// Text is a text without the passwords of URLs and the settings in it, such as an error of a
// library that quotes a proxy's URL.
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
