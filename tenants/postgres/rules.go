package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// Setting a rule to what it already is changes no row, and so does not raise the
// policy version.

func scanToggle(r pgx.CollectableRow) (v tenants.Toggle, err error) {
	err = r.Scan(&v.Tool, &v.Action, &v.Enabled)
	return v, err
}

func (t *tx) Toggles(ctx context.Context, instance tenants.ID) ([]tenants.Toggle, error) {
	return list(ctx, t, "toggles", scanToggle, `select tool, action, enabled from toggles
		where tenant_id = $1 and instance_id = $2 order by tool, action`, t.tenant, instance)
}

func (t *tx) SetToggle(ctx context.Context, instance tenants.ID, v tenants.Toggle) error {
	return t.run(ctx, "toggle "+v.Tool+"."+v.Action, `
		insert into toggles (tenant_id, instance_id, tool, action, enabled) values ($1, $2, $3, $4, $5)
		on conflict (tenant_id, instance_id, tool, action) do update set enabled = excluded.enabled
			where toggles.enabled <> excluded.enabled`, t.tenant, instance, v.Tool, v.Action, v.Enabled)
}

func (t *tx) ClearToggle(ctx context.Context, instance tenants.ID, tool, action string) error {
	return t.run(ctx, "clear toggle "+tool+"."+action,
		`delete from toggles where tenant_id = $1 and instance_id = $2 and tool = $3 and action = $4`, t.tenant, instance, tool, action)
}

func scanConsent(r pgx.CollectableRow) (v tenants.Consent, err error) {
	err = r.Scan(&v.Tool, &v.Action, &v.Mode)
	return v, err
}

func (t *tx) Consents(ctx context.Context, instance tenants.ID) ([]tenants.Consent, error) {
	return list(ctx, t, "consents", scanConsent, `select tool, action, mode from consents
		where tenant_id = $1 and instance_id = $2 order by tool, action`, t.tenant, instance)
}

func (t *tx) SetConsent(ctx context.Context, instance tenants.ID, v tenants.Consent) error {
	return t.run(ctx, "consent for "+v.Tool+"."+v.Action, `
		insert into consents (tenant_id, instance_id, tool, action, mode) values ($1, $2, $3, $4, $5)
		on conflict (tenant_id, instance_id, tool, action) do update set mode = excluded.mode
			where consents.mode <> excluded.mode`, t.tenant, instance, v.Tool, v.Action, string(v.Mode))
}

func (t *tx) Levels(ctx context.Context, instance tenants.ID) (map[string]contract.Level, error) {
	type entry struct {
		notebook string
		level    contract.Level
	}
	rows, err := list(ctx, t, "levels", func(r pgx.CollectableRow) (e entry, err error) {
		err = r.Scan(&e.notebook, intoLevel{&e.level})
		return e, err
	}, `select notebook_id, level from notebook_levels where tenant_id = $1 and instance_id = $2`, t.tenant, instance)
	if err != nil {
		return nil, err
	}
	levels := make(map[string]contract.Level, len(rows))
	for _, e := range rows {
		levels[e.notebook] = e.level
	}
	return levels, nil
}

func (t *tx) SetLevel(ctx context.Context, instance tenants.ID, notebook string, level contract.Level) error {
	return t.run(ctx, "level of notebook "+notebook, `
		insert into notebook_levels (tenant_id, instance_id, notebook_id, level) values ($1, $2, $3, $4)
		on conflict (tenant_id, instance_id, notebook_id) do update set level = excluded.level
			where notebook_levels.level <> excluded.level`, t.tenant, instance, notebook, level.String())
}

func (t *tx) ClearLevel(ctx context.Context, instance tenants.ID, notebook string) error {
	return t.run(ctx, "clear level of notebook "+notebook,
		`delete from notebook_levels where tenant_id = $1 and instance_id = $2 and notebook_id = $3`, t.tenant, instance, notebook)
}

func (t *tx) Switches(ctx context.Context, instance tenants.ID) ([]contract.Switch, error) {
	return list(ctx, t, "switches", pgx.RowTo[contract.Switch],
		`select switch from switches where tenant_id = $1 and instance_id = $2 order by switch`, t.tenant, instance)
}

func (t *tx) SetSwitch(ctx context.Context, instance tenants.ID, s contract.Switch, on bool) error {
	if on {
		return t.run(ctx, "switch on "+string(s),
			`insert into switches (tenant_id, instance_id, switch) values ($1, $2, $3) on conflict do nothing`, t.tenant, instance, string(s))
	}
	return t.run(ctx, "switch off "+string(s),
		`delete from switches where tenant_id = $1 and instance_id = $2 and switch = $3`, t.tenant, instance, string(s))
}

const shareColumns = `id, instance_id, notebook_id, member_id, team_id, level, created_by, created_at`

func scanShare(r pgx.CollectableRow) (s tenants.Share, err error) {
	err = r.Scan(&s.ID, &s.InstanceID, &s.NotebookID, intoID{&s.MemberID}, intoID{&s.TeamID},
		intoLevel{&s.Level}, intoID{&s.CreatedBy}, intoTime{&s.CreatedAt})
	return s, err
}

func (t *tx) Shares(ctx context.Context, f tenants.ShareFilter) ([]tenants.Share, error) {
	return list(ctx, t, "shares", scanShare, `
		select `+shareColumns+` from shares
		where tenant_id = $1
			and ($2::uuid is null or instance_id = $2)
			and ($3::text is null or notebook_id = $3)
			and ($4::uuid is null or member_id = $4)
			and ($5::uuid is null or team_id = $5)
		order by created_at, id`,
		t.tenant, idOrNull(f.InstanceID), textOrNull(f.NotebookID), idOrNull(f.MemberID), idOrNull(f.TeamID))
}

func (t *tx) Share(ctx context.Context, s tenants.Share) (tenants.Share, error) {
	receiver := "member_id"
	if s.TeamID != (tenants.ID{}) {
		receiver = "team_id"
	}
	return one(ctx, t, "share notebook "+s.NotebookID, scanShare, `
		insert into shares (tenant_id, id, instance_id, notebook_id, member_id, team_id, level, created_by)
		values ($1, $2, $3, $4, $5, $6, $7, $8)
		on conflict (tenant_id, instance_id, notebook_id, `+receiver+`) where `+receiver+` is not null
			do update set level = excluded.level
		returning `+shareColumns,
		t.tenant, tenants.NewID(), s.InstanceID, s.NotebookID, idOrNull(s.MemberID), idOrNull(s.TeamID), s.Level.String(), idOrNull(s.CreatedBy))
}

func (t *tx) Unshare(ctx context.Context, share tenants.ID) error {
	err := t.exec(ctx, "unshare "+share.String(), `delete from shares where tenant_id = $1 and id = $2`, t.tenant, share)
	if err != nil {
		return err
	}
	return t.revoke(ctx, tenants.RevokedShare, share.String())
}
