// Package here is what calls that the broker answers itself have in common:
// the call as such an answer needs it, the strict write protocol, and several
// places asked in turn. It must not know what is answered, nor how calls reach a
// home.
package here
