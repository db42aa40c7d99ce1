package siyuan

import (
	"errors"
	"fmt"
	"log/slog"
)

// Kind says what went wrong, in terms a caller can decide on. A Kind is itself
// an error, so errors.Is(err, siyuan.Missing) asks the question.
type Kind uint8

// The kinds of kernel errors.
const (
	// Internal is the zero value: an error that is not the kernel's.
	Internal Kind = iota
	// BadArgument: the request was refused here, before anything was sent.
	BadArgument
	// Offline: no kernel answers at the address, or it vanished while answering
	// a read. Nothing was written.
	Offline
	// Unauthorized: the kernel does not accept the token.
	Unauthorized
	// Timeout: a read did not end in time.
	Timeout
	// Canceled: the caller gave up before anything was written.
	Canceled
	// Indexing: the kernel is booting or rebuilding its index; ask again later.
	// It also answers so for blocks of a notebook that was just closed.
	Indexing
	// Missing: the thing asked for does not exist, or is in a closed notebook.
	Missing
	// Rejected: the kernel understood and refused.
	Rejected
	// Malformed: the answer has not the documented shape; on a write the outcome
	// must be read back.
	Malformed
	// TooLarge: the answer exceeds Config.MaxResponseBytes.
	TooLarge
	// Status: an HTTP status the API does not use.
	Status
	// OutcomeUnknown: a write was sent and its answer never came, or came in a
	// form that does not tell. It may or may not have happened.
	OutcomeUnknown
)

var kindNames = [...]string{
	Internal: "internal", BadArgument: "bad argument", Offline: "offline", Unauthorized: "unauthorized",
	Timeout: "timeout", Canceled: "canceled", Indexing: "indexing", Missing: "missing", Rejected: "rejected",
	Malformed: "malformed answer", TooLarge: "answer too large", Status: "unexpected status",
	OutcomeUnknown: "outcome unknown",
}

// String names the kind in a word or two.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[Internal]
}

// Error makes a Kind usable as the target of errors.Is.
func (k Kind) Error() string { return k.String() }

// Error is every error this package returns for a call to the kernel.
type Error struct {
	Kind     Kind
	Endpoint string // such as "block/getBlockInfo"
	Code     int    // the kernel's code; 0 when it gave none
	Status   int    // the HTTP status; 0 when there was no answer
	// Msg is the kernel's localized message. It may quote notes and name files
	// of the machine: for logs at home, never for agents.
	Msg string
	// Err is the cause on our side of the connection, if any.
	Err error
}

// Error leaves out the kernel's message and the cause, because both may name
// files and hosts of the machine.
func (e *Error) Error() string {
	s := fmt.Sprintf("siyuan %s: %s", e.Endpoint, e.Kind)
	switch {
	case e.Code != 0:
		s += fmt.Sprintf(" (code %d)", e.Code)
	case e.Kind == Status:
		s += fmt.Sprintf(" (%d)", e.Status)
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches a Kind.
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// LogValue is the full story, for the log of the home machine.
func (e *Error) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("kind", e.Kind.String()), slog.String("endpoint", e.Endpoint),
		slog.Int("code", e.Code), slog.Int("status", e.Status), slog.String("kernel_msg", e.Msg),
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("cause", e.Err.Error()))
	}
	return slog.GroupValue(attrs...)
}

// KindOf is the kind of the first kernel error in err's chain, else Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

var (
	errNoPlace = errors.New("the kernel found no place for the block: nothing was inserted")
	errNoOps   = errors.New("the kernel reported no operation")
)

func missing(endpoint string) error { return &Error{Kind: Missing, Endpoint: endpoint} }

func malformed(endpoint, format string, args ...any) error {
	return &Error{Kind: Malformed, Endpoint: endpoint, Err: fmt.Errorf(format, args...)}
}

func badArgument(endpoint, format string, args ...any) error {
	return &Error{Kind: BadArgument, Endpoint: endpoint, Err: fmt.Errorf(format, args...)}
}
