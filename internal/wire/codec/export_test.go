package codec

// What tests from outside look at.
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

// Short reports whether the answer ended where more was to come.
func (e *MalformedError) Short() bool { return e.short }

// Room is how many bytes of headers are kept.
func (fr *FrameReader) Room() int { return cap(fr.head) }

// BodyOf is how many bytes the memory has that a page is in.
func BodyOf(p *Page) int { return len(p.memory.body) }

// Carried is how many bytes there is room for between two parts.
func (pr *Parts) Carried() int { return cap(pr.carry) }
