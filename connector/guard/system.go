package guard

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"time"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Version is SiYuan's version, such as 3.7.3.
func (s *Session) Version(ctx context.Context) (string, error) {
	info, err := s.g.r.WorkspaceInfo(ctx)
	return info.Version, err
}

// Clock is the time of the home machine.
func (s *Session) Clock(ctx context.Context) (time.Time, error) { return s.g.r.CurrentTime(ctx) }

// holds demands a workspace switch. Every method that shows or changes what
// belongs to no notebook asks it itself, whatever its caller has checked.
func (s *Session) holds(need contract.Switch) error {
	if s.grant.Has(need) {
		return nil
	}
	return contract.Fail(contract.PermissionDenied, "This needs the workspace permission %q.", string(need)).
		WithHint("Only the agent of a tenant owner or admin can hold it, and only where it is switched on in the console.")
}

// Holds reports whether the caller has a workspace switch.
func (s *Session) Holds(w contract.Switch) bool { return s.grant.Has(w) }

// WorkspaceDir is the folder of the workspace on the home machine. It needs the
// system switch.
func (s *Session) WorkspaceDir(ctx context.Context) (dir, version string, err error) {
	if err := s.holds(contract.SwitchSystem); err != nil {
		return "", "", err
	}
	info, err := s.g.r.WorkspaceInfo(ctx)
	return info.Dir, info.Version, err
}

// Proxy is how SiYuan reaches the internet.
type Proxy struct{ Scheme, Host, Port string }

// credentials are a user and password in front of a host.
var credentials = regexp.MustCompile(`^.*@`)

// Proxy tells the proxy, without the credentials that its host may carry. It
// needs the system switch.
func (s *Session) Proxy(ctx context.Context) (Proxy, error) {
	if err := s.holds(contract.SwitchSystem); err != nil {
		return Proxy{}, err
	}
	n, err := s.g.r.Network(ctx)
	return Proxy{n.Proxy.Scheme, credentials.ReplaceAllString(n.Proxy.Host, masked+"@"), n.Proxy.Port}, err
}

// Conf is SiYuan's configuration as decoded JSON, with everything masked that is
// or may be a secret. It needs the system switch and that nothing is hidden from
// the caller, because the configuration counts notes and names notebooks.
func (s *Session) Conf(ctx context.Context) (map[string]any, error) {
	if err := s.holds(contract.SwitchSystem); err != nil {
		return nil, err
	}
	if !s.whole() {
		return nil, contract.Fail(contract.Unsupported, "SiYuan's settings name notebooks and count notes, so they are shown only to those who may read all of them.").
			WithHint("Ask a tenant owner for the level r on every notebook.")
	}
	raw, err := s.g.r.RawConf(ctx)
	if err != nil {
		return nil, err
	}
	return maskConf(raw)
}

// Notify shows a message in SiYuan's window. There is nothing to read back: the
// id is SiYuan's word that it was shown.
func (tx *Tx) Notify(ctx context.Context, msg string, asError bool, shown time.Duration) (id string, err error) {
	if err := tx.s.holds(contract.SwitchSystem); err != nil {
		return "", err
	}
	err = tx.step(ctx, Step{Op: "system.notify", Repeatable: "a message that is shown twice changes no note, and SiYuan keeps no list of messages"}, func(w *siyuan.Writer) error {
		if asError {
			id, err = w.PushError(ctx, msg, shown)
		} else {
			id, err = w.PushMessage(ctx, msg, shown)
		}
		return err
	})
	return id, err
}

// SyncState is what SiYuan tells about its last sync.
type SyncState struct {
	Said   string // localized, secrets masked
	Synced time.Time
}

// syncConf is the part of the configuration that says whether a sync can be
// asked for. In the manual mode the kernel wants to be told a direction.
type syncConf struct {
	Sync struct {
		Enabled bool `json:"enabled"`
		Mode    int  `json:"mode"`
	} `json:"sync"`
	Repo struct {
		Key *string `json:"key"`
	} `json:"repo"`
}

const syncByHand = 3

// CheckSync refuses a sync that SiYuan would claim to have done: it answers
// success also where none is set up.
func (s *Session) CheckSync(ctx context.Context) error {
	_, err := s.confToSync(ctx)
	return err
}

// confToSync is the configuration, where a sync can be asked for.
func (s *Session) confToSync(ctx context.Context) (json.RawMessage, error) {
	if err := s.holds(contract.SwitchSync); err != nil {
		return nil, err
	}
	raw, err := s.g.r.RawConf(ctx)
	if err != nil {
		return nil, err
	}
	var c syncConf
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, contract.Internalf(errors.New("guard: the configuration has another form"), "read the sync settings")
	}
	switch {
	case !c.Sync.Enabled:
		return nil, contract.Fail(contract.Unsupported, "Sync is not set up in SiYuan; nothing was synced.").
			WithHint("The person can set it up in SiYuan, in the settings of the cloud.")
	case c.Sync.Mode == syncByHand:
		return nil, contract.Fail(contract.Unsupported, "SiYuan is set to sync by hand, where a person chooses between upload and download; nothing was synced.").
			WithHint("Ask the person to sync in SiYuan, or to choose another sync mode.")
	}
	return raw, nil
}

// Sync asks SiYuan for a sync and waits for its end. A sync that failed shows in
// what SiYuan says about it, so that is the read-back; secrets in it are masked.
func (tx *Tx) Sync(ctx context.Context) (SyncState, error) {
	conf, err := tx.s.confToSync(ctx)
	if err != nil {
		return SyncState{}, err
	}
	err = tx.step(ctx, Step{Op: "system.perform_sync", Repeatable: "a sync of what is in sync changes nothing"}, func(w *siyuan.Writer) error { return w.Sync(ctx, false) })
	if err != nil {
		return SyncState{}, err
	}
	info, err := tx.s.g.r.SyncInfo(ctx)
	if err != nil {
		return SyncState{}, err
	}
	said, err := maskText(info.Stat, conf)
	return SyncState{Said: said, Synced: time.UnixMilli(info.Synced)}, err
}
