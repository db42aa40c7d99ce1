package samplekernel

import (
	"fmt"
	"strings"
)

// args is the JSON object of a request body.
//
// A real kernel has two kinds of handlers. Some check their fields and answer
// "Field [x] is required"; those use the need methods. The others trust the
// body, panic on a bad one, and the answer is code 0 with data null; those use
// the plain methods, which panic with badArgument for the dispatcher to swallow.
type args map[string]any

type badArgument struct{ field string }

func as[T any](a args, field string) T {
	v, ok := a[field].(T)
	if !ok {
		panic(badArgument{field})
	}
	return v
}

func or[T any](a args, field string, fallback T) T {
	v, present := a[field]
	if !present || v == nil {
		return fallback
	}
	return as[T](a, field)
}

func (a args) str(field string) string             { return as[string](a, field) }
func (a args) strOr(field, fallback string) string { return or(a, field, fallback) }
func (a args) boolOr(field string, fallback bool) bool {
	return or(a, field, fallback)
}
func (a args) intOr(field string, fallback int) int {
	return int(or(a, field, float64(fallback)))
}
func (a args) list(field string) []any { return as[[]any](a, field) }

func (a args) object(field string) args { return args(as[map[string]any](a, field)) }

func (a args) strs(field string) []string { return toStrings(a.list(field), field) }

func (a args) strsOr(field string) []string {
	return toStrings(or(a, field, []any(nil)), field)
}

func toStrings(list []any, field string) []string {
	out := make([]string, 0, len(list))
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			panic(badArgument{field})
		}
		out = append(out, s)
	}
	return out
}

func (a args) objects(field string) []args {
	list := a.list(field)
	out := make([]args, 0, len(list))
	for _, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			panic(badArgument{field})
		}
		out = append(out, args(m))
	}
	return out
}

// need checks a field as the careful handlers do.
func need[T any](a args, field, typeName string) (v T, err error) {
	raw, present := a[field]
	if !present || raw == nil {
		return v, fail("Field [" + field + "] is required")
	}
	v, ok := raw.(T)
	if !ok {
		return v, fail("Field [" + field + "] should be of type [" + typeName + "]")
	}
	return v, nil
}

func (a args) needStr(field string) (string, error) {
	return need[string](a, field, "String")
}

func (a args) needText(field string) (string, error) {
	s, err := a.needStr(field)
	if err == nil && strings.TrimSpace(s) == "" {
		err = fail("Field [" + field + "] must not be empty")
	}
	return s, err
}

// apiError is an answer with a code other than 0.
type apiError struct {
	code int
	msg  string
	data any
}

func (e *apiError) Error() string { return fmt.Sprintf("code %d: %s", e.code, e.msg) }

func fail(msg string) error               { return &apiError{code: -1, msg: msg} }
func failCode(code int, msg string) error { return &apiError{code: code, msg: msg} }

// failToast is an error the front end would show for ms milliseconds.
func failToast(msg string, ms int) error {
	return &apiError{code: -1, msg: msg, data: map[string]any{"closeTimeout": ms}}
}

const (
	msgBadID       = "invalid ID argument"
	msgNoTree      = "tree not found"
	msgIndexing    = "indexing"
	msgNoNotebook  = "Query notebook failed"
	msgNoBlock     = "block not found"
	msgTooLong     = "Maximum length is limited to 512 characters"
	msgIndexingBox = "Data indexing is in progress. Please wait until indexing completes before trying to open"
)
