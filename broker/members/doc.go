// Package members is the page about who belongs to a tenant: members and their
// roles, invitations, teams, and which notebooks are shared with whom. Owners and
// admins change it there, within what their role may grant; everybody else sees
// what is shared with them, and may leave. Each change stands in the audit log.
//
// It decides no right of an agent: that is admission's, which reads what is set
// here. It must not know how people sign in, nor how calls travel.
package members
