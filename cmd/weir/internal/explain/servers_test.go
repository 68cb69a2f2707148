package explain

import (
	"testing"
)

func TestLanguage(t *testing.T) {
	for said, want := range map[string]string{
		"SSH-2.0-OpenSSH_9.6p1 Debian-3\r\n":                                                speaksSSH,
		"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n\r\n":                                 speaksHTTP,
		"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n": speaksTLS,
		"\x15\x03\x01\x00\x02\x02\x46":                                                      speaksTLS,
		"220 mail.example.com ESMTP\r\n":                                                    speaksMail,
		"-ERR wrong number of arguments for 'get' command\r\n":                              speaksRedis,
		"-NOAUTH Authentication required.\r\n":                                              speaksRedis,
		"J\x00\x00\x00\x0a8.4.3\x00":                                                        speaksMySQL,
		"E\x00\x00\x00\xffj\x04Host '10.0.0.1' is not allowed":                              speaksMySQL,
		"N":       speaksPostgres,
		"hello\n": speaksNothing,
		"":        speaksNothing,
	} {
		asked := askHTTP
		if len(said) == 1 {
			asked = askPostgres
		}
		if got := language(said, asked); got != want {
			t.Errorf("%q is of %q, want %q", said, got, want)
		}
	}
	if got := language("N", askHTTP); got != speaksNothing {
		t.Errorf("an N that answers another question is of %q", got)
	}
}
