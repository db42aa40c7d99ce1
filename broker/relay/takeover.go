package relay

import (
	"time"

	"github.com/google/uuid"

	"siyuan-broker/contract"
)

// takeover is when this session's connector began to take the place of another
// one of its instance. What that one was asked to write is in its memory only.
type takeover struct {
	now bool      // this very session is the beginning
	at  time.Time // no other was sent anything since; zero: there never was one
}

// begin notes the moment in which the session becomes the live one.
func (t *takeover) begin(at time.Time) {
	if t.now && at.After(t.at) {
		t.at = at
	}
}

// before reports whether a write may have been sent to the other connector: its
// request id is from before the takeover, by the clock of the broker, ahead of
// which no id is accepted.
func (t *takeover) before(c contract.Call) bool {
	if t.at.IsZero() || c.First {
		return false
	}
	id, err := uuid.Parse(c.RequestID)
	if err != nil || id.Version() != 7 {
		return false // no connector runs a write under such an id
	}
	return time.Unix(id.Time().UnixTime()).Before(t.at)
}

// unknown is the answer where this connector does not know the id either.
func (t *takeover) unknown() *contract.Error {
	e := contract.Fail(contract.OutcomeUnknown, "The connector at home took over from another one at %s and does not know this request id, which is older: the other one may have done the write. Nothing was done now.", t.at.UTC().Format(time.RFC3339)).
		WithHint("Read what the call was about. If the write did not happen, send it with a new requestId, a UUIDv7 made now.")
	e.Retry = contract.RetryNo
	return e
}
