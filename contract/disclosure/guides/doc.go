// Package guides holds the texts that agents read when they want more than
// help on one action: skills, which teach a kind of work; prompts, which are
// workflows over our tools that a person starts; and pages of help.
//
// Every text is told line by line as far as the reader may use what a line
// names: a line that names an action the reader may not use is left out, a
// section that loses all such lines goes with its heading, steps are numbered
// anew, and a text whose core is off does not exist. So what is off is not
// spoken of, whatever a text says.
//
// The package knows nothing of MCP, tenants or transports.
package guides
