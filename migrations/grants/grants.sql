-- Who may do what. Everything is taken away first, so that this file is the whole
-- truth whatever an earlier version granted.
do $$
declare
    service  text := current_setting('siyuan.service');
    recorder text := current_setting('siyuan.recorder');
begin
    execute format('revoke all on all tables in schema public from public, %I, %I', service, recorder);
    execute format('revoke all on all sequences in schema public from public, %I, %I', service, recorder);
    execute format('revoke all on all functions in schema public from public, %I, %I', service, recorder);
    execute format('grant usage on schema public to %I, %I', service, recorder);

    -- Partitions of calls are not named here: nobody reaches them but through calls.
    execute format('grant select, insert, update, delete on
        users, memberships, invitations, teams, team_members,
        instances, notebooks, connectors, agents,
        toggles, consents, notebook_levels, switches, shares, memories, personal_rules, feedback,
        oauth_clients, oauth_devices, oauth_codes, oauth_refresh_tokens,
        console_sessions, known_devices, one_time_links, mascot_purchases,
        signing_keys, installation_settings, pairings to %I', service);
    execute format('grant select, insert, update on tenants, approvals, transfers, mascots to %I', service);
    execute format('grant select, insert on spent_confirmations to %I', service);
    execute format('grant select on calls to %I', service);
    execute format('grant select, insert on audit, revocations, ended_sessions to %I', service);
    execute format('grant usage on sequence revocations_seq, ended_sessions_seq to %I', service);
    execute format('grant execute on function
        current_tenant(), current_person(), tenant_directory(uuid, integer), raise_policy_version(uuid),
        policy_row_changed(), policy_tenant_changed(), policy_version_raised(), keep_an_owner(), number_revocation(),
        make_call_partitions(date, integer), drop_call_partitions(date),
        revocation_feed(bigint, integer), purge_revocations(),
        number_ended_session(), ended_session_feed(bigint, integer), purge_ended_sessions(), purge_oauth(), purge_approvals(), purge_transfers(), purge_invitations(),
        earn_coins(uuid[], bigint[], text[], text[], text[], timestamptz[]) to %I', service);

    execute format('grant insert on calls to %I', recorder);
end $$;
