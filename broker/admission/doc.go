// Package admission decides what a principal may do. A Snapshot is everything
// that is known about one agent at one moment, compiled for quick answers;
// Decide is the one function that answers, used wherever something is listed,
// explained or called, so that these can never differ.
//
// It must not know how a caller proved who it is, what protocol it speaks or
// how calls reach the home.
package admission
