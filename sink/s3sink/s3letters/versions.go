package s3letters

import "github.com/weir-go/weir/internal/seen"

// versions records which version of each dead letter the box has seen, as a hash of the ETag.
type versions struct{ seen.Items[seen.Key] }

// note records the version of a letter. If etag is "", it records only that the dead letter exists.
func (v *versions) note(key, etag string) {
	is, ok := v.Get(key)
	switch {
	case etag != "":
		is = seen.KeyOf(etag)
	case !ok:
		return
	}
	v.Set(key, is)
}

// other reports whether the box has seen a version of the dead letter other than this one.
func (v *versions) other(key, etag string) bool {
	is, ok := v.Get(key)
	return ok && is != seen.KeyOf(etag)
}
