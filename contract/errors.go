package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ErrorType is the coarse kind of a failure; agents branch on it. The set is
// closed: see Vocabulary.
type ErrorType string

// The types of ARCHITECTURE section 9.
const (
	TypeValidation   ErrorType = "validation_error"
	TypeAPI          ErrorType = "api_error"
	TypePermission   ErrorType = "permission_denied"
	TypeDisabled     ErrorType = "disabled_error"
	TypeInternal     ErrorType = "internal_error"
	TypeNotFound     ErrorType = "not_found"
	TypeAmbiguous    ErrorType = "ambiguous"
	TypeConflict     ErrorType = "conflict"
	TypeConfirmation ErrorType = "confirmation_required"
	TypeOffline      ErrorType = "offline"
	TypeTimeout      ErrorType = "timeout"
	TypeUnknown      ErrorType = "outcome_unknown"
	TypeWrite        ErrorType = "write_failed"
	TypeUnsupported  ErrorType = "unsupported"
	TypeRateLimited  ErrorType = "rate_limited"
	TypeTooLarge     ErrorType = "too_large"
)

// Retry tells an agent whether and how the same call may be sent again.
type Retry string

// The three answers to "may I try again?".
const (
	RetryNo    Retry = "no"
	RetrySame  Retry = "same_request_id" // send the same call with the request id of the error
	RetryAfter Retry = "after"           // after RetryAfterS seconds
)

// Code names one entry of the error table. Codes that equal their type are not
// repeated on the wire.
type Code string

// Entry is one row of the closed error table: what a code means, what type it
// belongs to, and whether sending the call again can help.
type Entry struct {
	Code    Code
	Type    ErrorType
	Retry   Retry
	Meaning string // what happened, for docs/errors.md
	Next    string // what the reader can do; becomes the hint where the error has none
}

// The codes in use. Adding one means adding its row to Vocabulary; the
// compiler cannot check that, TestEveryCodeHasARow does.
const (
	InvalidArguments     Code = "validation_error"
	UnknownTool          Code = "unknown_tool"
	UnknownAction        Code = "unknown_action"
	UnknownHelpTopic     Code = "unknown_help_topic"
	InvalidTarget        Code = "invalid_target"
	InvalidValue         Code = "invalid_value"
	StatementRefused     Code = "statement_refused"
	APIError             Code = "api_error"
	NotebookLocked       Code = "notebook_locked"
	NotebookClosed       Code = "notebook_closed"
	SyncInProgress       Code = "sync_in_progress"
	IndexUnavailable     Code = "index_unavailable"
	PermissionDenied     Code = "permission_denied"
	HiddenReference      Code = "reference_not_readable"
	ActionDisabled       Code = "disabled_error"
	Internal             Code = "internal_error"
	NotFound             Code = "not_found"
	Ambiguous            Code = "ambiguous"
	AmbiguousPath        Code = "ambiguous_path"
	Conflict             Code = "conflict"
	AlreadyExists        Code = "already_exists"
	StateChanged         Code = "state_changed"
	TemplateMissing      Code = "template_missing"
	ConfirmationRequired Code = "confirmation_required"
	ConfirmationInvalid  Code = "confirmation_invalid"
	ConfirmationUsed     Code = "confirmation_used"
	ConfirmationDeclined Code = "confirmation_declined"
	Offline              Code = "offline"
	ConnectorOffline     Code = "connector_offline"
	SiYuanOffline        Code = "siyuan_offline"
	SiYuanUnauthorized   Code = "siyuan_unauthorized"
	WrongWorkspace       Code = "wrong_workspace"
	TunnelReplaced       Code = "tunnel_replaced"
	Timeout              Code = "timeout"
	OutcomeUnknown       Code = "outcome_unknown"
	WriteFailed          Code = "write_failed"
	WriteNotPersisted    Code = "write_not_persisted"
	WouldLoseAttrs       Code = "would_lose_attrs"
	LedgerFull           Code = "ledger_full"
	PartlyDone           Code = "partly_done"
	RequestExpired       Code = "request_id_expired"
	PreconditionRequired Code = "precondition_required"
	LeaseInvalid         Code = "preflight_lease_invalid"
	AmbiguousHash        Code = "ambiguous_hash_prefix"
	StrictModeDisabled   Code = "strict_mode_disabled"
	Unsupported          Code = "unsupported"
	UnsupportedByKernel  Code = "unsupported_by_kernel"
	RateLimited          Code = "rate_limited"
	TooLarge             Code = "too_large"
	TransferExpired      Code = "transfer_expired"
	TransferUsed         Code = "transfer_used"
	TransferInterrupted  Code = "transfer_interrupted"
)

var vocabulary = []Entry{
	{InvalidArguments, TypeValidation, RetryNo, "The arguments do not fit the action.", "Correct the fields named in detail.fields; action=help with topic=<action> shows the exact form."},
	{UnknownTool, TypeValidation, RetryNo, "No tool of that name exists here.", "Use a tool from tools/list."},
	{UnknownAction, TypeValidation, RetryNo, "The tool has no such action.", "Use one of detail.valid_actions."},
	{UnknownHelpTopic, TypeValidation, RetryNo, "Help has no such topic.", "Use one of detail.valid_topics."},
	{InvalidTarget, TypeValidation, RetryNo, "The block cannot take what the action wants to do to it.", "Choose a target of the kind the message names."},
	{InvalidValue, TypeValidation, RetryNo, "A value has the wrong form for its place.", "Send the form the message names."},
	{StatementRefused, TypeValidation, RetryNo, "The SQL statement is not one that may run here.", "Use the form named in the hint."},
	{RequestExpired, TypeValidation, RetryNo, "The request id is older than what the connector remembers; nothing was executed.", "Read the note to see whether the write happened; if not, send it with a new request id."},
	{PreconditionRequired, TypeValidation, RetryNo, "This tenant wants the write validated first.", "Send the call with validateOnly=true, then again with the hash from the answer."},
	{LeaseInvalid, TypeValidation, RetryNo, "The hash is not one that validateOnly gave out for this call, or it is too old or used up.", "Send the call with validateOnly=true again."},
	{AmbiguousHash, TypeValidation, RetryNo, "The short hash fits more than one validation.", "Send at least detail.minimum_required_length digits of it."},
	{APIError, TypeAPI, RetryNo, "SiYuan refused the operation.", "Check the ids and the state of the note; the owner finds SiYuan's own words in the connector's log."},
	{NotebookLocked, TypeAPI, RetryNo, "The notebook is encrypted and locked.", "Ask the owner to unlock it in SiYuan."},
	{NotebookClosed, TypeAPI, RetryNo, "The notebook is closed.", "Open it with notebook.set_open_state, or ask the owner to."},
	{SyncInProgress, TypeAPI, RetryAfter, "SiYuan is syncing; writing now could be overwritten.", "Send the call again after retry_after_s."},
	{IndexUnavailable, TypeAPI, RetryAfter, "SiYuan is still building its index; the answer would be incomplete.", "Send the call again after retry_after_s."},
	{PermissionDenied, TypePermission, RetryNo, "The notebook may be read, but the action needs a higher level.", "A tenant owner or admin can raise the level; detail says which is needed."},
	{HiddenReference, TypePermission, RetryNo, "The text links to something the caller may not read.", "Leave that reference out."},
	{ActionDisabled, TypeDisabled, RetryNo, "The action is switched off.", "A tenant owner or admin can switch it on in the console."},
	{StrictModeDisabled, TypeDisabled, RetryNo, "Validating a write before doing it is switched off for this tenant.", "Send the call without validateOnly and without a hash."},
	{Internal, TypeInternal, RetryNo, "Something failed that should not.", "Report the request_id to whoever runs this service."},
	{NotFound, TypeNotFound, RetryNo, "Nothing of that id or path exists for the caller.", "Look it up again: it may have been moved or deleted."},
	{Ambiguous, TypeAmbiguous, RetryNo, "More than one thing fits.", "Use one of the ids in detail."},
	{AmbiguousPath, TypeAmbiguous, RetryNo, "Several documents share that path.", "Use one of the ids in detail."},
	{Conflict, TypeConflict, RetryNo, "The request id was used before with other arguments.", "Use a new request id for a new call."},
	{AlreadyExists, TypeConflict, RetryNo, "There is one already.", "Use the id in detail, or another name."},
	{StateChanged, TypeConflict, RetryNo, "The note changed since it was looked at.", "Read it again and decide anew."},
	{TemplateMissing, TypeConflict, RetryNo, "The notebook's template file does not exist.", "Ask the owner to correct the template path in the notebook's settings."},
	{ConfirmationRequired, TypeConfirmation, RetrySame, "A person has to agree first.", "Show the person the link in detail, then send the same call again."},
	{ConfirmationInvalid, TypeConfirmation, RetryNo, "The confirmation that came with the call is not good for it; nothing was done.", "Send the call as a new one, without requestId and confirmationToken, to ask again."},
	{ConfirmationUsed, TypeConfirmation, RetryNo, "The agreement to this call was used before; nothing was done now.", "Read the note to see what the first call did. Send a new call, without requestId, to ask again."},
	{ConfirmationDeclined, TypePermission, RetryNo, "A person declined the call; nothing was done.", "Ask the person what they want instead of trying again."},
	{Offline, TypeOffline, RetryAfter, "The home cannot be reached.", "Send the call again after retry_after_s."},
	{ConnectorOffline, TypeOffline, RetryAfter, "The connector at home is not connected.", "Ask the owner to start siyuan-connector; detail.last_seen says when it was last here."},
	{SiYuanOffline, TypeOffline, RetryAfter, "The connector runs, but SiYuan does not answer it.", "Ask the owner to start SiYuan."},
	{SiYuanUnauthorized, TypeOffline, RetryNo, "SiYuan refuses the connector's API token.", "The owner must give the connector the token from SiYuan: Settings, About, API token."},
	{WrongWorkspace, TypeOffline, RetryNo, "Another SiYuan workspace answers at the configured address.", "The owner must start the right workspace or pair the connector with this one; the API token was shown to the other one."},
	{TunnelReplaced, TypeOffline, RetryAfter, "A newer connection of the same connector took over.", "Reads can be sent again at once."},
	{Timeout, TypeTimeout, RetryAfter, "The call took longer than it may; nothing was changed.", "Ask for less at once, or try again later."},
	{OutcomeUnknown, TypeUnknown, RetrySame, "The connection broke while a write was under way; it may or may not have happened.", "Send the same call with the same request id to learn the outcome, or read the block named in detail."},
	{WriteFailed, TypeWrite, RetryNo, "The write did not happen.", "Read the note and try again."},
	{PartlyDone, TypeWrite, RetryNo, "The call was interrupted between two writes; part of it happened, and nothing more of it will.", "detail.done says what happened; read it and send what is missing with a new request id."},
	{WriteNotPersisted, TypeWrite, RetryNo, "SiYuan reported success, but the note does not show the change.", "Read the note before trying again."},
	{WouldLoseAttrs, TypeWrite, RetryNo, "SiYuan would drop attributes or references of the block with this edit, so nothing was written.", "Edit only the text around what detail names, or send DOM."},
	{LedgerFull, TypeWrite, RetryAfter, "The connector's list of recent writes is full; nothing was executed.", "Wait, or ask the owner to raise its size."},
	{Unsupported, TypeUnsupported, RetryNo, "This cannot be done here.", "The message says what can."},
	{UnsupportedByKernel, TypeUnsupported, RetryNo, "The SiYuan at home is too old or too new for the action.", "Ask the owner to update SiYuan or the connector."},
	{RateLimited, TypeRateLimited, RetryAfter, "Too many calls.", "Send the call again after retry_after_s."},
	{TransferExpired, TypeNotFound, RetrySame, "The one-time URL has expired, or a newer one took its place; nothing was transferred by it.", "Call the action again, of an upload with the same requestId, for a new URL."},
	{TransferUsed, TypeConflict, RetrySame, "The one-time URL was used before.", "Call the action again: an upload with the same requestId tells what came of it, or gives a new URL if nothing did."},
	{TransferInterrupted, TypeTimeout, RetrySame, "A file did not come whole; nothing was stored.", "Call the action again with the same requestId for a new URL."},
	{TooLarge, TypeTooLarge, RetryNo, "The arguments or the result are larger than allowed.", "Ask for a smaller part."},
}

// Vocabulary returns the closed error table in its documented order.
func Vocabulary() []Entry { return append([]Entry(nil), vocabulary...) }

// Known reports whether a code is one of the vocabulary.
func Known(c Code) bool {
	return slices.ContainsFunc(vocabulary, func(e Entry) bool { return e.Code == c })
}

func entryOf(c Code) Entry {
	for _, e := range vocabulary {
		if e.Code == c {
			return e
		}
	}
	return Entry{Code: Internal, Type: TypeInternal, Retry: RetryNo, Next: "Report the request_id to whoever runs this service."}
}

// Field points at one argument that is wrong.
type Field struct {
	Path    string `json:"path"` // dotted, from the root of the arguments
	Message string `json:"message"`
}

// Error is the one failure shape of tool results, REST bodies, the tunnel and
// the CLI. Message and Hint never carry note text, paths of the home machine,
// tokens or SQL of ours.
type Error struct {
	Type        ErrorType       `json:"type"`
	Code        Code            `json:"code,omitempty"`
	Message     string          `json:"message"`
	Hint        string          `json:"hint,omitempty"`
	Retry       Retry           `json:"retry"`
	RetryAfterS int             `json:"retry_after_s,omitempty"`
	RequestID   string          `json:"request_id,omitempty"`
	Detail      json.RawMessage `json:"detail,omitempty"`

	cause error
}

// Fail makes an error of the table. The message says what happened to what; the
// table adds type, retry and the hint.
func Fail(code Code, format string, args ...any) *Error {
	row := entryOf(code)
	e := &Error{Type: row.Type, Code: row.Code, Message: fmt.Sprintf(format, args...), Hint: row.Next, Retry: row.Retry}
	if string(e.Code) == string(e.Type) {
		e.Code = ""
	}
	if e.Retry == RetryAfter {
		e.RetryAfterS = 5
	}
	return e
}

// Internalf wraps an unexpected error. Its text stays on this side: agents see
// only the request id, which the log carries too.
func Internalf(cause error, format string, args ...any) *Error {
	e := Fail(Internal, "Something failed on our side; the request id leads to the log.")
	e.cause = fmt.Errorf(format+": %w", append(args, cause)...)
	return e
}

// WithHint replaces the table's hint.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithDetail attaches a value that marshals to JSON. A value that does not is
// a programming error and is left out.
func (e *Error) WithDetail(v any) *Error {
	if b, err := json.Marshal(v); err == nil {
		e.Detail = b
	}
	return e
}

// WithCause keeps an underlying error for errors.Is and the log; it never
// reaches the wire.
func (e *Error) WithCause(err error) *Error {
	e.cause = err
	return e
}

// After sets the seconds to wait before trying again.
func (e *Error) After(seconds int) *Error {
	e.Retry, e.RetryAfterS = RetryAfter, seconds
	return e
}

// InvalidFields is the validation error for one or more wrong arguments.
func InvalidFields(fields ...Field) *Error {
	msg := "The arguments are not valid."
	if len(fields) > 0 {
		msg = fields[0].Path + ": " + fields[0].Message
		if fields[0].Path == "" {
			msg = fields[0].Message
		}
	}
	return Fail(InvalidArguments, "%s", msg).WithDetail(map[string]any{"fields": append([]Field{}, fields...)})
}

// Error is type, code and message, and the cause for logs.
func (e *Error) Error() string {
	s := string(e.Type)
	if e.Code != "" {
		s += "/" + string(e.Code)
	}
	s += ": " + e.Message
	if e.cause != nil {
		s += " (" + e.cause.Error() + ")"
	}
	return s
}

// Unwrap gives the cause, if any.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is an Error of the same type and code, so that
// errors.Is(err, contract.Fail(contract.NotFound, "")) reads naturally in tests.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Type == e.Type && t.Code == e.Code
}

// CodeOf is the code of err, also where the wire leaves it out; Internal for
// anything that is not an Error; "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if !errors.As(err, &e) {
		return Internal
	}
	if e.Code == "" {
		return Code(e.Type)
	}
	return e.Code
}

// AsError turns any error into one of the vocabulary: an Error stays itself,
// anything else becomes internal_error and keeps its text to the log.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Internalf(err, "unexpected")
}

// Body is the wire form {"error": …}.
func (e *Error) Body() []byte {
	b, err := json.Marshal(struct {
		Error *Error `json:"error"`
	}{e})
	if err != nil { // only Detail could fail, and WithDetail marshalled it
		return []byte(`{"error":{"type":"internal_error","message":"The error could not be written.","retry":"no"}}`)
	}
	return b
}
