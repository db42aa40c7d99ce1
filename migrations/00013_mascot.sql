-- +goose Up

-- The coins of a tenant's cat: one for each call of its agents, less what was
-- spent. The other columns are the last thing that happened, as it is drawn.
create table mascots (
    tenant_id   uuid primary key references tenants on delete cascade,
    total_calls bigint not null default 0,
    spent       bigint not null default 0 check (spent between 0 and total_calls),
    seq         bigint not null default 0, -- of the last event
    tool        text not null default '' check (char_length(tool) <= 100),
    action      text not null default '' check (char_length(action) <= 100),
    status      text not null default 'success' check (status in ('success', 'error')),
    at          timestamptz not null default now(),
    item_id     text check (char_length(item_id) <= 64)
);
select isolate('mascots');

-- What was bought, for as long as the same request may come again.
create table mascot_purchases (
    tenant_id   uuid not null references tenants on delete cascade,
    agent_id    uuid not null,
    request_id  uuid not null,
    item_id     text not null check (char_length(item_id) between 1 and 64),
    cost        bigint not null check (cost > 0),
    total_calls bigint not null, -- then
    balance     bigint not null check (balance >= 0), -- after it
    at          timestamptz not null,
    primary key (tenant_id, agent_id, request_id)
);
create index on mascot_purchases (tenant_id, at);
select isolate('mascot_purchases');

-- For the function below, which runs as the owner.
create policy earned on mascots to current_user using (true) with check (true);

-- Coins are earned in batches of many tenants. Rows are taken in the order given,
-- so that two nodes never wait for each other.
-- +goose StatementBegin
create function earn_coins(who uuid[], calls bigint[], tools text[], actions text[], states text[], times timestamptz[]) returns void
language sql security definer set search_path = public, pg_temp
begin atomic
    insert into mascots as m (tenant_id, total_calls, seq, tool, action, status, at)
        select t.id, e.n, 1, e.tool, e.action, e.status, e.at
        from unnest(who, calls, tools, actions, states, times) with ordinality as e (id, n, tool, action, status, at, place)
        join tenants t on t.id = e.id
        order by e.place
    on conflict (tenant_id) do update set
        total_calls = m.total_calls + excluded.total_calls, seq = m.seq + 1,
        tool = excluded.tool, action = excluded.action, status = excluded.status, at = excluded.at, item_id = null;
end;
-- +goose StatementEnd

-- +goose Down
drop function earn_coins;
drop table mascot_purchases, mascots;
