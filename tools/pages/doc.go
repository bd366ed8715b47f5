// Package pages looks at the repository's pages as a reader's browser does (U-12): links and anchors lead somewhere,
// tables have as many cells in each row as in their head, and the tests that a page names exist. It is all tests, and
// in this module since nothing else reads Markdown.
package pages
