// Package seen stores a value for some of the items that listings have shown. It drops the values
// of items that are gone.
package seen

import "crypto/sha256"

// Key is a hash of the name of an item. It is shorter than most names.
type Key [16]byte

// KeyOf returns the key of a name.
func KeyOf(name string) Key {
	sum := sha256.Sum256([]byte(name))
	return Key(sum[:16])
}

// Items contains the values that were set for items. The zero value is empty. It is not safe for
// concurrent use.
type Items[V any] struct {
	passes int // number of listings, including those in progress
	of     map[Key]entry[V]
}

type entry[V any] struct {
	value V
	pass  int // the newest listing at the time when the item was seen
}

// Get returns the value of an item. ok is false if it has none.
func (s *Items[V]) Get(name string) (value V, ok bool) {
	e, ok := s.of[KeyOf(name)]
	return e.value, ok
}

// Set notes that an item was seen, with a value.
func (s *Items[V]) Set(name string, value V) {
	if s.of == nil {
		s.of = map[Key]entry[V]{}
	}
	s.of[KeyOf(name)] = entry[V]{value, s.passes}
}

// Delete removes the value of an item.
func (s *Items[V]) Delete(name string) { delete(s.of, KeyOf(name)) }

// Len returns the number of values.
func (s *Items[V]) Len() int { return len(s.of) }

// Listed reports whether a listing has begun.
func (s *Items[V]) Listed() bool { return s.passes > 0 }

// Begin begins a listing.
func (s *Items[V]) Begin() (pass int) {
	s.passes++
	return s.passes
}

// End ends a listing of all items. It removes the values that were not set since the listing began,
// because their items are gone.
func (s *Items[V]) End(pass int) {
	for key, e := range s.of {
		if e.pass < pass {
			delete(s.of, key)
		}
	}
}
