package commandline

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/onedocument"
)

// ConfigVersion is the apiVersion of configuration files (U-13). New settings may be added, but none are renamed.
const ConfigVersion = "config.joiner.sh/v1"

const (
	configFlag = "config"
	printFlag  = "print-config"
)

// ConfigKind returns the kind of a program's configuration file: JoinerOperatorConfig for joiner-operator.
func ConfigKind(program string) string {
	var kind strings.Builder
	for word := range strings.SplitSeq(program, "-") {
		kind.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return kind.String() + "Config"
}

// settings are the flags of a program, with the sources of their values. The source nearest to the start of the
// process wins: a flag over a variable, as in Karpenter, a variable over the file, the file over the default.
type settings struct {
	program string
	flags   *pflag.FlagSet
	from    map[string]string  // by flag name; no entry means the default
	excuses func(Mistake) bool // see Program
}

// settle sets the flags that were not given: from the environment, and then from the file of --config.
func settle(p Program, flags *pflag.FlagSet, lookup func(string) (string, bool)) (settings, error) {
	s := settings{program: p.Name, flags: flags, from: map[string]string{}, excuses: p.Excuses}
	flags.Visit(func(flag *pflag.Flag) { s.from[flag.Name] = "flag" })
	err := s.environment(lookup)
	if path := flags.Lookup(configFlag); path != nil && path.Value.String() != "" {
		err = errors.Join(err, s.file(path.Value.String()))
	}
	return s, err
}

// environment sets flags from variables. For an unreadable variable the flag is left to the file and the default
// (K-03). It is an error unless excused.
func (s settings) environment(lookup func(string) (string, bool)) error {
	var faults []error
	s.flags.VisitAll(func(flag *pflag.Flag) {
		if s.from[flag.Name] != "" || slices.Contains(notFromEnvironment, flag.Name) {
			return
		}
		name := variable(flag.Name)
		if value, found := lookup(name); found && value != "" {
			s.from[flag.Name] = "variable " + name
			if err := flag.Value.Set(value); err != nil {
				delete(s.from, flag.Name)
				mistake := Mistake{flag.Name, name, value, err}
				// A failed Set may leave 0 behind. Setting the default cannot fail.
				err := flag.Value.Set(flag.DefValue)
				if err != nil || s.excuses == nil || !s.excuses(mistake) {
					faults = append(faults, mistake, err)
				}
			}
		}
	})
	return errors.Join(faults...)
}

// file reads a configuration file. Each mistake is a separate error, in the order of the settings' names.
func (s settings) file(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if err := onedocument.Check(data); err != nil {
		return fmt.Errorf("--config %s: %w", path, err)
	}
	values, err := decoded(data)
	if err != nil {
		return fmt.Errorf("--config %s: it is no YAML object: %s", path,
			strings.Join(strings.Fields(err.Error()), " "))
	}
	var faults []error
	wrong := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("--config %s: %s", path, fmt.Sprintf(format, args...)))
	}
	for field, want := range map[string]string{"apiVersion": ConfigVersion, "kind": ConfigKind(s.program)} {
		if got := values[field]; got != want {
			return fmt.Errorf("--config %s: %s is %s: it must be %s", path, field, shown(got), want)
		}
		delete(values, field)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		flag := s.flags.Lookup(name)
		if flag == nil || slices.Contains(questions, name) {
			wrong("%s is no setting of %s%s", name, s.program, s.meant(name))
			continue
		}
		if s.from[name] != "" {
			continue
		}
		s.from[name] = "file"
		if err := set(flag, values[name]); err != nil {
			wrong("%s is %s: %v", name, shown(values[name]), err)
		}
	}
	return errors.Join(faults...)
}

// decoded parses a YAML object, and keeps numbers as they are written. A duplicate key is an error.
func decoded(data []byte) (map[string]any, error) {
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	var values map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&values); err != nil {
		return nil, err
	}
	return values, nil
}

// shown formats a value of the file for an error.
func shown(value any) string {
	if value == nil {
		return "missing"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// set sets a flag to a value of the file. Flags with several values accept a list, those of name=value an object.
func set(flag *pflag.Flag, value any) error {
	_, several := flag.Value.(pflag.SliceValue)
	pairs := flag.Value.Type() == "stringToString"
	switch value := value.(type) {
	case []any:
		if !several {
			return errors.New("it must be one value, not a list")
		}
		words := make([]string, len(value))
		for i, word := range value {
			words[i] = fmt.Sprint(word)
		}
		return flag.Value.(pflag.SliceValue).Replace(words)
	case map[string]any:
		if !pairs {
			return errors.New("it must be one value, not an object")
		}
		if len(value) == 0 {
			return nil // keep the default
		}
		var words []string
		for _, name := range slices.Sorted(maps.Keys(value)) {
			words = append(words, fmt.Sprintf("%s=%v", name, value[name]))
		}
		return flag.Value.Set(joined(words))
	case nil:
		return errors.New("it must have a value; leave it out for the default")
	}
	return flag.Value.Set(fmt.Sprint(value))
}

// joined formats a list as flags accept it.
func joined(words []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(words) // to memory
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// questions are flags that ask the program something, so they are no settings.
var questions = []string{"help", "version", configFlag, printFlag}

// meant suggests the nearest setting, as the end of an error.
func (s settings) meant(name string) string {
	names := &cobra.Command{SuggestionsMinimumDistance: 2}
	s.flags.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden && !slices.Contains(questions, flag.Name) {
			names.AddCommand(&cobra.Command{Use: flag.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	if near := names.SuggestionsFor(name); len(near) > 0 {
		return "; do you mean " + near[0] + "?"
	}
	return "; the settings are the flags of " + s.program + " --help"
}

// print writes the settings in force as a configuration file, each with its source.
func (s settings) print(out io.Writer) error {
	if _, err := fmt.Fprintf(out, "apiVersion: %s\nkind: %s\n", ConfigVersion, ConfigKind(s.program)); err != nil {
		return err
	}
	var faults []error
	s.flags.VisitAll(func(flag *pflag.Flag) {
		from := s.from[flag.Name]
		if slices.Contains(questions, flag.Name) || flag.Hidden && from == "" {
			return
		}
		if from == "" {
			from = "default"
		}
		value, err := written(flag)
		if err == nil {
			_, err = fmt.Fprintf(out, "%s: %s # %s\n", flag.Name, value, from)
		}
		faults = append(faults, err)
	})
	return errors.Join(faults...)
}

// written returns the value of a flag as one line of YAML.
func written(flag *pflag.Flag) (string, error) {
	var value any = flag.Value.String()
	switch of := flag.Value.Type(); {
	case of == "bool", strings.HasPrefix(of, "int"), strings.HasPrefix(of, "uint"), strings.HasPrefix(of, "float"):
		return flag.Value.String(), nil
	case of == "stringToString":
		pairs := map[string]string{}
		list, err := csv.NewReader(strings.NewReader(strings.Trim(flag.Value.String(), "[]"))).Read()
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		for _, pair := range list {
			name, text, _ := strings.Cut(pair, "=")
			pairs[name] = text
		}
		value = pairs
	}
	if list, is := flag.Value.(pflag.SliceValue); is {
		value = append([]string{}, list.GetSlice()...)
	}
	text, err := json.Marshal(value)
	return string(text), err
}
