// Package firstuse has tests that do what the first pages tell a new user to do: they type the commands of
// docs/quickstart.md and what `make up` prints, and run the demo as make runs it. They only use Joiner's programs, so
// they import the standard library only.
//
// The programs are those beside the one that JOINER_BINARY names, as `make programs` builds them.
package firstuse
