-- +goose Up

-- One-time URLs by which files come and go. A URL is kept as the hash of its
-- random part. What is to be done with it is sealed, because it names files.
create table transfers (
    tenant_id   uuid not null,
    id          uuid not null,
    secret_hash bytea not null check (octet_length(secret_hash) = 32),
    instance_id uuid not null,
    member_id   uuid not null,
    agent_id    uuid not null,
    request_id  uuid not null, -- of the call that got the URL; of an upload also what it is remembered by at home
    tool        text not null check (char_length(tool) between 1 and 100),
    action      text not null check (char_length(action) between 1 and 100),
    upward      boolean not null,
    arguments   bytea not null check (octet_length(arguments) <= 1048576), -- sealed, with the file's name
    max_bytes   bigint not null check (max_bytes >= 0),
    created_at  timestamptz not null,
    expires_at  timestamptz not null,
    used_at     timestamptz,
    primary key (tenant_id, id),
    unique (tenant_id, secret_hash),
    unique (tenant_id, agent_id, request_id),
    foreign key (tenant_id, agent_id) references agents on delete cascade,
    foreign key (tenant_id, instance_id) references instances on delete cascade
);
create index on transfers (tenant_id, created_at);

select isolate('transfers');
-- For the function below, which runs as the owner.
create policy forgotten on transfers to current_user using (created_at < now() - interval '1 day');

-- A day is long enough to ask again what came of an upload.
-- +goose StatementBegin
create function purge_transfers() returns void
language sql security definer set search_path = public, pg_temp
begin atomic
    delete from transfers where created_at < now() - interval '1 day';
end;
-- +goose StatementEnd

-- +goose Down
drop function purge_transfers;
drop table transfers;
