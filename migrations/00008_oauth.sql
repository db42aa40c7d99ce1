-- +goose Up

-- What lets agents sign in. Whatever opens something is kept as a SHA-256 only.

-- Programs that registered themselves, or that the operator registered. They
-- belong to the installation: a registration gives no right to anything.
create table oauth_clients (
    id            text primary key check (char_length(id) between 1 and 200),
    name          text not null check (char_length(name) <= 200),
    redirect_uris text[] not null check (cardinality(redirect_uris) <= 20),
    created_at    timestamptz not null default now(),
    expires_at    timestamptz -- null: never, the operator's
);
create index on oauth_clients (expires_at);

-- Devices that show a code and wait. Before a person has answered nobody knows
-- whose notes it will be; the grant itself is then a row of oauth_codes under the
-- same hash.
create table oauth_devices (
    hash       bytea primary key check (octet_length(hash) = 32), -- of the device code
    user_code  text not null unique check (char_length(user_code) between 8 and 20),
    client_id  text not null check (char_length(client_id) between 1 and 2048),
    scope      text not null check (char_length(scope) <= 1000),
    resource   text not null check (char_length(resource) <= 2048),
    answer     text check (char_length(answer) between 1 and 40), -- null: none yet; 'denied'; or the tenant that the grant is in
    expires_at timestamptz not null,
    polled_at  timestamptz
);
create index on oauth_devices (expires_at);

-- A person's consent, until the client fetches what it stands for. The agent is
-- made then.
create table oauth_codes (
    tenant_id        uuid not null,
    hash             bytea not null check (octet_length(hash) = 32),
    client_id        text not null check (char_length(client_id) between 1 and 2048),
    redirect_uri     text not null check (char_length(redirect_uri) <= 2048),
    challenge        text not null check (char_length(challenge) <= 43), -- PKCE, S256; '' for a device
    resource         text not null check (char_length(resource) <= 2048),
    scope            text not null check (char_length(scope) <= 1000),
    member_id        uuid not null,
    instance_id      uuid not null,
    name             text not null check (char_length(name) between 1 and 200),
    ceiling          access_level not null,
    tools            text[],
    agent_expires_at timestamptz,
    expires_at       timestamptz not null,
    used_at          timestamptz,
    agent_id         uuid, -- once used
    primary key (tenant_id, hash),
    foreign key (tenant_id, member_id) references memberships on delete cascade,
    foreign key (tenant_id, instance_id) references instances on delete cascade
);

-- All refresh tokens of an agent are one family. Spent ones stay until they
-- expire, so that a stolen one that turns up later is recognised.
create table oauth_refresh_tokens (
    tenant_id  uuid not null,
    hash       bytea not null check (octet_length(hash) = 32),
    agent_id   uuid not null,
    resource   text not null check (char_length(resource) <= 2048),
    scope      text not null check (char_length(scope) <= 1000),
    expires_at timestamptz not null,
    spent_at   timestamptz, -- first time
    primary key (tenant_id, hash),
    foreign key (tenant_id, agent_id) references agents on delete cascade
);
create index on oauth_refresh_tokens (tenant_id, agent_id);

select isolate('oauth_codes');
select isolate('oauth_refresh_tokens');
-- For the function below, which runs as the owner: it sees what is to be
-- forgotten and nothing else. A used code is remembered for a day, so that a
-- second use is recognised.
create policy forgotten on oauth_codes to current_user using (expires_at < now() - interval '1 day');
create policy forgotten on oauth_refresh_tokens to current_user using (expires_at < now());

-- +goose StatementBegin
create function purge_oauth() returns void
language sql security definer set search_path = public, pg_temp
begin atomic
    delete from oauth_codes where expires_at < now() - interval '1 day';
    delete from oauth_refresh_tokens where expires_at < now();
    delete from oauth_devices where expires_at < now();
    delete from oauth_clients where expires_at < now();
end;
-- +goose StatementEnd

-- +goose Down
drop function purge_oauth;
drop table oauth_refresh_tokens, oauth_codes, oauth_devices, oauth_clients;
