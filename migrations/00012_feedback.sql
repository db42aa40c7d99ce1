-- +goose Up

-- What agents said about this service. The text is an agent's, so it may be
-- anything; it is shown as text to the tenant's people and to operators.
create table feedback (
    tenant_id   uuid not null references tenants on delete cascade,
    id          uuid not null,
    instance_id uuid not null,
    member_id   uuid not null, -- they may be gone, as the agent may
    agent_id    uuid not null,
    request_id  uuid not null, -- of the call that sent it: a call sent twice is kept once
    description text not null check (char_length(description) between 1 and 4000),
    impact      text not null check (char_length(impact) <= 1000),
    suggestion  text not null check (char_length(suggestion) <= 1000),
    agent       text not null check (char_length(agent) <= 200),
    source      text not null check (char_length(source) <= 100),
    written_at  timestamptz not null,
    primary key (tenant_id, id),
    unique (tenant_id, agent_id, request_id)
);
create index on feedback (tenant_id, written_at);
select isolate('feedback');

-- +goose Down
drop table feedback;
