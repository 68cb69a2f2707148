package engine

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"sync/atomic"
	"time"
)

// Lifetimes of iterators and page tokens.
const (
	iteratorLife = 5 * time.Minute
	tokenLife    = 300 * time.Second
)

// sealer creates and opens shard iterators and page tokens. It encrypts and authenticates them with
// a key of this engine. A client can therefore neither read nor change a token, nor use it with
// another server.
type sealer struct {
	aead  cipher.AEAD
	nonce atomic.Uint64
}

func newSealer() (*sealer, error) {
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &sealer{aead: aead}, err
}

// ticket is the content of an iterator or token.
type ticket struct {
	kind   ticketKind
	issued time.Time // millisecond precision
	stream uint64    // serial number of the stream, or of the queue; a re-created one has another number
	shard  uint32
	index  uint64 // index of the next record
	text   string // depends on the kind: start or filter of a page, name of a stream, number of a delivery
}

type ticketKind byte

const (
	iteratorTicket ticketKind = iota + 1
	shardsTicket
	streamsTicket
	consumersTicket
	queuesTicket
	receiptTicket     // receipt handle of a record
	deadReceiptTicket // receipt handle of a dead letter
)

const ticketHead = 1 + 8 + 8 + 4 + 8 + 4

// iteratorPrefix is the beginning of every iterator of the service, before base64 encoding.
const iteratorPrefix = "\x00\x00\x00\x00\x00\x00\x00\x01"

// iteratorSize returns the size of an iterator of the service. The size grows with the length of
// the stream's name.
func iteratorSize(name string) int { return 152 + (len(name)+2)/16*16 }

var padding [152]byte

// seal returns the encrypted form of t. The nonce is a counter, so it never repeats. The key is
// never used elsewhere.
func (s *sealer) seal(t ticket) string {
	var prefix string
	pad := 0
	if t.kind == iteratorTicket {
		prefix = iteratorPrefix
		pad = iteratorSize(t.text) - len(prefix) - 12 - ticketHead - len(t.text) - s.aead.Overhead()
	}
	var nonce [12]byte
	binary.BigEndian.PutUint64(nonce[4:], s.nonce.Add(1))
	plain := make([]byte, 0, ticketHead+len(t.text)+pad)
	plain = append(plain, byte(t.kind))
	plain = binary.BigEndian.AppendUint64(plain, uint64(t.issued.UnixMilli()))
	plain = binary.BigEndian.AppendUint64(plain, t.stream)
	plain = binary.BigEndian.AppendUint32(plain, t.shard)
	plain = binary.BigEndian.AppendUint64(plain, t.index)
	plain = binary.BigEndian.AppendUint32(plain, uint32(len(t.text)))
	plain = append(plain, t.text...)
	plain = append(plain, padding[:pad]...)
	return base64.StdEncoding.EncodeToString(s.aead.Seal(append([]byte(prefix), nonce[:]...), nonce[:], plain, nil))
}

// open decrypts an iterator or token. It returns false if this sealer did not create it, or created
// it as another kind.
func (s *sealer) open(kind ticketKind, sealed string) (ticket, bool) {
	raw, err := base64.StdEncoding.Strict().DecodeString(sealed)
	if kind == iteratorTicket {
		raw = bytes.TrimPrefix(raw, []byte(iteratorPrefix))
	}
	if err != nil || len(raw) < 12 {
		return ticket{}, false
	}
	plain, err := s.aead.Open(nil, raw[:12], raw[12:], nil)
	if err != nil || len(plain) < ticketHead || plain[0] != byte(kind) {
		return ticket{}, false
	}
	text := plain[ticketHead:]
	return ticket{
		kind:   kind,
		issued: time.UnixMilli(int64(binary.BigEndian.Uint64(plain[1:]))),
		stream: binary.BigEndian.Uint64(plain[9:]),
		shard:  binary.BigEndian.Uint32(plain[17:]),
		index:  binary.BigEndian.Uint64(plain[21:]),
		text:   string(text[:min(int(binary.BigEndian.Uint32(plain[29:])), len(text))]),
	}, true
}

// openPage opens the token of a listing. It returns different errors for invalid and for expired
// tokens.
func (e *Engine) openPage(now time.Time, kind ticketKind, token string) (ticket, error) {
	t, ok := e.sealer.open(kind, token)
	if !ok {
		return ticket{}, invalid("NextToken is invalid.")
	}
	if now.Sub(t.issued) > tokenLife {
		return ticket{}, fail("ExpiredNextTokenException", "NextToken is expired. It was created at %s while right now it is %s; tokens live for 300 seconds.",
			stamp(t.issued), stamp(now))
	}
	return t, nil
}

func stamp(t time.Time) string { return t.UTC().Format("Mon Jan 02 15:04:05 UTC 2006") }
