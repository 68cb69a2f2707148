package s3letters

import "crypto/sha256"

// versions is what a box remembers: which version of each letter it has seen, by hashes of keys and
// ETags, which are shorter.
type versions struct {
	passes int // how often the letters were listed, begun listings included
	of     map[[16]byte]version
}

type version struct {
	etag [16]byte
	pass int // the newest that had begun when the letter was seen
}

func hashOf(text string) [16]byte {
	sum := sha256.Sum256([]byte(text))
	return [16]byte(sum[:16])
}

// note notes which version was seen. With no ETag it notes that the letter is there, in whichever
// version.
func (v *versions) note(key, etag string) {
	hash := hashOf(key)
	is, ok := v.of[hash]
	switch {
	case etag != "":
		is.etag = hashOf(etag)
	case !ok:
		return
	}
	if v.of == nil {
		v.of = map[[16]byte]version{}
	}
	is.pass = v.passes
	v.of[hash] = is
}

// other reports whether another version was seen than one.
func (v *versions) other(key, etag string) bool {
	is, ok := v.of[hashOf(key)]
	return ok && is.etag != hashOf(etag)
}

// begin begins a listing.
func (v *versions) begin() (pass int) {
	v.passes++
	return v.passes
}

// end ends a listing that went through all letters. It removes the entries of letters that the
// bucket does not have any more.
func (v *versions) end(pass int) {
	for hash, is := range v.of {
		if is.pass < pass {
			delete(v.of, hash)
		}
	}
}
