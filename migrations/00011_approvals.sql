-- +goose Up

-- Calls that wait for a person. What the person is shown is sealed, and gone once
-- they have answered or purge_approvals has passed. Nothing here changes rights,
-- so no trigger raises the policy version.
create table approvals (
    tenant_id      uuid not null,
    id             uuid not null,
    instance_id    uuid not null,
    member_id      uuid not null,
    agent_id       uuid not null,
    request_id     uuid not null,
    tool           text not null check (char_length(tool) between 1 and 100),
    action         text not null check (char_length(action) between 1 and 100),
    arguments      bytea not null check (octet_length(arguments) = 32), -- SHA-256 of their canonical form
    policy_version bigint not null,
    preview        bytea check (octet_length(preview) <= 65536),
    state          text not null check (state in ('open', 'approved', 'denied', 'used')),
    decided_by     uuid references users on delete set null,
    decided_at     timestamptz,
    created_at     timestamptz not null,
    expires_at     timestamptz not null,
    primary key (tenant_id, id),
    foreign key (tenant_id, agent_id) references agents on delete cascade,
    foreign key (tenant_id, instance_id) references instances on delete cascade,
    check (state = 'open' or preview is null)
);
create index on approvals (tenant_id, agent_id, request_id);
create index on approvals (tenant_id, expires_at) where state = 'open';

-- Confirmations that were used: a signed one is good once.
create table spent_confirmations (
    tenant_id  uuid not null references tenants on delete cascade,
    id         uuid not null,
    expires_at timestamptz not null,
    primary key (tenant_id, id)
);

select isolate('approvals');
select isolate('spent_confirmations');
-- For the function below, which runs as the owner.
create policy forgotten on approvals to current_user using (expires_at < now());
create policy forgotten on spent_confirmations to current_user using (expires_at < now());

-- An approval is kept for a week after its end, to say what became of it; what it
-- showed is not.
-- +goose StatementBegin
create function purge_approvals() returns void
language sql security definer set search_path = public, pg_temp
begin atomic
    update approvals set preview = null, state = 'denied' where state = 'open' and expires_at < now();
    delete from approvals where expires_at < now() - interval '7 days';
    delete from spent_confirmations where expires_at < now() - interval '1 hour';
end;
-- +goose StatementEnd

-- +goose Down
drop function purge_approvals;
drop table spent_confirmations, approvals;
