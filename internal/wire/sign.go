package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// This file implements Signature Version 4. A request is signed with a key that is derived from the
// secret, the day, the region and the service.

const (
	algorithm  = "AWS4-HMAC-SHA256"
	timeForm   = "20060102T150405Z"
	dayLength  = len("20060102")
	terminator = "aws4_request"
)

// header is a signed header, with its name in lower case and its value without surrounding blanks.
type header struct{ name, value string }

// signer signs requests to one endpoint. It caches the key of the day for the current credentials.
type signer struct {
	region, service string
	key             atomic.Pointer[signingKey]
}

type signingKey struct {
	id, secret, day string
	scope           string    // day/region/service/aws4_request
	macs            sync.Pool // contains hash.Hash values with the derived key
}

// keyFor returns the key for a time. at is in the format timeForm.
func (s *signer) keyFor(cred *aws.Credentials, at string) *signingKey {
	day := at[:dayLength]
	if k := s.key.Load(); k != nil && k.day == day && k.secret == cred.SecretAccessKey && k.id == cred.AccessKeyID {
		return k
	}
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	derived := mac(mac(mac(mac([]byte("AWS4"+cred.SecretAccessKey), day), s.region), s.service), terminator)
	k := &signingKey{
		id: cred.AccessKeyID, secret: cred.SecretAccessKey, day: day,
		scope: day + "/" + s.region + "/" + s.service + "/" + terminator,
	}
	k.macs.New = func() any { return hmac.New(sha256.New, derived) }
	s.key.Store(k)
	return k
}

var scratches = sync.Pool{New: func() any { return new([]byte) }}

// sign returns the value of the Authorization header of a POST to path. path is escaped as in the
// request line, and then escaped again. headers must be sorted. at is a time in the format
// timeForm, and one of the headers must contain it.
func (s *signer) sign(cred *aws.Credentials, at, path string, headers []header, body []byte) string {
	key := s.keyFor(cred, at)
	scratch := scratches.Get().(*[]byte)
	defer scratches.Put(scratch)

	b := append((*scratch)[:0], "POST\n"...)
	b = append(append(b, path...), "\n\n"...)
	for _, h := range headers {
		b = append(append(append(append(b, h.name...), ':'), h.value...), '\n')
	}
	b = append(b, '\n')
	signed := len(b)
	for i, h := range headers {
		if i > 0 {
			b = append(b, ';')
		}
		b = append(b, h.name...)
	}
	names := string(b[signed:])
	b = append(b, '\n')
	sum := sha256.Sum256(body)
	b = hex.AppendEncode(b, sum[:])
	sum = sha256.Sum256(b)
	signature := hex.EncodeToString(key.signature(&b, at, sum))

	b = append(append(b[:0], algorithm+" Credential="...), key.id...)
	b = append(append(b, '/'), key.scope...)
	b = append(append(b, ", SignedHeaders="...), names...)
	b = append(append(b, ", Signature="...), signature...)
	*scratch = b
	return string(b)
}

// signature signs a request. sum is the hash of its canonical form. The result overwrites scratch.
func (k *signingKey) signature(scratch *[]byte, at string, sum [sha256.Size]byte) []byte {
	b := append(append((*scratch)[:0], algorithm+"\n"...), at...)
	b = append(append(append(b, '\n'), k.scope...), '\n')
	b = hex.AppendEncode(b, sum[:])
	mac := k.macs.Get().(hash.Hash)
	mac.Reset()
	mac.Write(b)
	b = mac.Sum(b[:0])
	k.macs.Put(mac)
	*scratch = b
	return b
}

// signedAt formats a time for requests.
func signedAt(t time.Time) string { return t.UTC().Format(timeForm) }

// canonical returns a header's value in the form that is signed, without surrounding blanks and
// with single blanks inside.
func canonical(value string) string {
	value = strings.TrimSpace(value)
	if !strings.Contains(value, "  ") {
		return value
	}
	var b strings.Builder
	for i := range len(value) {
		if value[i] != ' ' || value[i-1] != ' ' {
			b.WriteByte(value[i])
		}
	}
	return b.String()
}
