-- +goose Up

-- These belong to the installation, not to a tenant.
create table signing_keys (
    kid        text primary key check (char_length(kid) between 1 and 100),
    alg        text not null,
    purpose    text not null,
    sealed     bytea not null, -- private key, AES-256-GCM under the master key, kid as additional data
    public     bytea,
    not_before timestamptz not null,
    retires_at timestamptz,
    expires_at timestamptz,
    created_at timestamptz not null default now()
);

create table installation_settings (
    key   text primary key check (char_length(key) between 1 and 100),
    value jsonb not null
);

-- +goose Down
drop table installation_settings, signing_keys;
