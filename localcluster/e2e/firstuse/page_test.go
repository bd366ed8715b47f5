package firstuse

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository, the working directory of a reader of its pages.
const root = "../../.."

// block is a fenced block of a page.
type block struct{ language, text string }

// first returns the block's first line, by which it is known.
func (b block) first() string {
	line, _, _ := strings.Cut(b.text, "\n")
	return line
}

// commands returns the lines to type; continued lines are joined.
func (b block) commands() []string {
	return strings.Split(strings.TrimSpace(strings.ReplaceAll(b.text, "\\\n", " ")), "\n")
}

// pageOf reads a page of the repository.
func pageOf(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// blocksOf returns the blocks of a page, in its order.
func blocksOf(page string) (all []block) {
	for _, found := range regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		all = append(all, block{found[1], found[2]})
	}
	return all
}

// inline returns the pieces of code between words.
func inline(page string) (all []string) {
	without := regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(page, "")
	for _, found := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(without, -1) {
		all = append(all, found[1])
	}
	return all
}

// unfolded returns a text of several lines as one line.
func unfolded(text string) string { return strings.Join(strings.Fields(text), " ") }
