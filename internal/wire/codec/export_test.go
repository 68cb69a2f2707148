package codec

// These are internals for external tests.
var (
	Ascending    = ascending
	DecodeBase64 = decodeBase64
	ErrHeaders   = errHeaders
)

const (
	ShortAnswer = shortAnswer
	MostHeaders = mostHeaders
	KeptHeaders = keptHeaders
)

// Short reports whether the answer ended too early.
func (e *MalformedError) Short() bool { return e.short }

// Room returns the capacity of the headers buffer that is kept.
func (fr *FrameReader) Room() int { return cap(fr.head) }

// BodyOf returns the size of the memory of a page.
func BodyOf(p *Page) int { return len(p.memory.body) }

// Carried returns the capacity for bytes that are carried over between two parts.
func (pr *Parts) Carried() int { return cap(pr.carry) }
