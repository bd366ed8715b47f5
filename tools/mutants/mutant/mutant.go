// Package mutant has the functions that instrumented code calls. Instrumented code contains every possible change, and
// the environment of the process says which one is on. An overlay compiles this package together with the one under
// test, so it may import the standard library only.
package mutant

import (
	"cmp"
	"os"
	"strconv"
	"sync/atomic"
)

// The environment that the switches read once, at the start of the process.
const (
	// Active names the one mutant that is on; none when it is empty.
	Active = "JOINER_MUTANT"
	// Reached names a file to which the number of each mutant that is reached is appended, once.
	Reached = "JOINER_MUTANTS_REACHED"
)

// Max is the largest number of a mutant.
const Max = 1 << 16

var (
	active, _ = strconv.Atoi(os.Getenv(Active))
	reached   = recorder(os.Getenv(Reached))
	seen      [Max + 1]atomic.Bool
)

func recorder(path string) *os.File {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	return file
}

// On reports whether mutant id is on.
func On(id int) bool {
	if reached != nil && !seen[id].Swap(true) {
		if _, err := reached.WriteString(strconv.Itoa(id) + "\n"); err != nil {
			panic(err)
		}
	}
	return id == active
}

// Live reports whether what mutant id removes is still there.
func Live(id int) bool { return !On(id) }

// Not is v, the opposite when the mutant is on.
func Not(id int, v bool) bool { return On(id) != v }

// Zero is v, nothing when the mutant is on.
func Zero[T any](id int, v T) T {
	if On(id) {
		var zero T
		return zero
	}
	return v
}

// NoErr is err, nil when the mutant is on.
func NoErr(id int, err error) error {
	if On(id) {
		return nil
	}
	return err
}

// Number is what can be counted with.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64
}

// Plus is v, one more when the mutant is on.
func Plus[T Number](id int, v T) T {
	if On(id) {
		return v + 1
	}
	return v
}

// Minus is v, one less when the mutant is on.
func Minus[T Number](id int, v T) T {
	if On(id) {
		return v - 1
	}
	return v
}

// Twice is v, doubled when the mutant is on.
func Twice[T Number](id int, v T) T {
	if On(id) {
		return v * 2
	}
	return v
}

// Half is v, halved when the mutant is on.
func Half[T Number](id int, v T) T {
	if On(id) {
		return v / 2
	}
	return v
}

// Add is a + b, or a - b.
func Add[T Number](id int, a, b T) T {
	if On(id) {
		return a - b
	}
	return a + b
}

// Sub is a - b, or a + b.
func Sub[T Number](id int, a, b T) T {
	if On(id) {
		return a + b
	}
	return a - b
}

// Mul is a * b, or a / b.
func Mul[T Number](id int, a, b T) T {
	if On(id) {
		return a / b
	}
	return a * b
}

// Div is a / b, or a * b.
func Div[T Number](id int, a, b T) T {
	if On(id) {
		return a * b
	}
	return a / b
}

// Min is the smaller, or the larger.
func Min[T cmp.Ordered](id int, a, b T) T {
	if On(id) {
		return max(a, b)
	}
	return min(a, b)
}

// Max2 is the larger, or the smaller.
func Max2[T cmp.Ordered](id int, a, b T) T {
	if On(id) {
		return min(a, b)
	}
	return max(a, b)
}

// Less is a < b, or a <= b.
func Less[T cmp.Ordered](id int, a, b T) bool { return a < b || On(id) && a == b }

// LessEq is a <= b, or a < b.
func LessEq[T cmp.Ordered](id int, a, b T) bool { return a < b || !On(id) && a == b }

// Greater is a > b, or a >= b.
func Greater[T cmp.Ordered](id int, a, b T) bool { return a > b || On(id) && a == b }

// GreaterEq is a >= b, or a > b.
func GreaterEq[T cmp.Ordered](id int, a, b T) bool { return a > b || !On(id) && a == b }
