-- +goose Up

-- Who may come into a tenant with a link: the person of one address, as one role,
-- once. The link begins with the tenant's id, so it is looked for in there only;
-- its secret stands here as its SHA-256. An invitation ends with the membership of
-- whoever made it.
create table invitations (
    tenant_id   uuid not null references tenants on delete cascade,
    id          uuid not null,
    secret_hash bytea not null check (octet_length(secret_hash) = 32),
    email       text not null check (email = lower(email) and char_length(email) between 3 and 254),
    role        text not null check (role in ('owner', 'admin', 'member')),
    invited_by  uuid, -- null: an operator
    created_at  timestamptz not null,
    expires_at  timestamptz not null,
    primary key (tenant_id, id),
    unique (tenant_id, secret_hash),
    unique (tenant_id, email),
    foreign key (tenant_id, invited_by) references memberships on delete cascade
);
create index on invitations (tenant_id, invited_by);

select isolate('invitations');
-- For the function below, which runs as the owner.
create policy forgotten on invitations to current_user using (expires_at < now());

-- +goose StatementBegin
create function purge_invitations() returns void
language sql security definer set search_path = public, pg_temp
begin atomic
    delete from invitations where expires_at < now();
end;
-- +goose StatementEnd

-- +goose Down
drop function purge_invitations;
drop table invitations;
