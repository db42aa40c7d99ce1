-- +goose Up

-- What a person agreed to holds as long as the rules do. The rules version is the
-- policy version at which they last changed; that a notebook appeared or was
-- renamed at home, that SiYuan has other plugins, or that another agent was let
-- in, changes the policy version only.
alter table tenants add column rules_version bigint not null default 1;
update tenants set rules_version = policy_version;
alter table approvals rename column policy_version to rules_version;

-- +goose StatementBegin
create or replace function tenant_directory(after uuid, max_rows integer) returns setof tenants
language sql stable security definer set search_path = public, pg_temp
begin atomic
    select * from tenants where id > after order by id limit max_rows;
end;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function policy_row_changed() returns trigger language plpgsql as $$
declare
    tenant constant uuid := coalesce(new.tenant_id, old.tenant_id);
begin
    perform raise_policy_version(tenant);
    if tg_table_name = 'notebooks' or tg_table_name = 'agents' and tg_op = 'INSERT' then
        return null;
    end if;
    if tg_table_name = 'connectors' and tg_op = 'UPDATE' then
        if (new.instance_id, new.name, new.revoked_at, new.policy_effect - 'tools') is not distinct from
            (old.instance_id, old.name, old.revoked_at, old.policy_effect - 'tools') then
            return null;
        end if;
    end if;
    update tenants set rules_version = policy_version where id = tenant and rules_version <> policy_version;
    return null;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function policy_tenant_changed() returns trigger language plpgsql as $$
begin
    if new.policy_changed_by is distinct from pg_current_xact_id() then
        new.policy_version := old.policy_version + 1;
        new.policy_changed_by := pg_current_xact_id();
    end if;
    new.rules_version := new.policy_version;
    return new;
end $$;
-- +goose StatementEnd

-- +goose Down

-- +goose StatementBegin
create or replace function policy_row_changed() returns trigger language plpgsql as $$
begin
    perform raise_policy_version(coalesce(new.tenant_id, old.tenant_id));
    return null;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function policy_tenant_changed() returns trigger language plpgsql as $$
begin
    if new.policy_changed_by is distinct from pg_current_xact_id() then
        new.policy_version := old.policy_version + 1;
        new.policy_changed_by := pg_current_xact_id();
    end if;
    return new;
end $$;
-- +goose StatementEnd

alter table approvals rename column rules_version to policy_version;
drop function tenant_directory;
alter table tenants drop column rules_version;

-- +goose StatementBegin
create function tenant_directory(after uuid, max_rows integer) returns setof tenants
language sql stable security definer set search_path = public, pg_temp
begin atomic
    select * from tenants where id > after order by id limit max_rows;
end;
-- +goose StatementEnd
