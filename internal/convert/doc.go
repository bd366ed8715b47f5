// Package convert turns NodePool, NodeClaim and EC2NodeClass of v1beta1 into v1 and back (V-20 to V-24). It is pure:
// it knows no client, no clock and no server. Package webhook serves it over HTTP.
//
// Start with convert.go. nodepool.go, nodeclaim.go and ec2nodeclass.go convert the fields.
//
// # Nothing is lost
//
// Conversion works on JSON, not on Go types, so a value keeps its spelling. Each kind has a plain conversion in both
// directions, for what both versions can express. The rest is kept in an annotation, and nobody lists it by hand.
// After converting x to y, y is converted back plainly. Wherever the result differs from x, the annotation notes the
// field, the value of the way back, and the value it should have (note.go). This covers fields of only one version,
// unknown fields, other spellings of defaults and fields of later releases alike. So the round trip returns an equal
// object by construction (V-21).
//
// # A field wins over a note
//
// A note counts only while the way back gives the same value as when the note was written. If that field was edited,
// the edit counts and the note is dropped. An item of a list keeps its note while the item is unchanged, even if it
// moves within the list. If items look alike and some of them are gone, nobody can say which ones. Then the notes for
// all of them are dropped. The annotations of Karpenter (kubelet, nodeClassRef) are read in both spellings; the
// reference counts only where it says the same as the field.
//
// # What cannot be converted
//
// The API server asks for one object at a time when it reads its storage. A single failure makes it give up the whole
// list and every watch. So the answer for a stored object that cannot be converted is a stand-in (held.go). It has the
// wanted version, any client can decode it, and it launches and removes nothing. The object itself and the problem
// (field, value, what is allowed) are in its annotations. Converting it back returns the original. The schema of
// v1beta1 prevents that such objects are written: it accepts only what can be converted (V-24).
package convert
