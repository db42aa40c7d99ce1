-- +goose Up

create table instances (
    tenant_id     uuid not null references tenants on delete cascade,
    id            uuid not null,
    name          text not null check (char_length(name) between 1 and 200),
    default_level access_level not null default 'r',
    enabled       boolean not null default true,
    epoch         bigint not null default 0, -- of the newest tunnel session
    created_at    timestamptz not null default now(),
    primary key (tenant_id, id),
    unique (tenant_id, name)
);

-- What the connector reported. Levels and shares do not refer to these rows: a
-- notebook that goes away and comes back keeps its rules.
create table notebooks (
    tenant_id   uuid not null,
    instance_id uuid not null,
    id          text not null check (char_length(id) between 1 and 64),
    name        text not null check (char_length(name) <= 512),
    icon        text not null default '' check (char_length(icon) <= 512),
    closed      boolean not null default false,
    position    integer not null default 0,
    primary key (tenant_id, instance_id, id),
    foreign key (tenant_id, instance_id) references instances on delete cascade
);

create table connectors (
    tenant_id     uuid not null,
    id            uuid not null,
    instance_id   uuid not null,
    name          text not null check (char_length(name) <= 200),
    os            text not null default '' check (char_length(os) <= 100),
    version       text not null default '' check (char_length(version) <= 100),
    public_key    bytea not null check (octet_length(public_key) = 32), -- Ed25519
    fingerprint   text not null check (char_length(fingerprint) = 43),  -- RFC 7638
    epoch         bigint not null default 0,
    policy_effect jsonb,
    paired_by     uuid references users on delete set null,
    created_at    timestamptz not null default now(),
    last_seen_at  timestamptz,
    last_address  text not null default '' check (char_length(last_address) <= 100),
    revoked_at    timestamptz,
    primary key (tenant_id, id),
    foreign key (tenant_id, instance_id) references instances on delete cascade
);
create index on connectors (tenant_id, instance_id);
-- One key opens one door in the whole installation.
create unique index connectors_live_key on connectors (fingerprint) where revoked_at is null;
create index on connectors (fingerprint);

-- An agent outlives the membership it acts for, revoked, as a record.
create table agents (
    tenant_id    uuid not null,
    id           uuid not null,
    member_id    uuid not null references users on delete cascade,
    instance_id  uuid not null,
    name         text not null check (char_length(name) between 1 and 200),
    origin       text not null check (origin in ('token', 'oauth')),
    client_id    text check (char_length(client_id) between 1 and 2048),
    ceiling      access_level not null,
    tools        text[], -- null: all
    created_at   timestamptz not null default now(),
    expires_at   timestamptz,
    last_used_at timestamptz,
    revoked_at   timestamptz,
    primary key (tenant_id, id),
    foreign key (tenant_id, instance_id) references instances on delete cascade
);
create index on agents (tenant_id, member_id);

select isolate('instances');
select isolate('notebooks');
select isolate('connectors');
select isolate('agents');
create policy of_key on connectors for select
    using (fingerprint = nullif(current_setting('app.fingerprint', true), ''));

-- Not raised by what only changes while a connector or agent works: epoch,
-- last_seen_at, last_used_at.
create trigger policy after insert or delete or update of name, default_level, enabled on instances
    for each row execute function policy_row_changed();
create trigger policy after insert or delete or update on notebooks
    for each row execute function policy_row_changed();
create trigger policy after insert or delete or update of instance_id, name, policy_effect, revoked_at on connectors
    for each row execute function policy_row_changed();
create trigger policy after insert or delete or update of member_id, instance_id, name, ceiling, tools, expires_at, revoked_at on agents
    for each row execute function policy_row_changed();

-- +goose Down
drop table agents, connectors, notebooks, instances;
