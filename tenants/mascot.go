package tenants

import "time"

// PurchasesKept is how long a purchase answers the request that made it.
const PurchasesKept = 90 * 24 * time.Hour

// Mascot is the cat of a tenant: the coins its agents earned together, and the
// last thing that happened.
type Mascot struct {
	TotalCalls int64 // coins earned
	Balance    int64
	Last       MascotEvent // the zero one before the first call
}

// MascotEvent is something that happened to the cat, as a console draws it.
type MascotEvent struct {
	Seq        int64     `json:"seq"` // grows with each
	Tool       string    `json:"tool"`
	Action     string    `json:"action"`
	Status     string    `json:"status"` // success or error
	At         time.Time `json:"ts"`
	TotalCalls int64     `json:"totalCalls"`
	Balance    int64     `json:"balance"`
	ItemID     string    `json:"item_id,omitempty"` // that was bought
}

// Earned is what the calls of a batch earned one tenant, with the last of them.
type Earned struct {
	Tenant ID
	Coins  int64
	Tool   string
	Action string
	Failed bool
	At     time.Time
}

// Purchase is something an agent bought for the cat. TotalCalls and Balance are
// those right after it.
type Purchase struct {
	AgentID    ID
	RequestID  ID
	ItemID     string
	Cost       int64
	TotalCalls int64
	Balance    int64
	At         time.Time
}
