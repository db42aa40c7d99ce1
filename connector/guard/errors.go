package guard

import (
	"context"
	"errors"
	"net/http"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Public is the one place where errors of the kernel become errors of the
// contract. Kernel messages stay behind: they may quote notes and name files.
// The original error is kept as the cause, for the log at home.
func Public(err error) *contract.Error {
	if e, ok := errors.AsType[*contract.Error](err); ok {
		return e
	}
	fail := func(code contract.Code, text string) *contract.Error {
		return contract.Fail(code, "%s", text).WithCause(err)
	}
	if e, ok := errors.AsType[*siyuan.Error](err); ok && e.Kind == siyuan.Status {
		switch e.Status {
		case http.StatusNotFound:
			return fail(contract.UnsupportedByKernel, "This SiYuan has not the function that the action needs.")
		case http.StatusTooManyRequests:
			return fail(contract.RateLimited, "SiYuan turns the connector away for a while.")
		}
	}
	switch siyuan.KindOf(err) {
	case siyuan.Offline:
		return fail(contract.SiYuanOffline, "SiYuan does not answer the connector.")
	case siyuan.Unauthorized:
		return fail(contract.SiYuanUnauthorized, "SiYuan refuses the connector's API token.")
	case siyuan.Timeout, siyuan.Canceled:
		return fail(contract.Timeout, "SiYuan did not answer in time; nothing was changed.")
	case siyuan.Indexing:
		return fail(contract.IndexUnavailable, "SiYuan is still building its index.")
	case siyuan.Missing:
		return fail(contract.NotFound, "It does not exist.")
	case siyuan.Rejected:
		return fail(contract.APIError, "SiYuan refused the operation.")
	case siyuan.Malformed, siyuan.Status:
		return fail(contract.APIError, "SiYuan gave an answer that the connector does not understand.")
	case siyuan.TooLarge:
		return fail(contract.TooLarge, "SiYuan's answer is larger than the connector accepts.")
	case siyuan.OutcomeUnknown:
		return fail(contract.OutcomeUnknown, "SiYuan's answer to the write never came; it may or may not have happened.")
	}
	if errors.Is(err, siyuan.Missing) { // the bare kind, without a call around it
		return fail(contract.NotFound, "It does not exist.")
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fail(contract.Timeout, "The call ended before it was done; nothing was changed.")
	}
	return contract.Internalf(err, "guard")
}

// Unreachable reports whether an error means that the kernel could not be asked.
func Unreachable(err error) bool {
	e, ok := errors.AsType[*siyuan.Error](err)
	return ok && e.Kind != siyuan.Rejected && e.Kind != siyuan.Missing
}
