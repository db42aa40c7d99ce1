package pairing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// What a person may be told instead of success.
var (
	// ErrNoCode means that no machine waits with that code.
	ErrNoCode = errors.New("no machine waits with this code")
	// ErrTooManyTries means that the person, or all people, typed too many codes.
	ErrTooManyTries = errors.New("too many codes were typed")
	// ErrGone means that the pairing has expired, was decided, or is another's.
	ErrGone = errors.New("this request is no longer open")
	// ErrNotAllowed means that the person does not manage that tenant, or the
	// instance is not there.
	ErrNotAllowed = errors.New("not an owner or admin there")
	// ErrOccupied means that the instance has a connector already and the person
	// has not said that another shall join it.
	ErrOccupied = errors.New("the instance has a connector already")
	// ErrLimit means that the tenant has as many connectors or instances as it may.
	ErrLimit = errors.New("the tenant has as many as it may")
	// ErrName means that a name for a new instance is missing or taken.
	ErrName = errors.New("the name is missing or taken")
)

// Place is where a machine shall belong: an instance, or a new one of that name.
type Place struct {
	Tenant   tenants.ID
	Instance tenants.ID
	NewName  string // when Instance is zero
}

// Choice is a tenant that a person manages, with its instances.
type Choice struct {
	Tenant    tenants.ID
	Name      string
	Instances []InstanceChoice
}

// InstanceChoice is an instance with the connectors in force.
type InstanceChoice struct {
	ID         tenants.ID
	Name       string
	Connectors []tenants.Connector
}

// Claim finds the machine that waits with a code.
func (s *Service) Claim(ctx context.Context, person tenants.ID, typed string) (tenants.Pairing, error) {
	for _, x := range []struct {
		who   string
		limit int
	}{{person.String(), s.Limits.Guess}, {"", s.Limits.GuessAll}} {
		if s.allow(ctx, "guess", x.who, x.limit, GuessWindow) != nil {
			return tenants.Pairing{}, ErrTooManyTries
		}
	}
	code, ok := typedCode(typed)
	if !ok {
		return tenants.Pairing{}, ErrNoCode
	}
	p, err := s.Store.ClaimPairing(ctx, code, person, s.Now())
	if errors.Is(err, tenants.ErrNotFound) {
		s.Log.Info("unknown pairing code", "person", person)
		return p, ErrNoCode
	}
	return p, err
}

// Claimed is the open pairing whose code this person typed; ErrGone.
func (s *Service) Claimed(ctx context.Context, person, id tenants.ID) (tenants.Pairing, error) {
	p, err := s.Store.ClaimedPairing(ctx, id, person)
	if errors.Is(err, tenants.ErrNotFound) || err == nil && (p.State != tenants.PairingOpen || !s.Now().Before(p.ExpiresAt)) {
		return p, ErrGone
	}
	return p, err
}

// Choices are the tenants a person manages.
func (s *Service) Choices(ctx context.Context, person tenants.ID) ([]Choice, error) {
	all, err := s.Store.MembershipsOf(ctx, person)
	if err != nil {
		return nil, err
	}
	var list []Choice
	for _, m := range all {
		if !m.Role.Manages() {
			continue
		}
		c := Choice{Tenant: m.TenantID, Name: m.TenantName}
		var active bool
		err := s.Store.In(ctx, m.TenantID, func(tx tenants.Tx) error {
			t, err := tx.Tenant(ctx)
			if err != nil {
				return err
			}
			active = t.Status == tenants.Active
			c.Instances, err = instances(ctx, tx)
			return err
		})
		if err != nil {
			return nil, err
		}
		if active {
			list = append(list, c)
		}
	}
	return list, nil
}

// Approve lets the machine in. Everything happens or nothing: the connector is
// registered, a new instance made, and the log told. again says that the person
// knows of the connector that is there.
func (s *Service) Approve(ctx context.Context, person, id tenants.ID, to Place, again bool) (tenants.Connector, error) {
	var c tenants.Connector
	err := s.Store.In(ctx, to.Tenant, func(tx tenants.Tx) error {
		limits, err := s.manages(ctx, tx, person)
		if err != nil {
			return err
		}
		p, err := tx.ApprovePairing(ctx, id, person, s.Now())
		if errors.Is(err, tenants.ErrNotFound) {
			return ErrGone
		}
		if err != nil {
			return err
		}
		if err := s.room(ctx, tx, limits, &to, again); err != nil {
			return err
		}
		c, err = tx.RegisterConnector(ctx, tenants.Connector{InstanceID: to.Instance, Name: p.Name, OS: p.OS, Version: p.Version, PublicKey: p.Key, PairedBy: person})
		if errors.Is(err, tenants.ErrConflict) { // registered by hand meanwhile
			return ErrGone
		}
		if err != nil {
			return err
		}
		return audit(ctx, tx, c, tenants.AuditEntry{ActorKind: "member", ActorID: person, Verb: "connector.pair"}, map[string]string{"address": p.Address})
	})
	if err == nil {
		s.Log.Info("connector paired", "tenant", c.TenantID, "connector", c.ID, "instance", c.InstanceID, "by", person)
	}
	return c, err
}

// manages checks that the person may let machines into the transaction's tenant.
func (s *Service) manages(ctx context.Context, tx tenants.Tx, person tenants.ID) (tenants.Limits, error) {
	m, err := tx.Member(ctx, person)
	if errors.Is(err, tenants.ErrNotFound) || err == nil && !m.Role.Manages() {
		return tenants.Limits{}, ErrNotAllowed
	}
	if err != nil {
		return tenants.Limits{}, err
	}
	t, err := tx.Tenant(ctx)
	if err == nil && t.Status != tenants.Active {
		err = ErrNotAllowed
	}
	limits := t.Limits
	if limits.MaxInstances == 0 {
		limits.MaxInstances = s.Limits.Instances
	}
	if limits.MaxConnectors == 0 {
		limits.MaxConnectors = s.Limits.Connectors
	}
	return limits, err
}

// room makes sure that the place takes one connector more, making the instance
// if it is new.
func (s *Service) room(ctx context.Context, tx tenants.Tx, limits tenants.Limits, to *Place, again bool) error {
	all, err := instances(ctx, tx)
	if err != nil {
		return err
	}
	live := 0
	for _, in := range all {
		live += len(in.Connectors)
	}
	if live >= limits.MaxConnectors {
		return fmt.Errorf("%d connectors: %w", live, ErrLimit)
	}
	if to.Instance != (tenants.ID{}) {
		i := slices.IndexFunc(all, func(in InstanceChoice) bool { return in.ID == to.Instance })
		switch {
		case i < 0:
			return ErrNotAllowed
		case len(all[i].Connectors) > 0 && !again:
			return ErrOccupied
		}
		return nil
	}
	if len(all) >= limits.MaxInstances {
		return fmt.Errorf("%d instances: %w", len(all), ErrLimit)
	}
	name := shown(to.NewName, 100)
	if name == "" || slices.ContainsFunc(all, func(in InstanceChoice) bool { return in.Name == name }) {
		return ErrName
	}
	in, err := tx.CreateInstance(ctx, tenants.Instance{Name: name, DefaultLevel: contract.Read, Enabled: true})
	to.Instance = in.ID
	return err
}

// instances are those a connector can be added to.
func instances(ctx context.Context, tx tenants.Tx) ([]InstanceChoice, error) {
	all, err := tx.Instances(ctx)
	if err != nil {
		return nil, err
	}
	connectors, err := tx.Connectors(ctx, tenants.ID{})
	if err != nil {
		return nil, err
	}
	var list []InstanceChoice
	for _, in := range all {
		if !in.Enabled {
			continue
		}
		c := InstanceChoice{ID: in.ID, Name: in.Name}
		for _, x := range connectors {
			if x.InstanceID == in.ID && x.RevokedAt.IsZero() {
				c.Connectors = append(c.Connectors, x)
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// Deny turns a machine down.
func (s *Service) Deny(ctx context.Context, person, id tenants.ID) error {
	err := s.Store.DenyPairing(ctx, id, person, s.Now())
	if errors.Is(err, tenants.ErrNotFound) {
		return ErrGone
	}
	if err == nil {
		s.Log.Info("pairing denied", "pairing", id, "by", person)
	}
	return err
}

// Revoke takes a connector's access back, for an owner or admin of its tenant.
func (s *Service) Revoke(ctx context.Context, person, tenant, connector tenants.ID) error {
	return s.Store.In(ctx, tenant, func(tx tenants.Tx) error {
		if _, err := s.manages(ctx, tx, person); err != nil {
			return err
		}
		c, err := tx.Connector(ctx, connector)
		if errors.Is(err, tenants.ErrNotFound) {
			return ErrNotAllowed
		}
		if err != nil || !c.RevokedAt.IsZero() {
			return err
		}
		return revoke(ctx, tx, c, tenants.AuditEntry{ActorKind: "member", ActorID: person, Verb: "connector.revoke"})
	})
}

// revoke takes a connector's access back and audits it. Its tunnel is cut by
// whoever follows revocations.
func revoke(ctx context.Context, tx tenants.Tx, c tenants.Connector, by tenants.AuditEntry) error {
	if err := tx.RevokeConnector(ctx, c.ID); err != nil {
		return err
	}
	return audit(ctx, tx, c, by, nil)
}

// audit notes what was done to a connector, with what makes it recognisable.
func audit(ctx context.Context, tx tenants.Tx, c tenants.Connector, e tenants.AuditEntry, more map[string]string) error {
	detail := map[string]string{"fingerprint": c.Fingerprint, "name": c.Name, "instance": c.InstanceID.String()}
	for k, v := range more {
		detail[k] = v
	}
	b, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	e.Object, e.Detail = "connector:"+c.ID.String(), b
	return tx.Audit(ctx, e)
}

// Row is a connector as the list shows it.
type Row struct {
	tenants.Connector
	Instance  string
	Connected bool
}

// Listed are a tenant's connectors.
type Listed struct {
	Tenant tenants.ID
	Name   string
	Rows   []Row
}

// revokedShown is how long a revoked connector stays in the list.
const revokedShown = 30 * 24 * time.Hour

// List shows the connectors of every tenant a person manages.
func (s *Service) List(ctx context.Context, person tenants.ID) ([]Listed, error) {
	all, err := s.Store.MembershipsOf(ctx, person)
	if err != nil {
		return nil, err
	}
	var list []Listed
	for _, m := range all {
		if !m.Role.Manages() {
			continue
		}
		l := Listed{Tenant: m.TenantID, Name: m.TenantName}
		err := s.Store.In(ctx, m.TenantID, func(tx tenants.Tx) error {
			ins, err := tx.Instances(ctx)
			if err != nil {
				return err
			}
			names := map[tenants.ID]string{}
			for _, in := range ins {
				names[in.ID] = in.Name
			}
			cs, err := tx.Connectors(ctx, tenants.ID{})
			for _, c := range cs {
				if c.RevokedAt.IsZero() || s.Now().Sub(c.RevokedAt) < revokedShown {
					l.Rows = append(l.Rows, Row{Connector: c, Instance: names[c.InstanceID]})
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		for i := range l.Rows { // outside the transaction: another node may have to be asked
			l.Rows[i].Connected = l.Rows[i].RevokedAt.IsZero() && s.Connected(ctx, l.Rows[i].Connector)
		}
		list = append(list, l)
	}
	return list, nil
}
