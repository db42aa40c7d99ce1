-- +goose Up

-- What agents remember, per workspace and member: every agent of the member
-- shares it. Each write is a version; the newest is the memory, and so many
-- before it are kept that a person can see what became of it.
create table memories (
    tenant_id   uuid not null,
    instance_id uuid not null,
    member_id   uuid not null,
    version     bigint not null check (version > 0),
    text        text not null check (char_length(text) <= 32000),
    agent_id    uuid not null, -- who wrote it; it may be gone
    request_id  uuid not null, -- of the call that wrote it: a call sent twice writes once
    written_at  timestamptz not null,
    primary key (tenant_id, instance_id, member_id, version),
    unique (tenant_id, instance_id, member_id, request_id),
    foreign key (tenant_id, instance_id) references instances on delete cascade,
    foreign key (tenant_id, member_id) references memberships on delete cascade
);
create index on memories (tenant_id, member_id);
select isolate('memories');

-- What people want of agents: the member's own rules, and those the tenant's
-- owners give to all agents of a workspace.
create table personal_rules (
    tenant_id   uuid not null,
    id          uuid not null,
    instance_id uuid not null,
    member_id   uuid, -- null: for everybody's agents
    text        text not null check (char_length(text) between 1 and 16000),
    written_at  timestamptz not null,
    primary key (tenant_id, id),
    unique nulls not distinct (tenant_id, instance_id, member_id),
    foreign key (tenant_id, instance_id) references instances on delete cascade,
    foreign key (tenant_id, member_id) references memberships on delete cascade
);
create index on personal_rules (tenant_id, member_id);
select isolate('personal_rules');

-- +goose Down
drop table personal_rules, memories;
