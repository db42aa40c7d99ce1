// Package settings is the page on which owners and admins say what agents may do
// in their workspaces: levels of notebooks, actions, how a person agrees to the
// dangerous ones, workspace-wide rights, and what answers may hold. It writes what
// the person changed and nothing else, each change into the audit log.
//
// It decides no right: that is admission's, which reads what is set here. It must
// not know how calls travel, nor protocols.
package settings
