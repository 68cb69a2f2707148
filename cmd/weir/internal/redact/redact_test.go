package redact

import (
	"net/url"
	"strings"
	"testing"
)

func TestURL(t *testing.T) {
	for s, want := range map[string]string{
		"redis://weir:secret@127.0.0.1:6379":               "redis://weir:xxxxx@127.0.0.1:6379",
		"redis://:secret@h":                                "redis://:xxxxx@h",
		"postgres://h/d":                                   "postgres://h/d",
		"postgres://u@h/d?weir_prefix=a_":                  "postgres://u@h/d?weir_prefix=a_",
		"postgres://u:se%2Fcret@h/d":                       "postgres://u:xxxxx@h/d",
		"postgres://u@h/d?password=secret&sslmode=require": "postgres://u@h/d?sslmode=require…",
		"postgres://u@h/d?sslpassword=secret":              "postgres://u@h/d?…",
		"postgres://u:secret@[::1/d":                       "postgres://…",
		"postgres://u:sec/ret@h/d":                         "postgres://…",
		"postgres://u:sec#ret@h/d":                         "postgres://…",
		"postgres://u:sec%ret@h/d":                         "postgres://…",
		"postgres:u:secret@h/d":                            "postgres:…",
		"weir:secret@tcp(127.0.0.1:3306)/shop":             "weir:…",
		"mysql:weir:secret@tcp(127.0.0.1:3306)/shop":       "mysql:…",
		"host=127.0.0.1 user=weir password=secret":         "…",
		"host=127.0.0.1 password='a:secret'":               "…",
		"redis:x":                                          "redis:x",
		"here":                                             "here",
		"":                                                 "",
		"http://u:secret@127.0.0.1:4567/?a":                "http://u:xxxxx@127.0.0.1:4567/?…",
		"redis://h?addr=h2%3A6379&db=3&username=u&read_timeout=secret1": "redis://h?addr=h2%3A6379&db=3…",
	} {
		if got := URL(s); got != want {
			t.Errorf("URL(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		`invalid proxy address "http://u:secret@proxy:x": parse it`:          `invalid proxy address "http://u:xxxxx@proxy:x": parse it`,
		"at http://u:s@cr/et@proxy failed":                                   "at http://u:xxxxx@proxy failed",
		"cannot parse postgres://u@h/d?password=secret&sslmode=off":          "cannot parse postgres://u@h/d?password=xxxxx&sslmode=off",
		"cannot parse `host=h password='a secret' user=u`":                   "cannot parse `host=h password=xxxxx user=u`",
		"X-Amz-Security-Token=abc&X-Amz-Date=1":                              "X-Amz-Security-Token=xxxxx&X-Amz-Date=1",
		"nothing answers at http://127.0.0.1:4567: is it running?":           "nothing answers at http://127.0.0.1:4567: is it running?",
		"ERR unknown command 'AUTH', with args beginning with: 'u' 'secret'": "ERR unknown command 'AUTH', with args beginning with: xxxxx",
		"weir at w@host, a=b":                                                "weir at w@host, a=b",
		"http://127.0.0.1:4567/ user@example":                                "http://127.0.0.1:4567/ user@example",
		"":                                                                   "",
	} {
		if got := Text(s); got != want {
			t.Errorf("Text(%q) = %q, want %q", s, got, want)
		}
	}
}

// FuzzURL creates valid and invalid URLs with a password. It checks that URL removes the password.
func FuzzURL(f *testing.F) {
	f.Add("u", "p@ss/w:rd", "h:1", "d", uint8(0))
	f.Add("", "%40#?", "[::1]", "", uint8(1))
	f.Add("a b", "x'y", "h", "a/b", uint8(2))
	f.Add("weir", "x", "tcp(127.0.0.1:3306)", "shop", uint8(3))
	f.Fuzz(func(t *testing.T, user, password, host, name string, form uint8) {
		// Every password contains this mark. Inputs whose visible text contains the mark are
		// skipped.
		const mark = "Secr3t"
		if strings.Contains(user+host+name, mark) || strings.ContainsAny(user, ":=%") {
			return
		}
		secret := mark + password + mark
		var s string
		switch form % 6 {
		case 0:
			s = "postgres://" + url.UserPassword(user, secret).String() + "@" + host + "/" + name
		case 1:
			s = "redis://" + user + ":" + secret + "@" + host // not escaped
		case 2:
			s = "mysql://" + host + "/" + name + "?password=" + url.QueryEscape(secret)
		case 3:
			s = user + ":" + secret + "@" + host + "/" + name
		case 4:
			s = "postgres://" + host + "/" + name + "?x" + url.QueryEscape(user) + "=" + secret
		default:
			s = "mysql:" + user + ":" + secret + "@" + host
		}
		if got := URL(s); strings.Contains(got, mark) {
			t.Errorf("URL(%q) shows %q", s, got)
		}
	})
}
