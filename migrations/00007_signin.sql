-- +goose Up

-- How people get in. What a browser or a link holds is random and stands here as
-- its SHA-256 only: who reads these tables cannot get in with what they read.
create table console_sessions (
    id_hash      bytea primary key check (octet_length(id_hash) = 32),
    user_id      uuid not null references users on delete cascade,
    shown_tenant uuid references tenants on delete set null, -- what the person looks at; null: their first
    address      text not null default '' check (char_length(address) <= 100),
    browser      text not null default '' check (char_length(browser) <= 300),
    created_at   timestamptz not null,
    seen_at      timestamptz not null,
    expires_at   timestamptz not null
);
create index on console_sessions (user_id);
create index on console_sessions (expires_at);

-- Browsers in which a person signed in before. They are counted by themselves
-- when passwords are tried, so that nobody else's tries can keep them out.
create table known_devices (
    user_id     uuid not null references users on delete cascade,
    device_hash bytea not null check (octet_length(device_hash) = 32),
    seen_at     timestamptz not null,
    primary key (user_id, device_hash)
);

-- Each row is deleted by its use.
create table one_time_links (
    token_hash bytea primary key check (octet_length(token_hash) = 32),
    kind       text not null check (kind in ('operator', 'invite', 'reset', 'signin')),
    email      text not null default '' check (email = lower(email) and char_length(email) <= 254), -- the only one who may sign up with it
    user_id    uuid references users on delete cascade,                                           -- whose it is
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    check ((kind in ('reset', 'signin')) = (user_id is not null)),
    check ((kind = 'invite') = (email <> ''))
);
create index on one_time_links (user_id);
create index on one_time_links (expires_at);

-- +goose Down
drop table one_time_links, known_devices, console_sessions;
