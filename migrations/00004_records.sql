-- +goose Up

-- Calls are written by the recorder with COPY, which row-level security excludes,
-- and read by the service under it. Days are partitions, so that forgetting is
-- cheap. Times are microseconds. There is no column for contents.
create table calls (
    tenant_id    uuid not null,
    id           uuid not null,
    started_at   timestamptz not null,
    instance_id  uuid not null,
    member_id    uuid not null,
    agent_id     uuid not null,
    connector_id uuid,
    tool         text not null,
    action       text not null,
    notebook_id  text,
    request_id   text,
    outcome      text not null,
    error_type   text,
    error_code   text,
    total_us     bigint not null,
    admission_us bigint not null,
    consent_us   bigint not null,
    queue_us     bigint not null,
    tunnel_us    bigint not null,
    home_us      bigint not null,
    kernel_us    bigint not null,
    bytes_in     bigint not null,
    bytes_out    bigint not null,
    primary key (tenant_id, started_at, id)
) partition by range (started_at);
create index on calls (tenant_id, agent_id, started_at);

create table audit (
    tenant_id  uuid not null references tenants on delete cascade,
    id         uuid not null,
    at         timestamptz not null,
    actor_kind text not null check (actor_kind in ('member', 'agent', 'connector', 'operator', 'system')),
    actor_id   uuid,
    verb       text not null check (char_length(verb) between 1 and 100),
    object     text not null check (char_length(object) <= 200),
    detail     jsonb not null default '{}',
    primary key (tenant_id, id)
);
create index on audit (tenant_id, at);

select isolate('calls');
select isolate('audit');

-- A partition is a table of its own: closed to everybody, so that only the way
-- through its parent remains.
-- +goose StatementBegin
create function make_call_partitions(first_day date, days integer) returns void
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    d date;
    part text;
begin
    perform pg_advisory_xact_lock(hashtext('siyuan call partitions'));
    for d in select first_day + n from generate_series(0, least(days, 31) - 1) n loop
        part := 'calls_' || to_char(d, 'YYYYMMDD');
        continue when to_regclass(part) is not null;
        execute format('create table %I partition of calls for values from (%L) to (%L)',
            part, d::timestamp at time zone 'UTC', (d + 1)::timestamp at time zone 'UTC');
        execute format('alter table %I enable row level security', part);
        execute format('alter table %I force row level security', part);
    end loop;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function drop_call_partitions(before date) returns integer
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    part text;
    dropped integer := 0;
begin
    perform pg_advisory_xact_lock(hashtext('siyuan call partitions'));
    for part in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
         where i.inhparent = 'calls'::regclass and c.relname < 'calls_' || to_char(before, 'YYYYMMDD')
    loop
        execute format('drop table %I', part);
        dropped := dropped + 1;
    end loop;
    return dropped;
end $$;
-- +goose StatementEnd

create table revocations (
    seq        bigint primary key, -- given by the trigger
    tenant_id  uuid not null references tenants on delete cascade,
    kind       text not null check (kind in ('token', 'agent', 'member', 'connector', 'instance', 'share', 'tenant')),
    subject    text not null check (char_length(subject) between 1 and 200),
    at         timestamptz not null default now(),
    expires_at timestamptz not null
);
create index on revocations (expires_at);
create sequence revocations_seq;
select isolate('revocations');
-- Only for the two functions below, which run as the owner.
create policy feed on revocations to current_user using (true);

-- The lock is held to the end of the transaction, so numbers become visible in
-- their order and a reader who has seen N has seen all before it. The tenant's
-- row is locked first, as in every other change, so no two transactions wait for
-- each other.
-- +goose StatementBegin
create function number_revocation() returns trigger language plpgsql as $$
begin
    perform raise_policy_version(new.tenant_id);
    perform pg_advisory_xact_lock(hashtext('siyuan revocations'));
    new.seq := nextval('revocations_seq');
    perform pg_notify('siyuan_revocation', new.seq::text);
    return new;
end $$;
-- +goose StatementEnd
create trigger number_revocation before insert on revocations for each row execute function number_revocation();

-- +goose StatementBegin
create function revocation_feed(after bigint, max_rows integer) returns setof revocations
language sql stable security definer set search_path = public, pg_temp
begin atomic
    select * from revocations where seq > after and expires_at > now() order by seq limit max_rows;
end;
-- +goose StatementEnd

-- +goose StatementBegin
create function purge_revocations() returns void
language sql security definer set search_path = public, pg_temp
begin atomic
    delete from revocations where expires_at <= now();
end;
-- +goose StatementEnd

-- +goose Down
drop function purge_revocations, revocation_feed, drop_call_partitions, make_call_partitions;
drop table revocations, audit, calls;
drop function number_revocation;
drop sequence revocations_seq;
