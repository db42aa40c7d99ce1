// Package activity shows people what an agent wrote, sitting by sitting, and lets
// them take it back. What was written and what an undo would do, the home says, in
// the same actions that agents have (timeline); a person's confirmation becomes an
// agreement of package consent, so that the audit log tells who undid what.
//
// The package decides no undo, keeps nothing, and does not know how calls reach a
// home.
package activity
