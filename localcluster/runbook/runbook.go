// Package runbook reads the commands of the pages for whoever is woken, so that tests can run them on a real API
// server.
package runbook

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Command is one kubectl of a page, without its first word and without what it is piped into.
type Command struct {
	Page string
	// Guest says that it is for the hosted cluster: the page says --kubeconfig guest, which is not among the
	// arguments.
	Guest     bool
	Arguments []string
}

// Commands returns those of the pages that match, with names in the place of the pages' placeholders.
func Commands(pattern string, names map[string]string) ([]Command, error) {
	pages, err := filepath.Glob(pattern)
	if err != nil || len(pages) == 0 {
		return nil, fmt.Errorf("pages %s: found %d, error %v", pattern, len(pages), err)
	}
	var all []Command
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		for i, block := range strings.Split(string(content), "```") {
			lines, shell := strings.CutPrefix(block, "sh\n")
			if i%2 == 0 || !shell {
				continue
			}
			for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
				command, _, _ := strings.Cut(line, " | ")
				words := split(command)
				if words[0] != "kubectl" {
					return nil, fmt.Errorf("%s: %s is no kubectl", page, command)
				}
				all = append(all, read(filepath.Base(page), words[1:], names))
			}
		}
	}
	return all, nil
}

func read(page string, words []string, names map[string]string) Command {
	command := Command{Page: page}
	if i := slices.Index(words, "--kubeconfig"); i >= 0 {
		command.Guest = true
		words = slices.Delete(words, i, i+2)
	}
	for _, word := range words {
		for placeholder, name := range names {
			word = strings.ReplaceAll(word, placeholder, name)
		}
		command.Arguments = append(command.Arguments, word)
	}
	return command
}

// split splits a line into words as a shell does, with single quotes and no others.
func split(line string) []string {
	var words []string
	word, quoted, begun := strings.Builder{}, false, false
	for _, sign := range line {
		switch {
		case sign == '\'':
			quoted, begun = !quoted, true
		case sign == ' ' && !quoted:
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(sign)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

// notHere are answers to a command that is right, on a cluster without what it is about: objects of charts that a test
// does not install, the operator of Prometheus, and rights that nobody has.
var notHere = []string{
	"(NotFound)", "not found", `the server doesn't have a resource type "podmonitors"`, "\nno\n",
}

// Fine says whether kubectl understood a command, and the API server knows the kinds that it is about.
func Fine(output string, err error) bool {
	return err == nil || slices.ContainsFunc(notHere, func(answer string) bool {
		return strings.Contains("\n"+output+"\n"+err.Error()+"\n", answer)
	})
}
