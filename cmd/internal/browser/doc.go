// Package browser is for tests of pages in a real Chromium: it starts a whole
// broker on a database of its own, opens pages as a person would, and fails the
// test on whatever a person or a browser would stumble over (script errors,
// blocked resources, pages wider than the screen, text that is hard to read).
// Only tests import it.
package browser
