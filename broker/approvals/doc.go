// Package approvals has the pages on which people answer for calls that wait. What
// an answer means and who may give it, package consent decides; this package knows
// neither agents' protocol nor the store.
package approvals
