// Package cli is what both programs do alike on the command line: exit codes,
// error messages, signals and logs. It knows nothing of broker or connector.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"siyuan-broker/contract"
)

// Version is the version of both programs; releases set it with -ldflags -X.
var Version = "0.1.0-dev"

// The exit codes people and supervisors may rely on.
const (
	ExitOK             = 0
	ExitFailed         = 1
	ExitUsage          = 2
	ExitNotFound       = 3 // not found or denied
	ExitOffline        = 4 // home or SiYuan offline
	ExitConfirmation   = 5
	ExitOutcomeUnknown = 6
	ExitRevoked        = 77
	ExitConfig         = 78
)

// Exit is an error that asks for an exit code.
type Exit struct {
	Code int
	Err  error
}

func (e *Exit) Error() string { return e.Err.Error() }

// Unwrap gives the error behind the code.
func (e *Exit) Unwrap() error { return e.Err }

// Fail gives err an exit code.
func Fail(code int, err error) error {
	if err == nil {
		return nil
	}
	return &Exit{code, err}
}

// Usagef is a mistake in how the command was called.
func Usagef(format string, args ...any) error { return Fail(ExitUsage, fmt.Errorf(format, args...)) }

// CodeOf is the exit code for err.
func CodeOf(err error) int {
	var exit *Exit
	var ce *contract.Error
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &ce):
		switch ce.Type {
		case contract.TypeNotFound, contract.TypePermission, contract.TypeDisabled:
			return ExitNotFound
		case contract.TypeOffline:
			return ExitOffline
		case contract.TypeConfirmation:
			return ExitConfirmation
		case contract.TypeUnknown:
			return ExitOutcomeUnknown
		case contract.TypeValidation:
			return ExitUsage
		}
	}
	return ExitFailed
}

// Run executes root with args until it returns or the process is told to stop,
// prints the error if there is one, and returns the exit code. The first signal
// cancels the command's context, the second ends the process at once.
func Run(root *cobra.Command, args []string, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	root.SetArgs(args)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = Version
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return Fail(ExitUsage, err) })
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	code := CodeOf(err)
	fmt.Fprintf(stderr, "%s: %v\n", root.Name(), err)
	if code == ExitUsage {
		fmt.Fprintf(stderr, "See: %s --help\n", cmd.CommandPath())
	}
	return code
}

// NoArgs refuses positional arguments as a usage error.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("unexpected argument %q", args[0])
	}
	return nil
}

// Group makes cmd a mere holder of subcommands: calling it without one, or with
// one that does not exist, is a usage error.
func Group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		return Usagef("unknown command %q", args[0])
	}
	cmd.AddCommand(subs...)
	return cmd
}

// Logger writes to w in the given level and format, which are checked before.
func Logger(w io.Writer, level, format string) *slog.Logger {
	var l slog.Level
	if l.UnmarshalText([]byte(level)) != nil {
		l = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: l}
	if format == "text" {
		return slog.New(slog.NewTextHandler(w, o))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

// PrintJSON writes v as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
