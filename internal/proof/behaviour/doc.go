// Package behaviour tests what users of package weir rely on: whole consumers and readers, by the
// public API, with an embedded Kinesis and mostly in virtual time. It only has tests.
package behaviour
