// Package policy is the home owner's veto: one YAML file beside the connector
// that caps what any broker, tenant or agent may do with the notes of this
// home. The broker is told the file's effect and cannot change it; the
// connector enforces the file whatever the broker believes.
//
// Without a file the cap is r: nothing is written at home until the owner says
// so. The package knows levels, actions and notebook names, but neither the
// kernel nor the tunnel.
package policy
