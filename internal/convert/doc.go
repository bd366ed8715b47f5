// Package convert turns NodePool, NodeClaim and EC2NodeClass of v1beta1 into v1 and back (V-20 to V-24). It is pure: it
// knows no client, no clock and no server. package webhook is its door.
//
// Start with convert.go; nodepool.go, nodeclaim.go and ec2nodeclass.go say what becomes of which field.
//
// # Nothing is lost
//
// Conversion works on JSON, not on Go types, so a value keeps its spelling. Each kind has a plain conversion in both
// directions that moves what both versions can say. What is left is kept in an annotation. It is not listed by hand: after
// converting x to y, y is converted back plainly, and wherever that differs from x, the annotation notes the field, what
// the way back gives, and what it should be (note.go). So a field that only one version has, an unknown field, another
// spelling of a default and a field that a later release adds are all kept in the same way, and the round trip gives back
// an equal object by construction (V-21).
//
// # A field wins over a note
//
// A note is used only where the way back still gives what it gave when the note was taken. If the object was edited
// there, the edit counts and the note is dropped. An item of a list keeps what is noted for it as long as the item itself
// is unchanged, wherever in the list it stands. Where items look alike and fewer of them are left, nobody can say which, and
// what is noted for them is dropped. The annotations of Karpenter (kubelet, nodeClassRef) are read in both
// spellings; the reference counts only where it says the same as the field.
//
// # What cannot be converted
//
// The API server asks for one object at a time when it reads its storage, and gives up a whole list, and every watch, when
// a single answer is a failure. So a stored object that cannot be converted is answered by one that stands for it
// (held.go): of the asked version, decodable by any client, launching and removing nothing, with the object itself and the
// problem (field, value, what is allowed) in annotations. Converted back it is what it was. That such an object is not
// written in the first place is for the schema of v1beta1 to see to: it accepts only what can be converted (V-24).
package convert
