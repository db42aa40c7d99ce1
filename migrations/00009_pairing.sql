-- +goose Up

-- Machines that ask to be let in. They belong to no tenant: which one, a person
-- decides, and then there is a row in connectors. Codes are hashes; a user code
-- is short, so its hash is keyed.
create table pairings (
    id          uuid primary key,
    device_hash bytea not null unique check (octet_length(device_hash) = 32),
    user_hash   bytea not null unique check (octet_length(user_hash) = 32),
    public_key  bytea not null check (octet_length(public_key) = 32), -- Ed25519
    fingerprint text not null check (char_length(fingerprint) = 43),  -- RFC 7638
    name        text not null check (char_length(name) between 1 and 200),
    os          text not null check (char_length(os) <= 100),
    version     text not null check (char_length(version) <= 100),
    address     text not null check (char_length(address) <= 100),
    origin      text not null check (char_length(origin) <= 100),
    state       text not null default 'open' check (state in ('open', 'approved', 'denied')),
    interval_ms integer not null check (interval_ms between 1 and 600000),
    polled_at   timestamptz,
    claimed_by  uuid references users on delete cascade,
    created_at  timestamptz not null,
    expires_at  timestamptz not null
);
create index on pairings (expires_at);
create index on pairings (fingerprint);

-- +goose Down
drop table pairings;
