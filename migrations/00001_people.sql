-- +goose Up

-- Who may see a row. Every tenant's table is closed to everybody, its owner
-- included, except for the rows of the tenant that the transaction has set. Three
-- narrow doors exist for what runs before a tenant is known: a person sees their
-- own memberships (app.person), a connector is found by its key's fingerprint
-- (app.fingerprint), and nodes read the feed of revocations (a function).
-- An unset setting is NULL at first and '' after its first use: both see nothing.

-- +goose StatementBegin
create function current_tenant() returns uuid language sql stable
    return nullif(current_setting('app.tenant', true), '')::uuid;
-- +goose StatementEnd

-- +goose StatementBegin
create function current_person() returns uuid language sql stable
    return nullif(current_setting('app.person', true), '')::uuid;
-- +goose StatementEnd

-- +goose StatementBegin
create function isolate(t regclass) returns void language plpgsql as $$
begin
    execute format('alter table %s enable row level security', t);
    execute format('alter table %s force row level security', t);
    execute format('create policy tenant on %s using (tenant_id = current_tenant())', t);
end $$;
-- +goose StatementEnd

create type access_level as enum ('none', 'r', 'rw', 'rwd'); -- ordered: max() and < work

create table tenants (
    id              uuid primary key,
    name            text not null check (char_length(name) between 1 and 200),
    status          text not null default 'active' check (status in ('active', 'suspended', 'closed')),
    limits          jsonb not null default '{}',
    settings        jsonb not null default '{}',
    policy_version  bigint not null default 1,
    policy_changed_by xid8, -- the transaction that raised policy_version last
    created_at      timestamptz not null default now()
);

create table users (
    id            uuid primary key,
    email         text not null unique check (email = lower(email) and char_length(email) between 3 and 254),
    name          text not null default '' check (char_length(name) <= 200),
    locale        text not null default '' check (char_length(locale) <= 35),
    password_hash text,
    oidc_issuer   text,
    oidc_subject  text,
    created_at    timestamptz not null default now(),
    unique (oidc_issuer, oidc_subject),
    check ((oidc_issuer is null) = (oidc_subject is null))
);

create table memberships (
    tenant_id  uuid not null references tenants on delete cascade,
    user_id    uuid not null references users on delete cascade,
    role       text not null check (role in ('owner', 'admin', 'member')),
    created_at timestamptz not null default now(),
    primary key (tenant_id, user_id)
);
create index on memberships (user_id);

create table teams (
    tenant_id  uuid not null references tenants on delete cascade,
    id         uuid not null,
    name       text not null check (char_length(name) between 1 and 200),
    created_at timestamptz not null default now(),
    primary key (tenant_id, id),
    unique (tenant_id, name)
);

create table team_members (
    tenant_id uuid not null,
    team_id   uuid not null,
    user_id   uuid not null,
    primary key (tenant_id, team_id, user_id),
    foreign key (tenant_id, team_id) references teams on delete cascade,
    foreign key (tenant_id, user_id) references memberships on delete cascade
);
create index on team_members (tenant_id, user_id);

-- The tenants table has no tenant_id: its id is the tenant.
alter table tenants enable row level security;
alter table tenants force row level security;
create policy tenant on tenants using (id = current_tenant());
create policy of_person on tenants for select
    using (exists (select from memberships m where m.tenant_id = tenants.id and m.user_id = current_person()));

-- Operators list tenants, not what is in them; only through the function below,
-- which runs as the owner.
create policy directory on tenants for select to current_user using (true);
-- +goose StatementBegin
create function tenant_directory(after uuid, max_rows integer) returns setof tenants
language sql stable security definer set search_path = public, pg_temp
begin atomic
    select * from tenants where id > after order by id limit max_rows;
end;
-- +goose StatementEnd

select isolate('memberships');
create policy of_person on memberships for select using (user_id = current_person());
select isolate('teams');
select isolate('team_members');

-- The policy version grows by one in every transaction that changes something a
-- snapshot shows, and listeners are told when it commits. The update also puts
-- such transactions of one tenant in a row.

-- +goose StatementBegin
create function raise_policy_version(tenant uuid) returns void language sql
begin atomic
    update tenants set policy_version = policy_version + 1, policy_changed_by = pg_current_xact_id()
     where id = tenant and policy_changed_by is distinct from pg_current_xact_id();
end;
-- +goose StatementEnd

-- +goose StatementBegin
create function policy_row_changed() returns trigger language plpgsql as $$
begin
    perform raise_policy_version(coalesce(new.tenant_id, old.tenant_id));
    return null;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function policy_tenant_changed() returns trigger language plpgsql as $$
begin
    if new.policy_changed_by is distinct from pg_current_xact_id() then
        new.policy_version := old.policy_version + 1;
        new.policy_changed_by := pg_current_xact_id();
    end if;
    return new;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function policy_version_raised() returns trigger language plpgsql as $$
begin
    perform pg_notify('siyuan_policy', new.id || ' ' || new.policy_version);
    return null;
end $$;
-- +goose StatementEnd

create trigger policy before update on tenants for each row
    when ((old.name, old.status, old.limits, old.settings) is distinct from (new.name, new.status, new.limits, new.settings))
    execute function policy_tenant_changed();
create trigger policy_push after update on tenants for each row
    when (old.policy_version <> new.policy_version)
    execute function policy_version_raised();
create trigger policy after insert or delete or update on memberships for each row execute function policy_row_changed();
create trigger policy after insert or delete or update on team_members for each row execute function policy_row_changed();

-- A tenant keeps an owner. The lock makes two owners who leave at once see each
-- other; a tenant that is itself being deleted has no row to lock and may go.
-- +goose StatementBegin
create function keep_an_owner() returns trigger language plpgsql as $$
begin
    if tg_op = 'UPDATE' and new.role = 'owner' then
        return new;
    end if;
    perform from tenants where id = old.tenant_id for update;
    if found and not exists (select from memberships
            where tenant_id = old.tenant_id and user_id <> old.user_id and role = 'owner') then
        raise exception 'last owner of the tenant' using errcode = 'SY001';
    end if;
    return case when tg_op = 'DELETE' then old else new end;
end $$;
-- +goose StatementEnd
create trigger keep_an_owner before delete or update on memberships for each row
    when (old.role = 'owner') execute function keep_an_owner();

-- +goose Down
drop function tenant_directory, raise_policy_version;
drop table team_members, teams, memberships, users, tenants;
drop function keep_an_owner, policy_version_raised, policy_tenant_changed, policy_row_changed, isolate, current_person, current_tenant;
drop type access_level;
