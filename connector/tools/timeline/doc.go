// Package timeline has the handlers of the timeline tool: what an agent wrote, and
// the way back. Plans of undo are connector/undo's; this package gives an agent its
// own writes only.
package timeline
