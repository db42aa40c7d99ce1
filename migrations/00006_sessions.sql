-- +goose Up

-- Agents' sessions that were ended before their ids expire. Nodes keep no other
-- list of sessions: an id says what it is good for. What is kept here is the
-- number inside an id, from which the id cannot be made. Nothing refers to the
-- agent, whose sessions stay ended when it is gone.
create table ended_sessions (
    tenant_id  uuid not null references tenants on delete cascade,
    session_id uuid not null,
    seq        bigint not null unique, -- given by the trigger
    agent_id   uuid not null,
    expires_at timestamptz not null,
    primary key (tenant_id, session_id)
);
create index on ended_sessions (expires_at);
create sequence ended_sessions_seq;
select isolate('ended_sessions');
-- Only for the two functions below, which run as the owner.
create policy feed on ended_sessions to current_user using (true);

-- As for revocations: the lock is held to the end of the transaction, so a reader
-- who has seen N has seen all before it. Nobody who holds it waits for a change of
-- rules, so it has no part in their order of locks.
-- +goose StatementBegin
create function number_ended_session() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock(hashtext('siyuan ended sessions'));
    new.seq := nextval('ended_sessions_seq');
    return new;
end $$;
-- +goose StatementEnd
create trigger number_ended_session before insert on ended_sessions for each row execute function number_ended_session();

-- +goose StatementBegin
create function ended_session_feed(after bigint, max_rows integer) returns setof ended_sessions
language sql stable security definer set search_path = public, pg_temp
begin atomic
    select * from ended_sessions where seq > after and expires_at > now() order by seq limit max_rows;
end;
-- +goose StatementEnd

-- +goose StatementBegin
create function purge_ended_sessions() returns void
language sql security definer set search_path = public, pg_temp
begin atomic
    delete from ended_sessions where expires_at <= now();
end;
-- +goose StatementEnd

-- +goose Down
drop function purge_ended_sessions, ended_session_feed;
drop table ended_sessions;
drop function number_ended_session;
drop sequence ended_sessions_seq;
