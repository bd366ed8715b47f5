// Package commandline holds what our programs share before they do anything else: flags in groups, environment
// variables for flags, one line for each mistake, and a log whose level can change at run time. It knows no particular
// program.
package commandline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Group is a section of the help.
type Group struct {
	Title string
	Flags *pflag.FlagSet
}

// NewGroup returns a group with the flags that add adds.
func NewGroup(title string, add func(*pflag.FlagSet)) Group {
	group := Group{Title: title, Flags: pflag.NewFlagSet("", pflag.ContinueOnError)}
	add(group.Flags)
	return group
}

// Program is a command without arguments: its flags, and the function that runs once they are set.
type Program struct {
	Name, Short string
	// Example is the flag with which the help explains environment variables.
	Example string
	Groups  []Group
	Start   func(ctx context.Context) error
	// Excuses is called for a variable that cannot be read, and returns whether the program continues with the
	// default. If it is nil, no mistake is excused.
	Excuses func(Mistake) bool
	// Unknown is called with the names of unknown flags, without dashes, if the flag UnknownFlags allows these. A
	// program without Unknown does not have that flag.
	Unknown func(names []string)
}

// Mistake is an environment variable whose value its flag does not accept.
type Mistake struct {
	Flag, Variable, Value string
	Err                   error
}

// Error returns the variable, its value and what is wrong.
func (m Mistake) Error() string { return fmt.Sprintf("%s=%q: %v", m.Variable, m.Value, m.Err) }

// UsageError is a mistake in flags, environment variables or files that they name.
type UsageError struct{ error }

// Usage marks an error as the user's mistake; nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return UsageError{err}
}

// Main is a program's main function. It runs the program with the arguments and environment of the process until it is
// interrupted or terminated. It logs to stdout, and exits with Run's exit code.
func Main(program func(logs io.Writer) Program) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Run(ctx, program(os.Stdout), os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run parses args and the environment, runs the program, and returns the exit code: 0 when it was asked to stop, 2
// after the user's mistake, 1 after any other failure. It writes one line to stderr for each fault.
func Run(ctx context.Context, p Program, args []string, lookup func(string) (string, bool),
	stdout, stderr io.Writer) int {
	command := New(p, lookup)
	args = p.known(command.Flags(), doubled(command.Flags(), args), lookup)
	command.SetArgs(args)
	command.SetOut(stdout)
	command.SetErr(stderr)
	err := command.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(stderr, "%s: %s\n", p.Name, line)
	}
	var usage UsageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "%s: see %s --help\n", p.Name, p.Name)
		return 2
	}
	return 1
}

// noArguments refuses arguments that are no flags. Most of them are values of switches: pflag accepts these only after
// =.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return UsageError{fmt.Errorf(
		"it takes no argument, and %q is one: the value of a switch follows it with =, such as --switch=false",
		args[0])}
}

// New returns the command of a program; lookup reads the environment.
func New(p Program, lookup func(string) (string, bool)) *cobra.Command {
	command := &cobra.Command{
		Use: p.Name, Short: p.Short, Args: noArguments, SilenceErrors: true, SilenceUsage: true,
		// Cobra's own version template stays. With a template of ours the linker would keep every method of every
		// type, since a template may call any of them, and joiner would be nearly twice as large.
		Version: Version(debug.ReadBuildInfo()),
		RunE: func(command *cobra.Command, _ []string) error {
			settings, err := settle(p, command.Flags(), lookup)
			if err != nil {
				return UsageError{err}
			}
			if ask, _ := command.Flags().GetBool(printFlag); ask {
				return settings.print(command.OutOrStdout())
			}
			return p.Start(command.Context())
		},
	}
	command.CompletionOptions.DisableDefaultCmd = true
	p.Groups = append(slices.Clone(p.Groups), NewGroup("Configuration", func(flags *pflag.FlagSet) {
		flags.String("config", "", "path of a YAML file with settings, each by the name of its flag; flags and "+
			"environment variables win over it")
		flags.Bool("print-config", false, "print the settings that are in force, and where each comes from, and end")
	}))
	for _, g := range p.Groups {
		command.Flags().AddFlagSet(g.Flags)
	}
	command.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
			err = fmt.Errorf("%w%s", err,
				settings{program: p.Name, flags: command.Flags()}.meant(unknown.GetSpecifiedName()))
		}
		return UsageError{err}
	})
	command.SetHelpFunc(func(command *cobra.Command, _ []string) { printHelp(command.OutOrStdout(), p) })
	return command
}

func printHelp(out io.Writer, p Program) {
	fmt.Fprintf(out, "%s\n\nUsage:\n  %s [flags]\n\nEvery flag can be set by an environment variable: --%s is %s.\n"+
		"--version says which build this is, --help this.\n", p.Short, p.Name, p.Example, variable(p.Example))
	for _, g := range p.Groups {
		fmt.Fprintf(out, "\n%s:\n%s", g.Title, g.Flags.FlagUsages())
	}
}

// Version returns what a build knows about itself: its version, its commit, Go and the platform.
func Version(info *debug.BuildInfo, known bool) string {
	version, commit := "unknown", ""
	if known {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		if revision := revisionOf(info); revision != "" {
			commit = " commit " + revision
		}
	}
	return fmt.Sprintf("%s%s %s %s/%s", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// revisionOf returns the commit from which a program was built; "" if the build does not say.
func revisionOf(info *debug.BuildInfo) string {
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return ""
}

// variable returns the environment variable of a flag.
func variable(flag string) string { return strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) }

// notFromEnvironment are flags without environment variables: questions to the program, and flags with variables that
// the Kubernetes libraries read. Many containers have a variable VERSION or CONFIG. The Kubernetes libraries read
// KUBECONFIG, which may be a list of paths.
var notFromEnvironment = []string{"help", "version", "kubeconfig", configFlag, printFlag}

// LoadREST reads the kubeconfig at path. For an empty path it uses the environment, and then the pod's service
// account. flag is the flag to name in errors.
func LoadREST(flag, path string) (*rest.Config, error) { return LoadRESTWith(flag, path, nil) }

// LoadRESTWith is LoadREST for a program whose user can choose another context, server or identity.
func LoadRESTWith(flag, path string, overrides *clientcmd.ConfigOverrides) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no usable kubeconfig: give --%s or set KUBECONFIG (%s)", flag,
			strings.Join(strings.Fields(err.Error()), " "))
	}
	return config, nil
}

// Levels is the usage text of --log-level.
const Levels = "debug, info, warn or error; SIGUSR1 switches to debug while running, and back"

// ParseLevel parses the value of --log-level.
func ParseLevel(text string) (slog.Level, error) {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn,
		"error": slog.LevelError}
	level, found := levels[text]
	if !found {
		names := []string{"debug", "info", "warn", "error"}
		return 0, fmt.Errorf("--log-level is %q: want one of %s", text, strings.Join(names, ", "))
	}
	return level, nil
}

// NewLogger returns a logger of JSON lines. The Kubernetes libraries use it too, two levels lower. Each SIGUSR1
// changes its level until stop is called.
func NewLogger(logs io.Writer, level slog.Level) (log logr.Logger, stop func()) {
	var current slog.LevelVar
	return use(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: &current}), &current, level)
}

// NewLoggerAs is NewLogger with a layout of --log-format and with paths to write to: files, stdout or stderr, where
// stdout means logs. Errors name the path or the layout.
func NewLoggerAs(logs io.Writer, format string, paths []string,
	level slog.Level) (log logr.Logger, stop func(), err error) {
	sink, end, err := open(logs, paths)
	if err != nil {
		return logr.Logger{}, nil, err
	}
	var current slog.LevelVar
	handler := slog.Handler(slog.NewJSONHandler(sink, &slog.HandlerOptions{Level: &current}))
	switch format {
	case KarpenterFormat:
		handler = newLayout(sink, &current)
	case JoinerFormat:
	default:
		end()
		return logr.Logger{}, nil, fmt.Errorf("--log-format is %q: want %s or %s", format, KarpenterFormat,
			JoinerFormat)
	}
	log, unswitch := use(handler, &current, level)
	return log, func() { unswitch(); end() }, nil
}

// open returns the destination of log lines. end closes the opened files.
func open(logs io.Writer, paths []string) (sink zapcore.WriteSyncer, end func(), err error) {
	sinks, ends := []zapcore.WriteSyncer{}, []func(){}
	end = func() {
		for _, each := range ends {
			each()
		}
	}
	for _, path := range paths {
		if path = strings.TrimSpace(path); path == "" {
			continue
		}
		if path == "stdout" {
			sinks = append(sinks, zapcore.Lock(zapcore.AddSync(logs)))
			continue
		}
		opened, closing, err := zap.Open(path)
		if err != nil {
			end()
			return nil, nil, fmt.Errorf("--log-output-paths has %q, which cannot be opened: %w", path, err)
		}
		sinks, ends = append(sinks, opened), append(ends, closing)
	}
	if len(sinks) == 0 {
		return nil, nil,
			errors.New("--log-output-paths is empty: want stdout, stderr or files, several with commas between them")
	}
	return zapcore.NewMultiWriteSyncer(sinks...), end, nil
}

// use makes all libraries log to a handler whose level is current.
func use(handler slog.Handler, current *slog.LevelVar, level slog.Level) (logr.Logger, func()) {
	current.Set(level)
	log := logr.FromSlogHandler(handler)
	ctrllog.SetLogger(log.V(1))
	klog.SetLogger(log.V(1))
	return log, switchLevel(current, level)
}

// Warn logs a warning, a level that logr does not have.
func Warn(log logr.Logger, message string) { slog.New(logr.ToSlogHandler(log)).Warn(message) }
