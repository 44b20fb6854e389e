-- AGGREGATE lcm_chain(bytea, bytea, bytea, bytea, timestamp with time zone, timestamp with time zone)
CREATE AGGREGATE public.lcm_chain(head bytea, entry_hash bytea, metadata_hash bytea, record_hash bytea, created_at timestamp with time zone, recorded_at timestamp with time zone) (
    SFUNC = public.lcm_next_link,
    STYPE = bytea
);

-- CONSTRAINT api_keys api_keys_key_hash_key
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_key_hash_key UNIQUE (key_hash);

-- CONSTRAINT api_keys api_keys_pkey
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (api_key_id);

-- CONSTRAINT assembly_receipts assembly_receipts_pkey
ALTER TABLE ONLY public.assembly_receipts
    ADD CONSTRAINT assembly_receipts_pkey PRIMARY KEY (receipt_id);

-- CONSTRAINT audit_chain audit_chain_audit_id_key
ALTER TABLE ONLY public.audit_chain
    ADD CONSTRAINT audit_chain_audit_id_key UNIQUE (audit_id);

-- CONSTRAINT audit_chain audit_chain_pkey
ALTER TABLE ONLY public.audit_chain
    ADD CONSTRAINT audit_chain_pkey PRIMARY KEY (number);

-- CONSTRAINT audit_head audit_head_pkey
ALTER TABLE ONLY public.audit_head
    ADD CONSTRAINT audit_head_pkey PRIMARY KEY (head_id);

-- CONSTRAINT audit_log audit_log_pkey
ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (audit_id);

-- CONSTRAINT auth_group auth_group_name_key
ALTER TABLE ONLY public.auth_group
    ADD CONSTRAINT auth_group_name_key UNIQUE (name);

-- CONSTRAINT auth_group auth_group_pkey
ALTER TABLE ONLY public.auth_group
    ADD CONSTRAINT auth_group_pkey PRIMARY KEY (id);

-- CONSTRAINT auth_group_permissions auth_group_permissions_group_id_permission_id_0cd325b0_uniq
ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_group_id_permission_id_0cd325b0_uniq UNIQUE (group_id, permission_id);

-- CONSTRAINT auth_group_permissions auth_group_permissions_pkey
ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_pkey PRIMARY KEY (id);

-- CONSTRAINT auth_permission auth_permission_content_type_id_codename_01ab375a_uniq
ALTER TABLE ONLY public.auth_permission
    ADD CONSTRAINT auth_permission_content_type_id_codename_01ab375a_uniq UNIQUE (content_type_id, codename);

-- CONSTRAINT auth_permission auth_permission_pkey
ALTER TABLE ONLY public.auth_permission
    ADD CONSTRAINT auth_permission_pkey PRIMARY KEY (id);

-- CONSTRAINT auth_user auth_user_pkey
ALTER TABLE ONLY public.auth_user
    ADD CONSTRAINT auth_user_pkey PRIMARY KEY (id);

-- CONSTRAINT auth_user auth_user_username_key
ALTER TABLE ONLY public.auth_user
    ADD CONSTRAINT auth_user_username_key UNIQUE (username);

-- CONSTRAINT auth_user_groups auth_user_groups_pkey
ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_pkey PRIMARY KEY (id);

-- CONSTRAINT auth_user_groups auth_user_groups_user_id_group_id_94350c0c_uniq
ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_user_id_group_id_94350c0c_uniq UNIQUE (user_id, group_id);

-- CONSTRAINT auth_user_user_permissions auth_user_user_permissions_pkey
ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permissions_pkey PRIMARY KEY (id);

-- CONSTRAINT auth_user_user_permissions auth_user_user_permissions_user_id_permission_id_14a6b632_uniq
ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permissions_user_id_permission_id_14a6b632_uniq UNIQUE (user_id, permission_id);

-- CONSTRAINT axes_accessattempt axes_accessattempt_pkey
ALTER TABLE ONLY public.axes_accessattempt
    ADD CONSTRAINT axes_accessattempt_pkey PRIMARY KEY (id);

-- CONSTRAINT axes_accessattempt axes_accessattempt_username_ip_address_user_agent_8ea22282_uniq
ALTER TABLE ONLY public.axes_accessattempt
    ADD CONSTRAINT axes_accessattempt_username_ip_address_user_agent_8ea22282_uniq UNIQUE (username, ip_address, user_agent);

-- CONSTRAINT axes_accessattemptexpiration axes_accessattemptexpiration_pkey
ALTER TABLE ONLY public.axes_accessattemptexpiration
    ADD CONSTRAINT axes_accessattemptexpiration_pkey PRIMARY KEY (access_attempt_id);

-- CONSTRAINT axes_accessfailurelog axes_accessfailurelog_pkey
ALTER TABLE ONLY public.axes_accessfailurelog
    ADD CONSTRAINT axes_accessfailurelog_pkey PRIMARY KEY (id);

-- CONSTRAINT axes_accesslog axes_accesslog_pkey
ALTER TABLE ONLY public.axes_accesslog
    ADD CONSTRAINT axes_accesslog_pkey PRIMARY KEY (id);

-- CONSTRAINT cold_blocks cold_blocks_pkey
ALTER TABLE ONLY public.cold_blocks
    ADD CONSTRAINT cold_blocks_pkey PRIMARY KEY (cold_block_id);

-- CONSTRAINT cold_progress cold_progress_pkey
ALTER TABLE ONLY public.cold_progress
    ADD CONSTRAINT cold_progress_pkey PRIMARY KEY (conversation_id);

-- CONSTRAINT compaction_boundaries compaction_boundaries_have_one_name_each
ALTER TABLE ONLY public.compaction_boundaries
    ADD CONSTRAINT compaction_boundaries_have_one_name_each UNIQUE (conversation_id, host_reference);

-- CONSTRAINT compaction_boundaries compaction_boundaries_pkey
ALTER TABLE ONLY public.compaction_boundaries
    ADD CONSTRAINT compaction_boundaries_pkey PRIMARY KEY (boundary_id);

-- CONSTRAINT compaction_jobs compaction_jobs_pkey
ALTER TABLE ONLY public.compaction_jobs
    ADD CONSTRAINT compaction_jobs_pkey PRIMARY KEY (job_id);

-- CONSTRAINT compaction_plans compaction_plans_pkey
ALTER TABLE ONLY public.compaction_plans
    ADD CONSTRAINT compaction_plans_pkey PRIMARY KEY (plan_id);

-- CONSTRAINT compaction_runs compaction_runs_pkey
ALTER TABLE ONLY public.compaction_runs
    ADD CONSTRAINT compaction_runs_pkey PRIMARY KEY (run_id);

-- CONSTRAINT context_items context_items_pkey
ALTER TABLE ONLY public.context_items
    ADD CONSTRAINT context_items_pkey PRIMARY KEY (conversation_id, ordinal);

-- CONSTRAINT conversation_checks conversation_checks_pkey
ALTER TABLE ONLY public.conversation_checks
    ADD CONSTRAINT conversation_checks_pkey PRIMARY KEY (conversation_id);

-- CONSTRAINT conversations conversations_are_in_one_workspace
ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_are_in_one_workspace UNIQUE (conversation_id, workspace_id);

-- CONSTRAINT conversations conversations_have_one_session_per_workspace
ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_have_one_session_per_workspace UNIQUE (workspace_id, session_id);

-- CONSTRAINT conversations conversations_pkey
ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_pkey PRIMARY KEY (conversation_id);

-- CONSTRAINT django_admin_log django_admin_log_pkey
ALTER TABLE ONLY public.django_admin_log
    ADD CONSTRAINT django_admin_log_pkey PRIMARY KEY (id);

-- CONSTRAINT django_content_type django_content_type_app_label_model_76bd3d3b_uniq
ALTER TABLE ONLY public.django_content_type
    ADD CONSTRAINT django_content_type_app_label_model_76bd3d3b_uniq UNIQUE (app_label, model);

-- CONSTRAINT django_content_type django_content_type_pkey
ALTER TABLE ONLY public.django_content_type
    ADD CONSTRAINT django_content_type_pkey PRIMARY KEY (id);

-- CONSTRAINT django_migrations django_migrations_pkey
ALTER TABLE ONLY public.django_migrations
    ADD CONSTRAINT django_migrations_pkey PRIMARY KEY (id);

-- CONSTRAINT django_session django_session_pkey
ALTER TABLE ONLY public.django_session
    ADD CONSTRAINT django_session_pkey PRIMARY KEY (session_key);

-- CONSTRAINT embedded_conversations embedded_conversations_are_listed_once
ALTER TABLE ONLY public.embedded_conversations
    ADD CONSTRAINT embedded_conversations_are_listed_once UNIQUE (conversation_id, embedder_id);

-- CONSTRAINT embedded_conversations embedded_conversations_pkey
ALTER TABLE ONLY public.embedded_conversations
    ADD CONSTRAINT embedded_conversations_pkey PRIMARY KEY (job_id);

-- CONSTRAINT embedders embedders_are_listed_once
ALTER TABLE ONLY public.embedders
    ADD CONSTRAINT embedders_are_listed_once UNIQUE (url, model, question_model);

-- CONSTRAINT embedders embedders_pkey
ALTER TABLE ONLY public.embedders
    ADD CONSTRAINT embedders_pkey PRIMARY KEY (embedder_id);

-- CONSTRAINT erasures erasures_pkey
ALTER TABLE ONLY public.erasures
    ADD CONSTRAINT erasures_pkey PRIMARY KEY (erasure_id);

-- CONSTRAINT file_references file_references_pkey
ALTER TABLE ONLY public.file_references
    ADD CONSTRAINT file_references_pkey PRIMARY KEY (reference_id);

-- CONSTRAINT gateway_exchanges gateway_exchanges_exchange_key_key
ALTER TABLE ONLY public.gateway_exchanges
    ADD CONSTRAINT gateway_exchanges_exchange_key_key UNIQUE (exchange_key);

-- CONSTRAINT gateway_exchanges gateway_exchanges_pkey
ALTER TABLE ONLY public.gateway_exchanges
    ADD CONSTRAINT gateway_exchanges_pkey PRIMARY KEY (exchange_id);

-- CONSTRAINT grants grants_pkey
ALTER TABLE ONLY public.grants
    ADD CONSTRAINT grants_pkey PRIMARY KEY (grant_id);

-- CONSTRAINT head_moves head_moves_are_numbered
ALTER TABLE ONLY public.head_moves
    ADD CONSTRAINT head_moves_are_numbered UNIQUE (conversation_id, number);

-- CONSTRAINT head_moves head_moves_pkey
ALTER TABLE ONLY public.head_moves
    ADD CONSTRAINT head_moves_pkey PRIMARY KEY (head_move_id);

-- CONSTRAINT history_jobs history_jobs_pkey
ALTER TABLE ONLY public.history_jobs
    ADD CONSTRAINT history_jobs_pkey PRIMARY KEY (job_id);

-- CONSTRAINT huey_counter huey_counter_pkey
ALTER TABLE ONLY public.huey_counter
    ADD CONSTRAINT huey_counter_pkey PRIMARY KEY (queue, key);

-- CONSTRAINT huey_kv huey_kv_pkey
ALTER TABLE ONLY public.huey_kv
    ADD CONSTRAINT huey_kv_pkey PRIMARY KEY (queue, key);

-- CONSTRAINT huey_schedule huey_schedule_pkey
ALTER TABLE ONLY public.huey_schedule
    ADD CONSTRAINT huey_schedule_pkey PRIMARY KEY (id);

-- CONSTRAINT huey_task huey_task_pkey
ALTER TABLE ONLY public.huey_task
    ADD CONSTRAINT huey_task_pkey PRIMARY KEY (id);

-- CONSTRAINT integrity_findings integrity_findings_pkey
ALTER TABLE ONLY public.integrity_findings
    ADD CONSTRAINT integrity_findings_pkey PRIMARY KEY (finding_id);

-- CONSTRAINT integrity_reports integrity_reports_pkey
ALTER TABLE ONLY public.integrity_reports
    ADD CONSTRAINT integrity_reports_pkey PRIMARY KEY (report_id);

-- CONSTRAINT integrity_scans integrity_scans_pkey
ALTER TABLE ONLY public.integrity_scans
    ADD CONSTRAINT integrity_scans_pkey PRIMARY KEY (scan_id);

-- CONSTRAINT journal_entries journal_entries_have_a_place_each
ALTER TABLE ONLY public.journal_entries
    ADD CONSTRAINT journal_entries_have_a_place_each UNIQUE (conversation_id, subpath, "position");

-- CONSTRAINT journal_entries journal_entries_pkey
ALTER TABLE ONLY public.journal_entries
    ADD CONSTRAINT journal_entries_pkey PRIMARY KEY (journal_entry_id);

-- CONSTRAINT large_files large_files_pkey
ALTER TABLE ONLY public.large_files
    ADD CONSTRAINT large_files_pkey PRIMARY KEY (file_id);

-- CONSTRAINT lcm_cache lcm_cache_pkey
ALTER TABLE ONLY public.lcm_cache
    ADD CONSTRAINT lcm_cache_pkey PRIMARY KEY (cache_key);

-- CONSTRAINT map_events map_events_have_one_place_each
ALTER TABLE ONLY public.map_events
    ADD CONSTRAINT map_events_have_one_place_each UNIQUE (run_id, seq);

-- CONSTRAINT map_events map_events_pkey
ALTER TABLE ONLY public.map_events
    ADD CONSTRAINT map_events_pkey PRIMARY KEY (event_id);

-- CONSTRAINT map_items map_items_have_one_place_each
ALTER TABLE ONLY public.map_items
    ADD CONSTRAINT map_items_have_one_place_each UNIQUE (run_id, "position");

-- CONSTRAINT map_items map_items_pkey
ALTER TABLE ONLY public.map_items
    ADD CONSTRAINT map_items_pkey PRIMARY KEY (item_id);

-- CONSTRAINT map_runs map_runs_have_one_idempotency_key_each
ALTER TABLE ONLY public.map_runs
    ADD CONSTRAINT map_runs_have_one_idempotency_key_each UNIQUE (workspace_id, idempotency_key);

-- CONSTRAINT map_runs map_runs_pkey
ALTER TABLE ONLY public.map_runs
    ADD CONSTRAINT map_runs_pkey PRIMARY KEY (run_id);

-- CONSTRAINT memberships memberships_are_one_for_each_workspace
ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_are_one_for_each_workspace UNIQUE (user_id, workspace_id);

-- CONSTRAINT memberships memberships_pkey
ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_pkey PRIMARY KEY (membership_id);

-- CONSTRAINT message_parts message_parts_message_id_ordinal_key
ALTER TABLE ONLY public.message_parts
    ADD CONSTRAINT message_parts_message_id_ordinal_key UNIQUE (message_id, ordinal);

-- CONSTRAINT message_parts message_parts_pkey
ALTER TABLE ONLY public.message_parts
    ADD CONSTRAINT message_parts_pkey PRIMARY KEY (part_id);

-- CONSTRAINT messages messages_conversation_id_seq_key
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_conversation_id_seq_key UNIQUE (conversation_id, seq);

-- CONSTRAINT messages messages_pkey
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_pkey PRIMARY KEY (message_id);

-- CONSTRAINT model_endpoints model_endpoints_pkey
ALTER TABLE ONLY public.model_endpoints
    ADD CONSTRAINT model_endpoints_pkey PRIMARY KEY (name);

-- CONSTRAINT projects projects_are_in_one_workspace
ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_are_in_one_workspace UNIQUE (project_id, workspace_id);

-- CONSTRAINT projects projects_have_one_name_per_workspace
ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_have_one_name_per_workspace UNIQUE (workspace_id, name);

-- CONSTRAINT projects projects_pkey
ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (project_id);

-- CONSTRAINT quarantines quarantines_pkey
ALTER TABLE ONLY public.quarantines
    ADD CONSTRAINT quarantines_pkey PRIMARY KEY (quarantine_id);

-- CONSTRAINT refused_passages refused_passages_are_listed_once
ALTER TABLE ONLY public.refused_passages
    ADD CONSTRAINT refused_passages_are_listed_once UNIQUE (embedder_id, message_id, passage);

-- CONSTRAINT refused_passages refused_passages_pkey
ALTER TABLE ONLY public.refused_passages
    ADD CONSTRAINT refused_passages_pkey PRIMARY KEY (refusal_id);

-- CONSTRAINT repair_plans repair_plans_pkey
ALTER TABLE ONLY public.repair_plans
    ADD CONSTRAINT repair_plans_pkey PRIMARY KEY (plan_id);

-- CONSTRAINT repair_steps repair_steps_pkey
ALTER TABLE ONLY public.repair_steps
    ADD CONSTRAINT repair_steps_pkey PRIMARY KEY (step_id);

-- CONSTRAINT repair_steps repair_steps_stand_in_order
ALTER TABLE ONLY public.repair_steps
    ADD CONSTRAINT repair_steps_stand_in_order UNIQUE (plan_id, ordinal);

-- CONSTRAINT session_summaries session_summaries_pkey
ALTER TABLE ONLY public.session_summaries
    ADD CONSTRAINT session_summaries_pkey PRIMARY KEY (summary_id);

-- CONSTRAINT session_summaries session_summaries_supersedes_id_key
ALTER TABLE ONLY public.session_summaries
    ADD CONSTRAINT session_summaries_supersedes_id_key UNIQUE (supersedes_id);

-- CONSTRAINT session_summary_children session_summary_children_are_listed_once
ALTER TABLE ONLY public.session_summary_children
    ADD CONSTRAINT session_summary_children_are_listed_once UNIQUE (parent_id, child_id);

-- CONSTRAINT session_summary_children session_summary_children_pkey
ALTER TABLE ONLY public.session_summary_children
    ADD CONSTRAINT session_summary_children_pkey PRIMARY KEY (parent_id, ordinal);

-- CONSTRAINT session_summary_memories session_summary_memories_pkey
ALTER TABLE ONLY public.session_summary_memories
    ADD CONSTRAINT session_summary_memories_pkey PRIMARY KEY (summary_id, ordinal);

-- CONSTRAINT summaries summaries_pkey
ALTER TABLE ONLY public.summaries
    ADD CONSTRAINT summaries_pkey PRIMARY KEY (summary_id);

-- CONSTRAINT summaries summaries_supersedes_id_key
ALTER TABLE ONLY public.summaries
    ADD CONSTRAINT summaries_supersedes_id_key UNIQUE (supersedes_id);

-- CONSTRAINT summary_messages summary_messages_pkey
ALTER TABLE ONLY public.summary_messages
    ADD CONSTRAINT summary_messages_pkey PRIMARY KEY (summary_id, message_id);

-- CONSTRAINT summary_parents summary_parents_pkey
ALTER TABLE ONLY public.summary_parents
    ADD CONSTRAINT summary_parents_pkey PRIMARY KEY (summary_id, parent_summary_id);

-- CONSTRAINT upload_chunks upload_chunks_are_kept_once
ALTER TABLE ONLY public.upload_chunks
    ADD CONSTRAINT upload_chunks_are_kept_once UNIQUE (upload_id, number);

-- CONSTRAINT upload_chunks upload_chunks_pkey
ALTER TABLE ONLY public.upload_chunks
    ADD CONSTRAINT upload_chunks_pkey PRIMARY KEY (upload_chunk_id);

-- CONSTRAINT uploads uploads_pkey
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_pkey PRIMARY KEY (upload_id);

-- CONSTRAINT workspaces workspaces_name_key
ALTER TABLE ONLY public.workspaces
    ADD CONSTRAINT workspaces_name_key UNIQUE (name);

-- CONSTRAINT workspaces workspaces_pkey
ALTER TABLE ONLY public.workspaces
    ADD CONSTRAINT workspaces_pkey PRIMARY KEY (workspace_id);

-- DEFAULT huey_schedule id
ALTER TABLE ONLY public.huey_schedule ALTER COLUMN id SET DEFAULT nextval('public.huey_schedule_id_seq'::regclass);

-- DEFAULT huey_task id
ALTER TABLE ONLY public.huey_task ALTER COLUMN id SET DEFAULT nextval('public.huey_task_id_seq'::regclass);

-- FK CONSTRAINT api_keys api_keys_workspace_id_3ab73bac_fk_workspaces_workspace_id
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_workspace_id_3ab73bac_fk_workspaces_workspace_id FOREIGN KEY (workspace_id) REFERENCES public.workspaces(workspace_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT assembly_receipts assembly_receipts_conversation_id_d8bbd1f8_fk_conversat
ALTER TABLE ONLY public.assembly_receipts
    ADD CONSTRAINT assembly_receipts_conversation_id_d8bbd1f8_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT audit_chain audit_chain_audit_id_fkey
ALTER TABLE ONLY public.audit_chain
    ADD CONSTRAINT audit_chain_audit_id_fkey FOREIGN KEY (audit_id) REFERENCES public.audit_log(audit_id) ON DELETE RESTRICT;

-- FK CONSTRAINT audit_log audit_log_conversation_id_fkey
ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) ON DELETE RESTRICT;

-- FK CONSTRAINT audit_log audit_log_workspace_id_fkey
ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspaces(workspace_id) ON DELETE RESTRICT;

-- FK CONSTRAINT auth_group_permissions auth_group_permissio_permission_id_84c5c92e_fk_auth_perm
ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissio_permission_id_84c5c92e_fk_auth_perm FOREIGN KEY (permission_id) REFERENCES public.auth_permission(id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT auth_group_permissions auth_group_permissions_group_id_b120cbf9_fk_auth_group_id
ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_group_id_b120cbf9_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES public.auth_group(id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT auth_permission auth_permission_content_type_id_2f476e4b_fk_django_co
ALTER TABLE ONLY public.auth_permission
    ADD CONSTRAINT auth_permission_content_type_id_2f476e4b_fk_django_co FOREIGN KEY (content_type_id) REFERENCES public.django_content_type(id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT auth_user_groups auth_user_groups_group_id_97559544_fk_auth_group_id
ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_group_id_97559544_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES public.auth_group(id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT auth_user_groups auth_user_groups_user_id_6a12ed8b_fk_auth_user_id
ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_user_id_6a12ed8b_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT auth_user_user_permissions auth_user_user_permi_permission_id_1fbb5f2c_fk_auth_perm
ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permi_permission_id_1fbb5f2c_fk_auth_perm FOREIGN KEY (permission_id) REFERENCES public.auth_permission(id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT auth_user_user_permissions auth_user_user_permissions_user_id_a95ead1b_fk_auth_user_id
ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permissions_user_id_a95ead1b_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT axes_accessattemptexpiration axes_accessattemptex_access_attempt_id_6b73a47a_fk_axes_acce
ALTER TABLE ONLY public.axes_accessattemptexpiration
    ADD CONSTRAINT axes_accessattemptex_access_attempt_id_6b73a47a_fk_axes_acce FOREIGN KEY (access_attempt_id) REFERENCES public.axes_accessattempt(id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT cold_blocks cold_blocks_conversation_id_fkey
ALTER TABLE ONLY public.cold_blocks
    ADD CONSTRAINT cold_blocks_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) ON DELETE RESTRICT;

-- FK CONSTRAINT cold_progress cold_progress_conversation_id_0f394f29_fk_conversat
ALTER TABLE ONLY public.cold_progress
    ADD CONSTRAINT cold_progress_conversation_id_0f394f29_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT compaction_boundaries compaction_boundarie_conversation_id_0fbc1288_fk_conversat
ALTER TABLE ONLY public.compaction_boundaries
    ADD CONSTRAINT compaction_boundarie_conversation_id_0fbc1288_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT compaction_jobs compaction_jobs_conversation_id_2b877917_fk_conversat
ALTER TABLE ONLY public.compaction_jobs
    ADD CONSTRAINT compaction_jobs_conversation_id_2b877917_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT compaction_plans compaction_plans_conversation_id_eac1d383_fk_conversat
ALTER TABLE ONLY public.compaction_plans
    ADD CONSTRAINT compaction_plans_conversation_id_eac1d383_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT compaction_plans compaction_plans_run_id_d4c544a9_fk_compaction_runs_run_id
ALTER TABLE ONLY public.compaction_plans
    ADD CONSTRAINT compaction_plans_run_id_d4c544a9_fk_compaction_runs_run_id FOREIGN KEY (run_id) REFERENCES public.compaction_runs(run_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT compaction_runs compaction_runs_conversation_id_436c14b7_fk_conversat
ALTER TABLE ONLY public.compaction_runs
    ADD CONSTRAINT compaction_runs_conversation_id_436c14b7_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT compaction_runs compaction_runs_job_id_ca68c7aa_fk_compaction_jobs_job_id
ALTER TABLE ONLY public.compaction_runs
    ADD CONSTRAINT compaction_runs_job_id_ca68c7aa_fk_compaction_jobs_job_id FOREIGN KEY (job_id) REFERENCES public.compaction_jobs(job_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT context_items context_items_conversation_id_fkey
ALTER TABLE ONLY public.context_items
    ADD CONSTRAINT context_items_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) ON DELETE CASCADE;

-- FK CONSTRAINT context_items context_items_message_id_fkey
ALTER TABLE ONLY public.context_items
    ADD CONSTRAINT context_items_message_id_fkey FOREIGN KEY (message_id) REFERENCES public.messages(message_id) ON DELETE RESTRICT;

-- FK CONSTRAINT context_items context_items_summary_id_fkey
ALTER TABLE ONLY public.context_items
    ADD CONSTRAINT context_items_summary_id_fkey FOREIGN KEY (summary_id) REFERENCES public.summaries(summary_id) ON DELETE RESTRICT;

-- FK CONSTRAINT conversation_checks conversation_checks_conversation_id_b2e38b2f_fk_conversat
ALTER TABLE ONLY public.conversation_checks
    ADD CONSTRAINT conversation_checks_conversation_id_b2e38b2f_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT conversations conversations_parent_id_177d5f37_fk_conversat
ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_parent_id_177d5f37_fk_conversat FOREIGN KEY (parent_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT conversations conversations_project_id_301fef4f_fk_projects_project_id
ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_project_id_301fef4f_fk_projects_project_id FOREIGN KEY (project_id) REFERENCES public.projects(project_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT conversations conversations_share_the_workspace_of_their_parent
ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_share_the_workspace_of_their_parent FOREIGN KEY (parent_id, workspace_id) REFERENCES public.conversations(conversation_id, workspace_id);

-- FK CONSTRAINT conversations conversations_share_the_workspace_of_their_project
ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_share_the_workspace_of_their_project FOREIGN KEY (project_id, workspace_id) REFERENCES public.projects(project_id, workspace_id);

-- FK CONSTRAINT conversations conversations_workspace_id_fkey
ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspaces(workspace_id) ON DELETE RESTRICT;

-- FK CONSTRAINT django_admin_log django_admin_log_content_type_id_c4bce8eb_fk_django_co
ALTER TABLE ONLY public.django_admin_log
    ADD CONSTRAINT django_admin_log_content_type_id_c4bce8eb_fk_django_co FOREIGN KEY (content_type_id) REFERENCES public.django_content_type(id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT django_admin_log django_admin_log_user_id_c564eba6_fk_auth_user_id
ALTER TABLE ONLY public.django_admin_log
    ADD CONSTRAINT django_admin_log_user_id_c564eba6_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT embedded_conversations embedded_conversatio_conversation_id_d7330252_fk_conversat
ALTER TABLE ONLY public.embedded_conversations
    ADD CONSTRAINT embedded_conversatio_conversation_id_d7330252_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT embedded_conversations embedded_conversatio_embedder_id_d2a13e05_fk_embedders
ALTER TABLE ONLY public.embedded_conversations
    ADD CONSTRAINT embedded_conversatio_embedder_id_d2a13e05_fk_embedders FOREIGN KEY (embedder_id) REFERENCES public.embedders(embedder_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT erasures erasures_act_id_39cf8756_fk_audit_log_audit_id
ALTER TABLE ONLY public.erasures
    ADD CONSTRAINT erasures_act_id_39cf8756_fk_audit_log_audit_id FOREIGN KEY (act_id) REFERENCES public.audit_log(audit_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT erasures erasures_conversation_id_3b12102a_fk_conversat
ALTER TABLE ONLY public.erasures
    ADD CONSTRAINT erasures_conversation_id_3b12102a_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT file_references file_references_file_id_fkey
ALTER TABLE ONLY public.file_references
    ADD CONSTRAINT file_references_file_id_fkey FOREIGN KEY (file_id) REFERENCES public.large_files(file_id) ON DELETE RESTRICT;

-- FK CONSTRAINT file_references file_references_message_id_fkey
ALTER TABLE ONLY public.file_references
    ADD CONSTRAINT file_references_message_id_fkey FOREIGN KEY (message_id) REFERENCES public.messages(message_id) ON DELETE CASCADE;

-- FK CONSTRAINT gateway_exchanges gateway_exchanges_conversation_id_b3966023_fk_conversat
ALTER TABLE ONLY public.gateway_exchanges
    ADD CONSTRAINT gateway_exchanges_conversation_id_b3966023_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT gateway_exchanges gateway_exchanges_workspace_id_08dc63ce_fk_workspace
ALTER TABLE ONLY public.gateway_exchanges
    ADD CONSTRAINT gateway_exchanges_workspace_id_08dc63ce_fk_workspace FOREIGN KEY (workspace_id) REFERENCES public.workspaces(workspace_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT grants grants_workspace_id_67d1f8fd_fk_workspaces_workspace_id
ALTER TABLE ONLY public.grants
    ADD CONSTRAINT grants_workspace_id_67d1f8fd_fk_workspaces_workspace_id FOREIGN KEY (workspace_id) REFERENCES public.workspaces(workspace_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT head_moves head_moves_conversation_id_9839db2d_fk_conversat
ALTER TABLE ONLY public.head_moves
    ADD CONSTRAINT head_moves_conversation_id_9839db2d_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT history_jobs history_jobs_conversation_id_2024843a_fk_conversat
ALTER TABLE ONLY public.history_jobs
    ADD CONSTRAINT history_jobs_conversation_id_2024843a_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT history_jobs history_jobs_project_id_066de902_fk_projects_project_id
ALTER TABLE ONLY public.history_jobs
    ADD CONSTRAINT history_jobs_project_id_066de902_fk_projects_project_id FOREIGN KEY (project_id) REFERENCES public.projects(project_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT history_jobs history_jobs_workspace_id_b019f4c7_fk_workspaces_workspace_id
ALTER TABLE ONLY public.history_jobs
    ADD CONSTRAINT history_jobs_workspace_id_b019f4c7_fk_workspaces_workspace_id FOREIGN KEY (workspace_id) REFERENCES public.workspaces(workspace_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT integrity_findings integrity_findings_report_id_f477770a_fk_integrity
ALTER TABLE ONLY public.integrity_findings
    ADD CONSTRAINT integrity_findings_report_id_f477770a_fk_integrity FOREIGN KEY (report_id) REFERENCES public.integrity_reports(report_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT integrity_reports integrity_reports_conversation_id_d94653a2_fk_conversat
ALTER TABLE ONLY public.integrity_reports
    ADD CONSTRAINT integrity_reports_conversation_id_d94653a2_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT integrity_reports integrity_reports_workspace_id_44faa805_fk_workspace
ALTER TABLE ONLY public.integrity_reports
    ADD CONSTRAINT integrity_reports_workspace_id_44faa805_fk_workspace FOREIGN KEY (workspace_id) REFERENCES public.workspaces(workspace_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT integrity_scans integrity_scans_conversation_id_f5aa2b98_fk_conversat
ALTER TABLE ONLY public.integrity_scans
    ADD CONSTRAINT integrity_scans_conversation_id_f5aa2b98_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT integrity_scans integrity_scans_plan_id_a881fc04_fk_repair_plans_plan_id
ALTER TABLE ONLY public.integrity_scans
    ADD CONSTRAINT integrity_scans_plan_id_a881fc04_fk_repair_plans_plan_id FOREIGN KEY (plan_id) REFERENCES public.repair_plans(plan_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT integrity_scans integrity_scans_report_id_3f7de63e_fk_integrity
ALTER TABLE ONLY public.integrity_scans
    ADD CONSTRAINT integrity_scans_report_id_3f7de63e_fk_integrity FOREIGN KEY (report_id) REFERENCES public.integrity_reports(report_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT integrity_scans integrity_scans_workspace_id_fd899295_fk_workspace
ALTER TABLE ONLY public.integrity_scans
    ADD CONSTRAINT integrity_scans_workspace_id_fd899295_fk_workspace FOREIGN KEY (workspace_id) REFERENCES public.workspaces(workspace_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT journal_entries journal_entries_conversation_id_5f37bbc0_fk_conversat
ALTER TABLE ONLY public.journal_entries
    ADD CONSTRAINT journal_entries_conversation_id_5f37bbc0_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT journal_entries journal_entries_erased_by_id_6f817a53_fk_audit_log_audit_id
ALTER TABLE ONLY public.journal_entries
    ADD CONSTRAINT journal_entries_erased_by_id_6f817a53_fk_audit_log_audit_id FOREIGN KEY (erased_by_id) REFERENCES public.audit_log(audit_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT large_files large_files_conversation_id_fkey
ALTER TABLE ONLY public.large_files
    ADD CONSTRAINT large_files_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) ON DELETE CASCADE;

-- FK CONSTRAINT large_files large_files_erased_by_id_fkey
ALTER TABLE ONLY public.large_files
    ADD CONSTRAINT large_files_erased_by_id_fkey FOREIGN KEY (erased_by_id) REFERENCES public.audit_log(audit_id) ON DELETE RESTRICT;

-- FK CONSTRAINT map_events map_events_run_id_d7336783_fk_map_runs_run_id
ALTER TABLE ONLY public.map_events
    ADD CONSTRAINT map_events_run_id_d7336783_fk_map_runs_run_id FOREIGN KEY (run_id) REFERENCES public.map_runs(run_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT map_events map_events_workspace_id_fc6d74fa_fk_workspaces_workspace_id
ALTER TABLE ONLY public.map_events
    ADD CONSTRAINT map_events_workspace_id_fc6d74fa_fk_workspaces_workspace_id FOREIGN KEY (workspace_id) REFERENCES public.workspaces(workspace_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT map_items map_items_run_id_521df946_fk_map_runs_run_id
ALTER TABLE ONLY public.map_items
    ADD CONSTRAINT map_items_run_id_521df946_fk_map_runs_run_id FOREIGN KEY (run_id) REFERENCES public.map_runs(run_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT map_runs map_runs_conversation_id_b9ab5aa0_fk_conversat
ALTER TABLE ONLY public.map_runs
    ADD CONSTRAINT map_runs_conversation_id_b9ab5aa0_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT map_runs map_runs_failures_file_id_e8227e06_fk_large_files_file_id
ALTER TABLE ONLY public.map_runs
    ADD CONSTRAINT map_runs_failures_file_id_e8227e06_fk_large_files_file_id FOREIGN KEY (failures_file_id) REFERENCES public.large_files(file_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT map_runs map_runs_input_file_id_41f7a83d_fk_large_files_file_id
ALTER TABLE ONLY public.map_runs
    ADD CONSTRAINT map_runs_input_file_id_41f7a83d_fk_large_files_file_id FOREIGN KEY (input_file_id) REFERENCES public.large_files(file_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT map_runs map_runs_output_file_id_f328f48c_fk_large_files_file_id
ALTER TABLE ONLY public.map_runs
    ADD CONSTRAINT map_runs_output_file_id_f328f48c_fk_large_files_file_id FOREIGN KEY (output_file_id) REFERENCES public.large_files(file_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT map_runs map_runs_parent_run_id_214665ab_fk_map_runs_run_id
ALTER TABLE ONLY public.map_runs
    ADD CONSTRAINT map_runs_parent_run_id_214665ab_fk_map_runs_run_id FOREIGN KEY (parent_run_id) REFERENCES public.map_runs(run_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT map_runs map_runs_workspace_id_792a89d9_fk_workspaces_workspace_id
ALTER TABLE ONLY public.map_runs
    ADD CONSTRAINT map_runs_workspace_id_792a89d9_fk_workspaces_workspace_id FOREIGN KEY (workspace_id) REFERENCES public.workspaces(workspace_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT memberships memberships_user_id_5a99f855_fk_auth_user_id
ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_user_id_5a99f855_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT memberships memberships_workspace_id_3ba13890_fk_workspaces_workspace_id
ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_workspace_id_3ba13890_fk_workspaces_workspace_id FOREIGN KEY (workspace_id) REFERENCES public.workspaces(workspace_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT message_parts message_parts_message_id_fkey
ALTER TABLE ONLY public.message_parts
    ADD CONSTRAINT message_parts_message_id_fkey FOREIGN KEY (message_id) REFERENCES public.messages(message_id) ON DELETE CASCADE;

-- FK CONSTRAINT messages messages_cold_block_id_fkey
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_cold_block_id_fkey FOREIGN KEY (cold_block_id) REFERENCES public.cold_blocks(cold_block_id) ON DELETE RESTRICT;

-- FK CONSTRAINT messages messages_conversation_id_fkey
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) ON DELETE CASCADE;

-- FK CONSTRAINT messages messages_erased_by_id_fkey
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_erased_by_id_fkey FOREIGN KEY (erased_by_id) REFERENCES public.audit_log(audit_id) ON DELETE RESTRICT;

-- FK CONSTRAINT projects projects_workspace_id_82651d7a_fk_workspaces_workspace_id
ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_workspace_id_82651d7a_fk_workspaces_workspace_id FOREIGN KEY (workspace_id) REFERENCES public.workspaces(workspace_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT quarantines quarantines_conversation_id_fkey
ALTER TABLE ONLY public.quarantines
    ADD CONSTRAINT quarantines_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) ON DELETE RESTRICT;

-- FK CONSTRAINT refused_passages refused_passages_embedder_id_f12b2dce_fk_embedders_embedder_id
ALTER TABLE ONLY public.refused_passages
    ADD CONSTRAINT refused_passages_embedder_id_f12b2dce_fk_embedders_embedder_id FOREIGN KEY (embedder_id) REFERENCES public.embedders(embedder_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT refused_passages refused_passages_message_id_499dbcad_fk_messages_message_id
ALTER TABLE ONLY public.refused_passages
    ADD CONSTRAINT refused_passages_message_id_499dbcad_fk_messages_message_id FOREIGN KEY (message_id) REFERENCES public.messages(message_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT repair_plans repair_plans_report_id_00c87208_fk_integrity_reports_report_id
ALTER TABLE ONLY public.repair_plans
    ADD CONSTRAINT repair_plans_report_id_00c87208_fk_integrity_reports_report_id FOREIGN KEY (report_id) REFERENCES public.integrity_reports(report_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT repair_steps repair_steps_plan_id_a26b67c4_fk_repair_plans_plan_id
ALTER TABLE ONLY public.repair_steps
    ADD CONSTRAINT repair_steps_plan_id_a26b67c4_fk_repair_plans_plan_id FOREIGN KEY (plan_id) REFERENCES public.repair_plans(plan_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT session_summaries session_summaries_conversation_id_28f94ab4_fk_conversat
ALTER TABLE ONLY public.session_summaries
    ADD CONSTRAINT session_summaries_conversation_id_28f94ab4_fk_conversat FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT session_summaries session_summaries_erased_by_id_9779d463_fk_audit_log_audit_id
ALTER TABLE ONLY public.session_summaries
    ADD CONSTRAINT session_summaries_erased_by_id_9779d463_fk_audit_log_audit_id FOREIGN KEY (erased_by_id) REFERENCES public.audit_log(audit_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT session_summaries session_summaries_project_id_8525720d_fk_projects_project_id
ALTER TABLE ONLY public.session_summaries
    ADD CONSTRAINT session_summaries_project_id_8525720d_fk_projects_project_id FOREIGN KEY (project_id) REFERENCES public.projects(project_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT session_summaries session_summaries_share_the_workspace_of_their_conversation
ALTER TABLE ONLY public.session_summaries
    ADD CONSTRAINT session_summaries_share_the_workspace_of_their_conversation FOREIGN KEY (conversation_id, workspace_id) REFERENCES public.conversations(conversation_id, workspace_id);

-- FK CONSTRAINT session_summaries session_summaries_share_the_workspace_of_their_project
ALTER TABLE ONLY public.session_summaries
    ADD CONSTRAINT session_summaries_share_the_workspace_of_their_project FOREIGN KEY (project_id, workspace_id) REFERENCES public.projects(project_id, workspace_id);

-- FK CONSTRAINT session_summaries session_summaries_supersedes_id_b1025859_fk_session_s
ALTER TABLE ONLY public.session_summaries
    ADD CONSTRAINT session_summaries_supersedes_id_b1025859_fk_session_s FOREIGN KEY (supersedes_id) REFERENCES public.session_summaries(summary_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT session_summaries session_summaries_workspace_id_33e2f0a5_fk_workspace
ALTER TABLE ONLY public.session_summaries
    ADD CONSTRAINT session_summaries_workspace_id_33e2f0a5_fk_workspace FOREIGN KEY (workspace_id) REFERENCES public.workspaces(workspace_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT session_summary_children session_summary_chil_child_id_a657796b_fk_session_s
ALTER TABLE ONLY public.session_summary_children
    ADD CONSTRAINT session_summary_chil_child_id_a657796b_fk_session_s FOREIGN KEY (child_id) REFERENCES public.session_summaries(summary_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT session_summary_children session_summary_chil_parent_id_aaefcea4_fk_session_s
ALTER TABLE ONLY public.session_summary_children
    ADD CONSTRAINT session_summary_chil_parent_id_aaefcea4_fk_session_s FOREIGN KEY (parent_id) REFERENCES public.session_summaries(summary_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT session_summary_memories session_summary_memo_memory_summary_id_575e2530_fk_summaries
ALTER TABLE ONLY public.session_summary_memories
    ADD CONSTRAINT session_summary_memo_memory_summary_id_575e2530_fk_summaries FOREIGN KEY (memory_summary_id) REFERENCES public.summaries(summary_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT session_summary_memories session_summary_memo_message_id_09b960c7_fk_messages_
ALTER TABLE ONLY public.session_summary_memories
    ADD CONSTRAINT session_summary_memo_message_id_09b960c7_fk_messages_ FOREIGN KEY (message_id) REFERENCES public.messages(message_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT session_summary_memories session_summary_memo_summary_id_0dddc9d6_fk_session_s
ALTER TABLE ONLY public.session_summary_memories
    ADD CONSTRAINT session_summary_memo_summary_id_0dddc9d6_fk_session_s FOREIGN KEY (summary_id) REFERENCES public.session_summaries(summary_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT summaries summaries_conversation_id_fkey
ALTER TABLE ONLY public.summaries
    ADD CONSTRAINT summaries_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) ON DELETE CASCADE;

-- FK CONSTRAINT summaries summaries_erased_by_id_fkey
ALTER TABLE ONLY public.summaries
    ADD CONSTRAINT summaries_erased_by_id_fkey FOREIGN KEY (erased_by_id) REFERENCES public.audit_log(audit_id) ON DELETE RESTRICT;

-- FK CONSTRAINT summaries summaries_supersedes_id_fkey
ALTER TABLE ONLY public.summaries
    ADD CONSTRAINT summaries_supersedes_id_fkey FOREIGN KEY (supersedes_id) REFERENCES public.summaries(summary_id) DEFERRABLE INITIALLY DEFERRED;

-- FK CONSTRAINT summary_messages summary_messages_message_id_fkey
ALTER TABLE ONLY public.summary_messages
    ADD CONSTRAINT summary_messages_message_id_fkey FOREIGN KEY (message_id) REFERENCES public.messages(message_id) ON DELETE RESTRICT;

-- FK CONSTRAINT summary_messages summary_messages_summary_id_fkey
ALTER TABLE ONLY public.summary_messages
    ADD CONSTRAINT summary_messages_summary_id_fkey FOREIGN KEY (summary_id) REFERENCES public.summaries(summary_id) ON DELETE CASCADE;

-- FK CONSTRAINT summary_parents summary_parents_parent_summary_id_fkey
ALTER TABLE ONLY public.summary_parents
    ADD CONSTRAINT summary_parents_parent_summary_id_fkey FOREIGN KEY (parent_summary_id) REFERENCES public.summaries(summary_id) ON DELETE RESTRICT;

-- FK CONSTRAINT summary_parents summary_parents_summary_id_fkey
ALTER TABLE ONLY public.summary_parents
    ADD CONSTRAINT summary_parents_summary_id_fkey FOREIGN KEY (summary_id) REFERENCES public.summaries(summary_id) ON DELETE CASCADE;

-- FK CONSTRAINT upload_chunks upload_chunks_upload_id_fkey
ALTER TABLE ONLY public.upload_chunks
    ADD CONSTRAINT upload_chunks_upload_id_fkey FOREIGN KEY (upload_id) REFERENCES public.uploads(upload_id) ON DELETE CASCADE;

-- FK CONSTRAINT uploads uploads_conversation_id_fkey
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES public.conversations(conversation_id) ON DELETE CASCADE;

-- FK CONSTRAINT uploads uploads_file_id_fkey
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_file_id_fkey FOREIGN KEY (file_id) REFERENCES public.large_files(file_id) ON DELETE CASCADE;

-- FUNCTION lcm_act_text(public.audit_log)
CREATE FUNCTION public.lcm_act_text(entry public.audit_log) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT jsonb_build_array(
    entry.audit_id,
    to_char(entry.recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    entry.workspace_id, entry.conversation_id, entry.actor, entry.act, entry.target, entry.detail,
    entry.transaction_id::text
  )::text
$$;

-- FUNCTION lcm_append_messages(bigint, bigint, integer, boolean, json, text[], json)
CREATE FUNCTION public.lcm_append_messages(p_conversation_id bigint, p_workspace_id bigint, p_overhead integer, p_keyed boolean, p_messages json, p_contents text[], p_parts json, OUT message_ids bigint[], OUT seqs bigint[], OUT created boolean[], OUT conflicting_key text, OUT message_count bigint, OUT active_messages bigint, OUT active_tokens bigint, OUT total_tokens bigint, OUT rest_until_seq bigint, OUT overrides jsonb) RETURNS record
    LANGUAGE plpgsql
    AS $$
DECLARE
  c conversations;
  stored_ids bigint[] := '{}';
  fresh_tokens bigint;
  fresh_count integer;
  recorded timestamptz;
BEGIN
  SELECT * INTO c FROM conversations
    WHERE conversation_id = p_conversation_id AND (p_workspace_id IS NULL OR workspace_id = p_workspace_id)
    FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  recorded := greatest(clock_timestamp(), c.updated_at);
  IF p_keyed THEN
    SELECT array_agg(m.message_id ORDER BY b.position), array_agg(m.seq ORDER BY b.position),
           min(b.idempotency_key) FILTER (
             WHERE m.idempotency_key = b.idempotency_key AND m.entry_hash <> decode(b.entry_hash, 'hex')
           )
      INTO stored_ids, seqs, conflicting_key
      FROM json_to_recordset(p_messages) AS b(position integer, idempotency_key text, entry_hash text)
      LEFT JOIN LATERAL (
        SELECT s.message_id, s.seq, s.idempotency_key, s.entry_hash FROM messages s
          WHERE s.conversation_id = p_conversation_id AND s.idempotency_key = b.idempotency_key
        UNION ALL
        SELECT s.message_id, s.seq, s.idempotency_key, s.entry_hash FROM messages s
          WHERE s.conversation_id = p_conversation_id AND s.idempotency_key = lcm_erased_key(b.idempotency_key)
        LIMIT 1
      ) m ON true;
    IF conflicting_key IS NOT NULL THEN
      message_ids := '{}';
      RETURN;
    END IF;
  END IF;
  WITH given AS (
    SELECT b.*, p_contents[position] AS content, row_number() OVER (ORDER BY position) - 1 AS place,
           decode(b.metadata_hash, 'hex') AS metadata_seal,
           decode(b.record_hash, 'hex') AS record_seal,
           lcm_chain(c.chain_head, decode(b.entry_hash, 'hex'), decode(b.metadata_hash, 'hex'),
                     decode(b.record_hash, 'hex'), b.created_at, recorded)
             OVER (ORDER BY position) AS chain_hash
      FROM json_to_recordset(p_messages) AS b(
        position integer, role message_role, token_count integer, token_counter text, created_at timestamptz,
        author text, idempotency_key text, metadata jsonb, exact text, chained_parts integer,
        content_hash text, entry_hash text, metadata_hash text, record_hash text
      )
      WHERE stored_ids[b.position] IS NULL
  ), inserted AS (
    INSERT INTO messages (
      conversation_id, seq, role, content, token_count, created_at, author, idempotency_key, metadata, exact,
      token_counter, chained_parts, content_hash, entry_hash, metadata_hash, record_hash, chain_hash, recorded_at
    )
    SELECT p_conversation_id, c.next_seq + place, role, content, token_count, given.created_at, author, idempotency_key,
           coalesce(metadata, '{}'), exact::json, token_counter, chained_parts, decode(content_hash, 'hex'),
           decode(entry_hash, 'hex'), metadata_seal, record_seal, chain_hash, recorded
      FROM given ORDER BY place
    RETURNING messages.message_id, messages.seq, messages.token_count, messages.chain_hash
  ), shown AS (
    INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, token_count)
    SELECT p_conversation_id, inserted.seq, 'message', inserted.message_id, inserted.token_count + p_overhead
      FROM inserted
  )
  SELECT array_agg(i.message_id ORDER BY i.seq), array_agg(i.seq ORDER BY i.seq), coalesce(sum(i.token_count), 0),
         count(*), coalesce((array_agg(i.chain_hash ORDER BY i.seq DESC))[1], c.chain_head)
    INTO message_ids, seqs, fresh_tokens, fresh_count, c.chain_head
    FROM inserted i;
  IF p_keyed AND fresh_count < cardinality(stored_ids) THEN
    SELECT array_agg(coalesce(s.id, m.message_id) ORDER BY s.position), array_agg(m.seq ORDER BY s.position),
           array_agg(s.id IS NULL ORDER BY s.position)
      INTO message_ids, seqs, created
      FROM (
        SELECT id, position, count(*) FILTER (WHERE id IS NULL) OVER (ORDER BY position) AS place
          FROM unnest(stored_ids) WITH ORDINALITY AS stored(id, position)
      ) s
      JOIN messages m ON m.message_id = s.id
        OR (s.id IS NULL AND m.conversation_id = p_conversation_id AND m.seq = c.next_seq + s.place - 1);
  ELSE
    created := array_fill(true, ARRAY[fresh_count]);
  END IF;
  IF fresh_count > 0 THEN
    INSERT INTO message_parts (
      part_id, message_id, session_id, part_type, ordinal, text_content, is_ignored, is_synthetic, tool_call_id,
      tool_name, tool_status, tool_input, tool_output, tool_error, tool_title, patch_hash, patch_files, file_mime,
      file_name, file_url, subtask_prompt, subtask_desc, subtask_agent, step_reason, step_cost, step_tokens_in,
      step_tokens_out, snapshot_hash, compaction_auto, metadata, exact, part_hash
    )
    SELECT 'part_' || message_ids[p.position] || '_' || p.ordinal, message_ids[p.position], c.session_id, p.part_type,
           p.ordinal,
           CASE p.repeats WHEN 'text_content' THEN p_contents[p.position] ELSE p.text_content END,
           p.is_ignored, p.is_synthetic, p.tool_call_id, p.tool_name, p.tool_status, p.tool_input,
           CASE p.repeats WHEN 'tool_output' THEN p_contents[p.position] ELSE p.tool_output END,
           p.tool_error, p.tool_title, p.patch_hash, p.patch_files, p.file_mime,
           p.file_name, p.file_url, p.subtask_prompt, p.subtask_desc, p.subtask_agent, p.step_reason, p.step_cost,
           p.step_tokens_in, p.step_tokens_out, p.snapshot_hash, p.compaction_auto, p.metadata, p.exact::json,
           decode(p.part_hash, 'hex')
      FROM json_to_recordset(p_parts) AS p(
        position integer, ordinal integer, part_type message_part_type, text_content text, is_ignored boolean,
        is_synthetic boolean, tool_call_id text, tool_name text, tool_status text, tool_input jsonb, tool_output text,
        tool_error text, tool_title text, patch_hash text, patch_files text[], file_mime text, file_name text,
        file_url text, subtask_prompt text, subtask_desc text, subtask_agent text, step_reason text, step_cost numeric,
        step_tokens_in integer, step_tokens_out integer, snapshot_hash text, compaction_auto boolean, metadata jsonb,
        exact text, part_hash text, repeats text
      )
      WHERE created[p.position];
  END IF;
  UPDATE conversations SET
      next_seq = conversations.next_seq + fresh_count,
      total_tokens = conversations.total_tokens + fresh_tokens,
      active_messages = conversations.active_messages + fresh_count,
      active_tokens = conversations.active_tokens + fresh_tokens + fresh_count * p_overhead,
      chain_head = c.chain_head,
      updated_at = CASE WHEN fresh_count > 0 THEN recorded ELSE conversations.updated_at END,
      last_used_on = (recorded AT TIME ZONE 'UTC')::date
    WHERE conversation_id = p_conversation_id
    RETURNING conversations.next_seq - 1, conversations.active_messages, conversations.active_tokens,
              conversations.total_tokens, conversations.rest_until_seq, conversations.overrides
    INTO message_count, active_messages, active_tokens, total_tokens, rest_until_seq, overrides;
END
$$;

-- FUNCTION lcm_bigrams(text)
CREATE FUNCTION public.lcm_bigrams(content text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN (octet_length(content) = length(content)) THEN content WHEN (content !~ '[฀-໿က-႟ក-៿぀-ヿ㐀-䶿一-鿿가-힯]'::text) THEN content ELSE regexp_replace(regexp_replace(content, '([฀-໿က-႟ក-៿぀-ヿ㐀-䶿一-鿿가-힯]+)'::text, ' \1 '::text, 'g'::text), '([฀-໿က-႟ក-៿぀-ヿ㐀-䶿一-鿿가-힯])'::text, '\1 \1'::text, 'g'::text) END;

-- FUNCTION lcm_broken(text)
CREATE FUNCTION public.lcm_broken(content text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN (octet_length(content) < 1000) THEN content ELSE regexp_replace(content, '(\S{250})'::text, '\1 '::text, 'g'::text) END;

-- FUNCTION lcm_chain_act()
CREATE FUNCTION public.lcm_chain_act() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  head audit_head;
BEGIN
  INSERT INTO audit_head DEFAULT VALUES ON CONFLICT DO NOTHING;
  SELECT * INTO head FROM audit_head FOR UPDATE;
  head.number := head.number + 1;
  head.chain_hash := lcm_next_act(head.chain_hash, NEW);
  INSERT INTO audit_chain (number, audit_id, chain_hash) VALUES (head.number, NEW.audit_id, head.chain_hash);
  UPDATE audit_head SET number = head.number, chain_hash = head.chain_hash;
  RETURN NULL;
END
$$;

-- FUNCTION lcm_chain_map_event()
CREATE FUNCTION public.lcm_chain_map_event() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  newest map_events;
BEGIN
  PERFORM FROM map_runs WHERE run_id = NEW.run_id FOR NO KEY UPDATE;
  SELECT * INTO newest FROM map_events WHERE run_id = NEW.run_id ORDER BY seq DESC LIMIT 1;
  NEW.seq := coalesce(newest.seq, 0) + 1;
  NEW.at := greatest(clock_timestamp(), newest.at);
  NEW.previous_hash := coalesce(newest.hash, '');
  NEW.hash := sha256(NEW.previous_hash || convert_to(lcm_map_event_text(NEW), 'UTF8'));
  RETURN NEW;
END
$$;

-- FUNCTION lcm_compound_parts(text)
CREATE FUNCTION public.lcm_compound_parts(content text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (CASE WHEN (content ~ '[[:alnum:]][_./\\:@#=-]+[[:alnum:]]'::text) THEN (SELECT regexp_replace(COALESCE(string_agg(found.found[1], ' '::text), ''::text), '[_./\\:@#=-]+'::text, ' '::text, 'g'::text) AS regexp_replace FROM regexp_matches(lcm_compound_parts.content, '([[:alnum:]]+(?:[_./\\:@#=-]+[[:alnum:]]+)+)'::text, 'g'::text) found(found)) ELSE ''::text END || CASE WHEN (content ~ '[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}'::text) THEN (SELECT (' '::text || regexp_replace(regexp_replace(COALESCE(string_agg(found.found[1], ' '::text), ''::text), '([a-z0-9])([A-Z])'::text, '\1 \2'::text, 'g'::text), '([A-Z])([A-Z][a-z]{2})'::text, '\1 \2'::text, 'g'::text)) FROM regexp_matches(lcm_compound_parts.content, '([[:alnum:]]*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2})[[:alnum:]]*)'::text, 'g'::text) found(found)) ELSE ''::text END);

-- FUNCTION lcm_embed_again(bigint, bigint)
CREATE FUNCTION public.lcm_embed_again(p_conversation_id bigint, p_from_seq bigint) RETURNS void
    LANGUAGE sql
    AS $$
  UPDATE embedded_conversations
  SET upto_seq = least(upto_seq, p_from_seq - 1),
      fence = CASE WHEN state = 'leased' THEN fence + 1 ELSE fence END,
      leased_until = CASE WHEN state = 'leased' THEN statement_timestamp() ELSE leased_until END
  WHERE conversation_id = p_conversation_id AND (upto_seq >= p_from_seq OR state = 'leased')
$$;

-- FUNCTION lcm_erased_key(text)
CREATE FUNCTION public.lcm_erased_key(key text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ('erased:'::text || encode(sha256(convert_to(key, 'UTF8'::name)), 'hex'::text));

-- FUNCTION lcm_fold(text)
CREATE FUNCTION public.lcm_fold(content text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN (octet_length(content) = length(content)) THEN translate(content, '<>&'::text, '   '::text) ELSE regexp_replace(CASE WHEN (content !~ '[ -῿⁰-₟℀-↏①-⓿⺀-⿟゙゚㄰-㏿豈-￯𝐀-𝟿]'::text) THEN content ELSE translate(replace(replace(replace(NORMALIZE(regexp_replace(NORMALIZE(content, NFKD), '(?<![Ии])̆|[̀-̅̇-֑ͯ-ֽֿ-ׇؐ-ؚـً-ٰٟۖ-़়਼ۭ]'::text, ''::text, 'g'::text), NFC), 'ß'::text, 'ss'::text), 'œ'::text, 'oe'::text), 'Œ'::text, 'OE'::text), 'ıøØłŁđĐँ'::text, 'ioOlLdDं'::text) END, '[<>& -©«-±´¶-¸»¿×÷،؛؟۔।॥​‐-⁯₠-⃏←-◿⤀-⯿　-〃〈-〠〰︀-️﻿�]|([☀-⟿🀀-🫿])'::text, ' \1 '::text, 'g'::text) END;

-- FUNCTION lcm_follow_move()
CREATE FUNCTION public.lcm_follow_move() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  last head_moves;
BEGIN
  SELECT * INTO last FROM head_moves WHERE conversation_id = NEW.conversation_id ORDER BY number DESC LIMIT 1;
  IF NEW.number <> coalesce(last.number, 0) + 1 OR NEW.at_seq < coalesce(last.at_seq, 1) THEN
    RAISE EXCEPTION 'move % of conversation % does not follow the one before', NEW.number, NEW.conversation_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END
$$;

-- FUNCTION lcm_forget_vectors(bigint[])
CREATE FUNCTION public.lcm_forget_vectors(p_messages bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $_$
DECLARE
  of_embedder bigint;
  vectors regclass;
BEGIN
  PERFORM FROM messages WHERE message_id = ANY(p_messages) ORDER BY message_id FOR UPDATE;
  FOR of_embedder, vectors IN SELECT embedder_id, to_regclass('embedding_vectors_' || embedder_id) FROM embedders LOOP
    IF vectors IS NOT NULL THEN
      EXECUTE format(
        'WITH gone AS (DELETE FROM %s WHERE message_id = ANY($1) RETURNING conversation_id)
         UPDATE embedded_conversations e SET passages = greatest(0, e.passages - counted.passages)
         FROM (SELECT conversation_id, count(*) AS passages FROM gone GROUP BY conversation_id) AS counted
         WHERE e.conversation_id = counted.conversation_id AND e.embedder_id = $2', vectors
      ) USING p_messages, of_embedder;
    END IF;
  END LOOP;
END
$_$;

-- FUNCTION lcm_forget_vectors_of_quarantined()
CREATE FUNCTION public.lcm_forget_vectors_of_quarantined() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
DECLARE
  held bigint := CASE
    WHEN NEW.target ~ '^msg_[0-9]{1,18}$' THEN substr(NEW.target, 5)::bigint
    ELSE (SELECT message_id FROM message_parts WHERE part_id = NEW.target)
  END;
BEGIN
  IF held IS NULL OR NOT EXISTS (SELECT FROM embedders) THEN
    RETURN NULL;
  END IF;
  IF NEW.released_at IS NULL THEN
    PERFORM lcm_forget_vectors(ARRAY[held]);
  ELSE
    PERFORM lcm_embed_again(conversation_id, seq) FROM messages WHERE message_id = held;
  END IF;
  RETURN NULL;
END
$_$;

-- FUNCTION lcm_forget_vectors_of_texts()
CREATE FUNCTION public.lcm_forget_vectors_of_texts() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF EXISTS (SELECT FROM embedders) THEN
    PERFORM lcm_forget_vectors(ARRAY(SELECT message_id FROM changed));
    PERFORM lcm_embed_again(conversation_id, min(seq)) FROM changed
    WHERE erased_by_id IS NULL AND cold_block_id IS NULL GROUP BY conversation_id ORDER BY conversation_id;
  END IF;
  RETURN NULL;
END
$$;

-- FUNCTION lcm_head_at(bigint, bigint, bigint)
CREATE FUNCTION public.lcm_head_at(p_conversation_id bigint, p_next_seq bigint, p_moves bigint) RETURNS bigint
    LANGUAGE sql STABLE
    AS $$
  SELECT coalesce((
    SELECT CASE WHEN m.at_seq >= p_next_seq THEN m.head_seq END FROM head_moves m
    WHERE m.conversation_id = p_conversation_id AND m.number <= p_moves AND m.at_seq <= p_next_seq
    ORDER BY m.number DESC LIMIT 1
  ), p_next_seq - 1)
$$;

-- FUNCTION lcm_head_seq(bigint, int8multirange)
CREATE FUNCTION public.lcm_head_seq(p_next_seq bigint, p_inactive int8multirange) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT CASE WHEN p_inactive @> p_next_seq - 1
         THEN (SELECT max(lower(stretch)) - 1 FROM unnest(p_inactive) AS stretch)
         ELSE p_next_seq - 1 END
$$;

-- FUNCTION lcm_inactive(bigint, bigint, bigint)
CREATE FUNCTION public.lcm_inactive(p_conversation_id bigint, p_next_seq bigint, p_moves bigint) RETURNS int8multirange
    LANGUAGE sql STABLE
    AS $$
  SELECT lcm_off_path(p_conversation_id, head) + int8multirange(int8range(head + 1, greatest(head + 1, p_next_seq)))
  FROM lcm_head_at(p_conversation_id, p_next_seq, p_moves) AS head
$$;

-- FUNCTION lcm_is_announced(bigint)
CREATE FUNCTION public.lcm_is_announced(p_conversation_id bigint) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM audit_log
    WHERE transaction_id = pg_current_xact_id_if_assigned() AND conversation_id = p_conversation_id
      AND act IN ('archive', 'thaw', 'erase', 'restore')
  );
END
$$;

-- FUNCTION lcm_keep_file()
CREATE FUNCTION public.lcm_keep_file() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  taken text[] := ARRAY['file_name', 'mime_type', 'exploration_summary', 'erased_by_id'];
BEGIN
  IF to_jsonb(NEW) - taken IS DISTINCT FROM to_jsonb(OLD) - taken
     OR num_nonnulls(NEW.file_name, NEW.mime_type, NEW.exploration_summary) > 0 OR NEW.erased_by_id IS NULL
     OR NOT lcm_is_announced(OLD.conversation_id) THEN
    RAISE EXCEPTION 'UPDATE on large_files refused: what LCM has recorded is never changed or removed'
      USING ERRCODE = 'integrity_constraint_violation', HINT = 'Store another file.';
  END IF;
  RETURN NEW;
END
$$;

-- FUNCTION lcm_keep_journal_entry()
CREATE FUNCTION public.lcm_keep_journal_entry() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF (NEW.journal_entry_id, NEW.conversation_id, NEW.subpath, NEW.position, NEW.uuid, NEW.entry_hash, NEW.recorded_at)
     IS DISTINCT FROM
     (OLD.journal_entry_id, OLD.conversation_id, OLD.subpath, OLD.position, OLD.uuid, OLD.entry_hash, OLD.recorded_at)
     OR NEW.entry IS NOT NULL OR NEW.erased_by_id IS NULL OR NOT lcm_is_announced(OLD.conversation_id) THEN
    RAISE EXCEPTION 'UPDATE on journal_entries refused: what LCM has recorded is never changed or removed'
      USING ERRCODE = 'integrity_constraint_violation', HINT = 'Append another entry.';
  END IF;
  RETURN NEW;
END
$$;

-- FUNCTION lcm_keep_message()
CREATE FUNCTION public.lcm_keep_message() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF (NEW.message_id, NEW.conversation_id, NEW.seq, NEW.role, NEW.token_count, NEW.token_counter, NEW.chained_parts,
      NEW.created_at, NEW.recorded_at, NEW.content_hash, NEW.entry_hash, NEW.metadata_hash, NEW.record_hash,
      NEW.chain_hash)
     IS DISTINCT FROM
     (OLD.message_id, OLD.conversation_id, OLD.seq, OLD.role, OLD.token_count, OLD.token_counter, OLD.chained_parts,
      OLD.created_at, OLD.recorded_at, OLD.content_hash, OLD.entry_hash, OLD.metadata_hash, OLD.record_hash,
      OLD.chain_hash)
     OR NOT lcm_is_announced(OLD.conversation_id) THEN
    RAISE EXCEPTION 'UPDATE on messages refused: what LCM has recorded is never changed or removed'
      USING ERRCODE = 'integrity_constraint_violation',
            HINT = 'Append a new message; compaction makes room without touching what is stored.';
  END IF;
  RETURN NEW;
END
$$;

-- FUNCTION lcm_keep_part()
CREATE FUNCTION public.lcm_keep_part() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF (NEW.part_id, NEW.message_id, NEW.session_id, NEW.part_type, NEW.ordinal, NEW.part_hash) IS DISTINCT FROM
     (OLD.part_id, OLD.message_id, OLD.session_id, OLD.part_type, OLD.ordinal, OLD.part_hash)
     OR NOT lcm_is_announced((SELECT conversation_id FROM messages WHERE message_id = OLD.message_id)) THEN
    RAISE EXCEPTION 'UPDATE on message_parts refused: what LCM has recorded is never changed or removed'
      USING ERRCODE = 'integrity_constraint_violation',
            HINT = 'Append a new message; compaction makes room without touching what is stored.';
  END IF;
  RETURN NEW;
END
$$;

-- FUNCTION lcm_keep_session_summary()
CREATE FUNCTION public.lcm_keep_session_summary() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  taken text[] := ARRAY['content', 'content_tsv', 'erased_by_id'];
BEGIN
  IF to_jsonb(NEW) - taken IS DISTINCT FROM to_jsonb(OLD) - taken OR NEW.content <> '' OR NOT EXISTS (
    SELECT FROM audit_log
    WHERE transaction_id = pg_current_xact_id_if_assigned() AND act = 'erase' AND workspace_id = OLD.workspace_id
      AND audit_id = NEW.erased_by_id
  ) THEN
    RAISE EXCEPTION 'UPDATE on session_summaries refused: what LCM has recorded is never changed or removed'
      USING ERRCODE = 'integrity_constraint_violation', HINT = 'Summarize the session again.';
  END IF;
  RETURN NEW;
END
$$;

-- FUNCTION lcm_keep_summary()
CREATE FUNCTION public.lcm_keep_summary() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  taken text[] := ARRAY['content', 'content_tsv', 'erased_by_id'];
BEGIN
  IF to_jsonb(NEW) - taken IS DISTINCT FROM to_jsonb(OLD) - taken OR NOT lcm_is_announced(OLD.conversation_id) THEN
    RAISE EXCEPTION 'UPDATE on summaries refused: what LCM has recorded is never changed or removed'
      USING ERRCODE = 'integrity_constraint_violation',
            HINT = 'Append a new message; compaction makes room without touching what is stored.';
  END IF;
  RETURN NEW;
END
$$;

-- FUNCTION lcm_map_event_text(public.map_events)
CREATE FUNCTION public.lcm_map_event_text(entry public.map_events) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT concat_ws(E'\n',
    entry.run_id, entry.seq::text, to_char(entry.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    entry.actor, entry.event, coalesce(entry.position::text, ''),
    encode(entry.input_hash, 'hex'), encode(entry.output_hash, 'hex'), entry.details::text)
$$;

-- FUNCTION lcm_next_act(bytea, public.audit_log)
CREATE FUNCTION public.lcm_next_act(previous bytea, entry public.audit_log) RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT sha256(previous || convert_to(lcm_act_text(entry), 'UTF8'))
$$;

-- FUNCTION lcm_next_link(bytea, bytea, bytea, bytea, bytea, timestamp with time zone, timestamp with time zone)
CREATE FUNCTION public.lcm_next_link(link bytea, head bytea, entry_hash bytea, metadata_hash bytea, record_hash bytea, created_at timestamp with time zone, recorded_at timestamp with time zone) RETURNS bytea
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
BEGIN
  RETURN sha256(
    coalesce(link, head) || entry_hash
    || int8send((extract(epoch FROM created_at) * 1000000)::bigint)
    || int8send((extract(epoch FROM recorded_at) * 1000000)::bigint)
    || coalesce(metadata_hash, '')
    || coalesce('record:'::bytea || record_hash, '')
  );
END
$$;

-- FUNCTION lcm_off_path(bigint, bigint)
CREATE FUNCTION public.lcm_off_path(p_conversation_id bigint, p_head bigint) RETURNS int8multirange
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
  tip bigint := p_head;
  off_path int8multirange := '{}';
  step record;
BEGIN
  LOOP
    SELECT m.at_seq, m.head_seq INTO step FROM head_moves m
      WHERE m.conversation_id = p_conversation_id AND m.at_seq <= tip
      ORDER BY m.at_seq DESC, m.number DESC LIMIT 1;
    EXIT WHEN NOT FOUND OR step.head_seq >= step.at_seq;
    off_path := off_path + int8multirange(int8range(step.head_seq + 1, step.at_seq));
    tip := step.head_seq;
  END LOOP;
  RETURN off_path;
END
$$;

-- FUNCTION lcm_places(bigint, bigint)
CREATE FUNCTION public.lcm_places(conversation_id bigint, seq bigint) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN array_to_tsvector(CASE WHEN (seq IS NULL) THEN ARRAY[('in '::text || conversation_id)] ELSE ARRAY[('in '::text || conversation_id), ((('in '::text || conversation_id) || '/'::text) || (seq / 1024))] END);

-- FUNCTION lcm_refuse_change()
CREATE FUNCTION public.lcm_refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION '% on % refused: what LCM has recorded is never changed or removed', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'integrity_constraint_violation',
          HINT = 'Append a new message; compaction makes room without touching what is stored.';
END
$$;

-- FUNCTION lcm_require_history_source()
CREATE FUNCTION public.lcm_require_history_source() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM session_summary_memories WHERE summary_id = NEW.summary_id AND NEW.depth = 0
    UNION ALL
    SELECT FROM session_summary_children WHERE parent_id = NEW.summary_id AND NEW.depth > 0
  ) THEN
    RAISE EXCEPTION 'session summary % links to no source', NEW.summary_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END
$$;

-- FUNCTION lcm_require_source()
CREATE FUNCTION public.lcm_require_source() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM summary_messages WHERE summary_id = NEW.summary_id)
     AND NOT EXISTS (SELECT FROM summary_parents WHERE summary_id = NEW.summary_id) THEN
    RAISE EXCEPTION 'summary % links to no source', NEW.summary_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END
$$;

-- FUNCTION lcm_row_seal(text, record)
CREATE FUNCTION public.lcm_row_seal(p_table text, p_columns record) RETURNS bytea
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET "TimeZone" TO 'UTC'
    SET bytea_output TO 'hex'
    SET extra_float_digits TO '1'
    AS $$
BEGIN
  RETURN sha256(convert_to(p_table || ' ' || to_jsonb(p_columns)::text, 'UTF8'));
END
$$;

-- FUNCTION lcm_seal_row()
CREATE FUNCTION public.lcm_seal_row() RETURNS trigger
    LANGUAGE plpgsql
    SET "TimeZone" TO 'UTC'
    SET bytea_output TO 'hex'
    SET extra_float_digits TO '1'
    AS $$
DECLARE
  columns jsonb := to_jsonb(NEW);
BEGIN
  columns := columns - ARRAY(SELECT name FROM jsonb_object_keys(columns) AS name WHERE name <> ALL (TG_ARGV));
  NEW.row_seal := sha256(convert_to(TG_TABLE_NAME || ' ' || columns::text, 'UTF8'));
  RETURN NEW;
END
$$;

-- FUNCTION lcm_show_instead(bigint, text, integer)
CREATE FUNCTION public.lcm_show_instead(p_conversation_id bigint, p_summary_id text, p_item_tokens integer, OUT items bigint, OUT ordinal bigint) RETURNS record
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
BEGIN
  WITH before AS (
    SELECT item.ordinal, item.token_count
      FROM summaries s
      JOIN context_items item ON item.summary_id = s.supersedes_id AND item.conversation_id = p_conversation_id
     WHERE s.summary_id = p_summary_id
  ), counted AS (
    UPDATE conversations SET active_tokens = active_tokens - before.token_count + p_item_tokens
      FROM before WHERE conversation_id = p_conversation_id
  )
  UPDATE context_items item SET summary_id = p_summary_id, token_count = p_item_tokens
    FROM before WHERE item.conversation_id = p_conversation_id AND item.ordinal = before.ordinal
    RETURNING 1, item.ordinal INTO items, ordinal;
  items := coalesce(items, 0);
END
$$;

-- FUNCTION lcm_show_summary(bigint, text, integer)
CREATE FUNCTION public.lcm_show_summary(p_conversation_id bigint, p_summary_id text, p_item_tokens integer, OUT items bigint, OUT ordinal bigint) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
BEGIN
  WITH raw AS (
    DELETE FROM context_items item
    WHERE item.message_id = ANY (ARRAY(SELECT message_id FROM summary_messages WHERE summary_id = p_summary_id))
      AND item.conversation_id + 0 = p_conversation_id
    RETURNING item.ordinal, item.token_count
  ), merged AS (
    DELETE FROM context_items item
    WHERE item.summary_id = ANY (ARRAY(SELECT parent_summary_id FROM summary_parents WHERE summary_id = p_summary_id))
      AND item.conversation_id + 0 = p_conversation_id
    RETURNING item.ordinal, item.token_count
  ), gone AS (
    SELECT count(*) AS items, min(item.ordinal) AS ordinal, sum(item.token_count) AS tokens,
           (SELECT count(*) FROM raw) AS messages
      FROM (SELECT * FROM raw UNION ALL SELECT * FROM merged) AS item
  ), shown AS (
    INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id, token_count)
    SELECT p_conversation_id, gone.ordinal, 'summary', p_summary_id, p_item_tokens FROM gone WHERE gone.items > 0
  ), counted AS (
    UPDATE conversations
       SET active_messages = active_messages - gone.messages,
           active_tokens = active_tokens - gone.tokens + p_item_tokens
      FROM gone WHERE conversation_id = p_conversation_id AND gone.items > 0
  )
  SELECT gone.items, gone.ordinal INTO items, ordinal FROM gone;
END
$$;

-- FUNCTION lcm_tsquery(text)
CREATE FUNCTION public.lcm_tsquery(query text) RETURNS tsquery
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
DECLARE
  is_quoted CONSTANT boolean := strpos(query, '"') > 0;
  script CONSTANT text := '[\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF\u3040-\u30FF\u3400-\u4DBF\u4E00-\u9FFF\uAC00-\uD7AF]';
  compound CONSTANT text :=
    '([[:alnum:]]+(?:[_./\\:@#=-]+[[:alnum:]]+)+|[[:alnum:]]*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2})[[:alnum:]]*)';
  words text := lcm_broken(lcm_fold(query));
  whole tsquery;
BEGIN
  IF words ~ (script || '{2}') THEN
    IF NOT is_quoted THEN
      words := regexp_replace(words, '(' || script || '{3,})', '"\1"', 'g');
    END IF;
    words := regexp_replace(lcm_bigrams(words), '(?<![^\s"-])' || script || '(?![^\s"])', '', 'g');
  END IF;
  whole := websearch_to_tsquery('lcm_words', words);
  IF is_quoted OR words !~ compound THEN
    RETURN whole;
  END IF;
  words := regexp_replace(words, compound, '"\1"', 'g');
  words := regexp_replace(words, '([[:alnum:]])[_./\\:@#=-]+(?=[[:alnum:]])', '\1 ', 'g');
  words := regexp_replace(words, '([a-z0-9])([A-Z])', '\1 \2', 'g');
  words := regexp_replace(words, '([A-Z])([A-Z][a-z]{2})', '\1 \2', 'g');
  RETURN whole || websearch_to_tsquery('lcm_words', words);
END
$$;

-- FUNCTION lcm_tsv(text)
CREATE FUNCTION public.lcm_tsv(content text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN (octet_length(content) <= 20000) THEN public.lcm_tsv_of(content) ELSE public.lcm_tsv_of_large("left"(content, 250000)) END;

-- FUNCTION lcm_tsv_at(text, bigint, bigint)
CREATE FUNCTION public.lcm_tsv_at(content text, conversation_id bigint, seq bigint) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (octet_length(content) <= 20000) THEN (public.lcm_tsv(content) || public.lcm_places(conversation_id, seq)) ELSE public.lcm_tsv_at_of_large(content, public.lcm_places(conversation_id, seq)) END;

-- FUNCTION lcm_tsv_at_of_large(text, tsvector)
CREATE FUNCTION public.lcm_tsv_at_of_large(content text, places tsvector) RETURNS tsvector
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO '$user', 'public'
    AS $$
DECLARE
  size integer := 250000;
BEGIN
  LOOP
    BEGIN
      RETURN lcm_tsv(left(content, size)) || places;
    EXCEPTION WHEN program_limit_exceeded THEN
      size := size / 2;
    END;
  END LOOP;
END
$$;

-- FUNCTION lcm_tsv_of(text)
CREATE FUNCTION public.lcm_tsv_of(content text) RETURNS tsvector
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path TO '$user', 'public'
    AS $$
DECLARE
  words text := lcm_broken(lcm_bigrams(lcm_fold(content)));
  parts text := lcm_compound_parts(words);
BEGIN
  IF parts = '' THEN
    RETURN to_tsvector('lcm_words', words);
  END IF;
  RETURN to_tsvector('lcm_words', words) || to_tsvector('lcm_words', parts);
END
$$;

-- FUNCTION lcm_tsv_of_large(text)
CREATE FUNCTION public.lcm_tsv_of_large(content text) RETURNS tsvector
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path TO '$user', 'public'
    AS $$
DECLARE
  size integer := length(content);
BEGIN
  LOOP
    BEGIN
      RETURN lcm_tsv_of(left(content, size));
    EXCEPTION WHEN program_limit_exceeded THEN
      size := size / 2;
    END;
  END LOOP;
END
$$;

-- FUNCTION lcm_write_summary(bigint, json, bigint[], text[], integer, json)
CREATE FUNCTION public.lcm_write_summary(p_conversation_id bigint, p_summary json, p_message_ids bigint[], p_source_ids text[], p_item_tokens integer, p_mark json, OUT items bigint, OUT ordinal bigint) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  new_id text := p_summary ->> 'summary_id';
  session text;
BEGIN
  SELECT session_id INTO session FROM conversations WHERE conversation_id = p_conversation_id FOR NO KEY UPDATE;
  INSERT INTO summaries (
    summary_id, conversation_id, kind, content, token_count, file_ids, depth, first_seq, last_seq, earliest_at, latest_at,
    source_count, descendant_count, source_tokens, level, model, quality, token_counter, summary_hash, run_id, retention,
    is_degraded, supersedes_id, prompt_hash, tokens_in, tokens_out, duration_ms, created_at
  )
  SELECT summary_id, p_conversation_id, kind, content, token_count, file_ids, depth, first_seq, last_seq, earliest_at,
         latest_at, source_count, descendant_count, source_tokens, level, model, quality, token_counter,
         decode(summary_hash, 'hex'), run_id, retention, is_degraded, supersedes_id, prompt_hash, tokens_in, tokens_out,
         duration_ms, clock_timestamp()
    FROM json_to_record(p_summary) AS s(
      summary_id text, kind summary_kind, content text, token_count integer, file_ids jsonb, depth integer,
      first_seq bigint, last_seq bigint, earliest_at timestamptz, latest_at timestamptz, source_count integer,
      descendant_count integer, source_tokens bigint, level text, model text, quality jsonb, token_counter text,
      summary_hash text, run_id text, retention float, is_degraded boolean, supersedes_id text, prompt_hash text,
      tokens_in integer, tokens_out integer, duration_ms integer
    );
  INSERT INTO summary_messages (summary_id, message_id, ordinal)
  SELECT new_id, message_id, place - 1 FROM unnest(p_message_ids) WITH ORDINALITY AS given(message_id, place);
  INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal)
  SELECT new_id, source_id, place - 1 FROM unnest(p_source_ids) WITH ORDINALITY AS given(source_id, place);
  IF p_item_tokens IS NULL THEN
    items := 0;
  ELSIF p_summary ->> 'supersedes_id' IS NULL THEN
    SELECT shown.items, shown.ordinal INTO items, ordinal
      FROM lcm_show_summary(p_conversation_id, new_id, p_item_tokens) AS shown;
  ELSE
    SELECT shown.items, shown.ordinal INTO items, ordinal
      FROM lcm_show_instead(p_conversation_id, new_id, p_item_tokens) AS shown;
  END IF;
  INSERT INTO message_parts (
    part_id, message_id, session_id, part_type, ordinal, is_ignored, is_synthetic, compaction_auto, metadata, part_hash
  )
  SELECT 'part_' || last.message_id || '_' || next.ordinal, last.message_id, session, mark.part_type, next.ordinal,
         mark.is_ignored, mark.is_synthetic, mark.compaction_auto, mark.metadata, decode(mark.part_hash, 'hex')
    FROM json_to_record(p_mark) AS mark(
      part_type message_part_type, is_ignored boolean, is_synthetic boolean, compaction_auto boolean, metadata jsonb,
      part_hash text
    )
    JOIN messages last ON last.conversation_id = p_conversation_id AND last.seq = (p_summary ->> 'last_seq')::bigint
    CROSS JOIN LATERAL (
      SELECT coalesce(max(p.ordinal) + 1, 0) AS ordinal FROM message_parts p WHERE p.message_id = last.message_id
    ) next;
END
$$;

-- INDEX api_keys_prefix_8bd1f38a
CREATE INDEX api_keys_prefix_8bd1f38a ON public.api_keys USING btree (prefix);

-- INDEX api_keys_prefix_8bd1f38a_like
CREATE INDEX api_keys_prefix_8bd1f38a_like ON public.api_keys USING btree (prefix text_pattern_ops);

-- INDEX api_keys_workspace_id_3ab73bac
CREATE INDEX api_keys_workspace_id_3ab73bac ON public.api_keys USING btree (workspace_id);

-- INDEX assembly_receipts_conv_idx
CREATE INDEX assembly_receipts_conv_idx ON public.assembly_receipts USING btree (conversation_id, created_at DESC);

-- INDEX assembly_receipts_conversation_id_d8bbd1f8
CREATE INDEX assembly_receipts_conversation_id_d8bbd1f8 ON public.assembly_receipts USING btree (conversation_id);

-- INDEX assembly_receipts_receipt_id_558b300c_like
CREATE INDEX assembly_receipts_receipt_id_558b300c_like ON public.assembly_receipts USING btree (receipt_id text_pattern_ops);

-- INDEX audit_log_conversation_idx
CREATE INDEX audit_log_conversation_idx ON public.audit_log USING btree (conversation_id, audit_id);

-- INDEX audit_log_target_idx
CREATE INDEX audit_log_target_idx ON public.audit_log USING btree (target, audit_id);

-- INDEX audit_log_transaction_idx
CREATE INDEX audit_log_transaction_idx ON public.audit_log USING btree (transaction_id);

-- INDEX audit_log_workspace_idx
CREATE INDEX audit_log_workspace_idx ON public.audit_log USING btree (workspace_id, audit_id);

-- INDEX auth_group_name_a6ea08ec_like
CREATE INDEX auth_group_name_a6ea08ec_like ON public.auth_group USING btree (name varchar_pattern_ops);

-- INDEX auth_group_permissions_group_id_b120cbf9
CREATE INDEX auth_group_permissions_group_id_b120cbf9 ON public.auth_group_permissions USING btree (group_id);

-- INDEX auth_group_permissions_permission_id_84c5c92e
CREATE INDEX auth_group_permissions_permission_id_84c5c92e ON public.auth_group_permissions USING btree (permission_id);

-- INDEX auth_permission_content_type_id_2f476e4b
CREATE INDEX auth_permission_content_type_id_2f476e4b ON public.auth_permission USING btree (content_type_id);

-- INDEX auth_user_groups_group_id_97559544
CREATE INDEX auth_user_groups_group_id_97559544 ON public.auth_user_groups USING btree (group_id);

-- INDEX auth_user_groups_user_id_6a12ed8b
CREATE INDEX auth_user_groups_user_id_6a12ed8b ON public.auth_user_groups USING btree (user_id);

-- INDEX auth_user_user_permissions_permission_id_1fbb5f2c
CREATE INDEX auth_user_user_permissions_permission_id_1fbb5f2c ON public.auth_user_user_permissions USING btree (permission_id);

-- INDEX auth_user_user_permissions_user_id_a95ead1b
CREATE INDEX auth_user_user_permissions_user_id_a95ead1b ON public.auth_user_user_permissions USING btree (user_id);

-- INDEX auth_user_username_6821ab7c_like
CREATE INDEX auth_user_username_6821ab7c_like ON public.auth_user USING btree (username varchar_pattern_ops);

-- INDEX axes_accessattempt_ip_address_10922d9c
CREATE INDEX axes_accessattempt_ip_address_10922d9c ON public.axes_accessattempt USING btree (ip_address);

-- INDEX axes_accessattempt_user_agent_ad89678b
CREATE INDEX axes_accessattempt_user_agent_ad89678b ON public.axes_accessattempt USING btree (user_agent);

-- INDEX axes_accessattempt_user_agent_ad89678b_like
CREATE INDEX axes_accessattempt_user_agent_ad89678b_like ON public.axes_accessattempt USING btree (user_agent varchar_pattern_ops);

-- INDEX axes_accessattempt_username_3f2d4ca0
CREATE INDEX axes_accessattempt_username_3f2d4ca0 ON public.axes_accessattempt USING btree (username);

-- INDEX axes_accessattempt_username_3f2d4ca0_like
CREATE INDEX axes_accessattempt_username_3f2d4ca0_like ON public.axes_accessattempt USING btree (username varchar_pattern_ops);

-- INDEX axes_accessfailurelog_ip_address_2e9f5a7f
CREATE INDEX axes_accessfailurelog_ip_address_2e9f5a7f ON public.axes_accessfailurelog USING btree (ip_address);

-- INDEX axes_accessfailurelog_user_agent_ea145dda
CREATE INDEX axes_accessfailurelog_user_agent_ea145dda ON public.axes_accessfailurelog USING btree (user_agent);

-- INDEX axes_accessfailurelog_user_agent_ea145dda_like
CREATE INDEX axes_accessfailurelog_user_agent_ea145dda_like ON public.axes_accessfailurelog USING btree (user_agent varchar_pattern_ops);

-- INDEX axes_accessfailurelog_username_a8b7e8a4
CREATE INDEX axes_accessfailurelog_username_a8b7e8a4 ON public.axes_accessfailurelog USING btree (username);

-- INDEX axes_accessfailurelog_username_a8b7e8a4_like
CREATE INDEX axes_accessfailurelog_username_a8b7e8a4_like ON public.axes_accessfailurelog USING btree (username varchar_pattern_ops);

-- INDEX axes_accesslog_ip_address_86b417e5
CREATE INDEX axes_accesslog_ip_address_86b417e5 ON public.axes_accesslog USING btree (ip_address);

-- INDEX axes_accesslog_user_agent_0e659004
CREATE INDEX axes_accesslog_user_agent_0e659004 ON public.axes_accesslog USING btree (user_agent);

-- INDEX axes_accesslog_user_agent_0e659004_like
CREATE INDEX axes_accesslog_user_agent_0e659004_like ON public.axes_accesslog USING btree (user_agent varchar_pattern_ops);

-- INDEX axes_accesslog_username_df93064b
CREATE INDEX axes_accesslog_username_df93064b ON public.axes_accesslog USING btree (username);

-- INDEX axes_accesslog_username_df93064b_like
CREATE INDEX axes_accesslog_username_df93064b_like ON public.axes_accesslog USING btree (username varchar_pattern_ops);

-- INDEX cold_blocks_conv_idx
CREATE INDEX cold_blocks_conv_idx ON public.cold_blocks USING btree (conversation_id, first_seq);

-- INDEX compaction_boundaries_conversation_id_0fbc1288
CREATE INDEX compaction_boundaries_conversation_id_0fbc1288 ON public.compaction_boundaries USING btree (conversation_id);

-- INDEX compaction_jobs_conversation_id_2b877917
CREATE INDEX compaction_jobs_conversation_id_2b877917 ON public.compaction_jobs USING btree (conversation_id);

-- INDEX compaction_jobs_failed_idx
CREATE INDEX compaction_jobs_failed_idx ON public.compaction_jobs USING btree (finished_at) WHERE (state = 'failed'::text);

-- INDEX compaction_jobs_open_idx
CREATE INDEX compaction_jobs_open_idx ON public.compaction_jobs USING btree (run_after) WHERE (state = ANY (ARRAY['queued'::text, 'leased'::text]));

-- INDEX compaction_jobs_wait_once_per_conversation
CREATE UNIQUE INDEX compaction_jobs_wait_once_per_conversation ON public.compaction_jobs USING btree (conversation_id) WHERE (state = 'queued'::text);

-- INDEX compaction_plans_conv_idx
CREATE INDEX compaction_plans_conv_idx ON public.compaction_plans USING btree (conversation_id, created_at DESC);

-- INDEX compaction_plans_conversation_id_eac1d383
CREATE INDEX compaction_plans_conversation_id_eac1d383 ON public.compaction_plans USING btree (conversation_id);

-- INDEX compaction_plans_plan_id_809f377f_like
CREATE INDEX compaction_plans_plan_id_809f377f_like ON public.compaction_plans USING btree (plan_id text_pattern_ops);

-- INDEX compaction_plans_run_id_d4c544a9
CREATE INDEX compaction_plans_run_id_d4c544a9 ON public.compaction_plans USING btree (run_id);

-- INDEX compaction_plans_run_id_d4c544a9_like
CREATE INDEX compaction_plans_run_id_d4c544a9_like ON public.compaction_plans USING btree (run_id text_pattern_ops);

-- INDEX compaction_plans_waiting_idx
CREATE INDEX compaction_plans_waiting_idx ON public.compaction_plans USING btree (requested_at) WHERE ((executed_at IS NULL) AND (refusal = ''::text) AND (requested_at IS NOT NULL));

-- INDEX compaction_runs_conv_idx
CREATE INDEX compaction_runs_conv_idx ON public.compaction_runs USING btree (conversation_id, started_at DESC);

-- INDEX compaction_runs_conversation_id_436c14b7
CREATE INDEX compaction_runs_conversation_id_436c14b7 ON public.compaction_runs USING btree (conversation_id);

-- INDEX compaction_runs_job_id_ca68c7aa
CREATE INDEX compaction_runs_job_id_ca68c7aa ON public.compaction_runs USING btree (job_id);

-- INDEX compaction_runs_run_id_ccf182b9_like
CREATE INDEX compaction_runs_run_id_ccf182b9_like ON public.compaction_runs USING btree (run_id text_pattern_ops);

-- INDEX compaction_runs_started_idx
CREATE INDEX compaction_runs_started_idx ON public.compaction_runs USING btree (started_at DESC, run_id DESC);

-- INDEX context_items_conv_idx
CREATE INDEX context_items_conv_idx ON public.context_items USING btree (conversation_id, ordinal);

-- INDEX context_items_show_a_message_once
CREATE UNIQUE INDEX context_items_show_a_message_once ON public.context_items USING btree (message_id) WHERE (message_id IS NOT NULL);

-- INDEX context_items_show_a_summary_once
CREATE UNIQUE INDEX context_items_show_a_summary_once ON public.context_items USING btree (summary_id) WHERE (summary_id IS NOT NULL);

-- INDEX conversations_parent_id_177d5f37
CREATE INDEX conversations_parent_id_177d5f37 ON public.conversations USING btree (parent_id);

-- INDEX conversations_project_id_301fef4f
CREATE INDEX conversations_project_id_301fef4f ON public.conversations USING btree (project_id);

-- INDEX django_admin_log_content_type_id_c4bce8eb
CREATE INDEX django_admin_log_content_type_id_c4bce8eb ON public.django_admin_log USING btree (content_type_id);

-- INDEX django_admin_log_user_id_c564eba6
CREATE INDEX django_admin_log_user_id_c564eba6 ON public.django_admin_log USING btree (user_id);

-- INDEX django_session_expire_date_a5c62663
CREATE INDEX django_session_expire_date_a5c62663 ON public.django_session USING btree (expire_date);

-- INDEX django_session_session_key_c0390e0f_like
CREATE INDEX django_session_session_key_c0390e0f_like ON public.django_session USING btree (session_key varchar_pattern_ops);

-- INDEX embedded_conv_open_idx
CREATE INDEX embedded_conv_open_idx ON public.embedded_conversations USING btree (run_after) WHERE (state = ANY (ARRAY['queued'::text, 'leased'::text]));

-- INDEX embedded_conversations_conversation_id_d7330252
CREATE INDEX embedded_conversations_conversation_id_d7330252 ON public.embedded_conversations USING btree (conversation_id);

-- INDEX embedded_conversations_embedder_id_d2a13e05
CREATE INDEX embedded_conversations_embedder_id_d2a13e05 ON public.embedded_conversations USING btree (embedder_id);

-- INDEX embedders_build_and_serve_once
CREATE UNIQUE INDEX embedders_build_and_serve_once ON public.embedders USING btree (state) WHERE (state = ANY (ARRAY['building'::text, 'current'::text]));

-- INDEX erasures_act_id_39cf8756
CREATE INDEX erasures_act_id_39cf8756 ON public.erasures USING btree (act_id);

-- INDEX erasures_conv_idx
CREATE INDEX erasures_conv_idx ON public.erasures USING btree (conversation_id, requested_at DESC);

-- INDEX erasures_conversation_id_3b12102a
CREATE INDEX erasures_conversation_id_3b12102a ON public.erasures USING btree (conversation_id);

-- INDEX erasures_erasure_id_a49debbd_like
CREATE INDEX erasures_erasure_id_a49debbd_like ON public.erasures USING btree (erasure_id text_pattern_ops);

-- INDEX erasures_unfinished_idx
CREATE INDEX erasures_unfinished_idx ON public.erasures USING btree (erasure_id) WHERE (NOT (bytes_left = '{}'::text[]));

-- INDEX file_references_file_idx
CREATE INDEX file_references_file_idx ON public.file_references USING btree (file_id);

-- INDEX file_references_message_idx
CREATE INDEX file_references_message_idx ON public.file_references USING btree (message_id);

-- INDEX gateway_answer_chain_idx
CREATE INDEX gateway_answer_chain_idx ON public.gateway_exchanges USING btree (workspace_id, answer_chain);

-- INDEX gateway_exchanges_conversation_id_b3966023
CREATE INDEX gateway_exchanges_conversation_id_b3966023 ON public.gateway_exchanges USING btree (conversation_id);

-- INDEX gateway_exchanges_workspace_id_08dc63ce
CREATE INDEX gateway_exchanges_workspace_id_08dc63ce ON public.gateway_exchanges USING btree (workspace_id);

-- INDEX gateway_request_chain_idx
CREATE INDEX gateway_request_chain_idx ON public.gateway_exchanges USING btree (workspace_id, request_chain);

-- INDEX gateway_response_idx
CREATE INDEX gateway_response_idx ON public.gateway_exchanges USING btree (workspace_id, response_id);

-- INDEX grants_grant_id_32bb2c43_like
CREATE INDEX grants_grant_id_32bb2c43_like ON public.grants USING btree (grant_id text_pattern_ops);

-- INDEX grants_workspace_id_67d1f8fd
CREATE INDEX grants_workspace_id_67d1f8fd ON public.grants USING btree (workspace_id);

-- INDEX grants_workspace_idx
CREATE INDEX grants_workspace_idx ON public.grants USING btree (workspace_id, created_at DESC);

-- INDEX head_moves_conversation_id_9839db2d
CREATE INDEX head_moves_conversation_id_9839db2d ON public.head_moves USING btree (conversation_id);

-- INDEX history_jobs_conversation_id_2024843a
CREATE INDEX history_jobs_conversation_id_2024843a ON public.history_jobs USING btree (conversation_id);

-- INDEX history_jobs_open_idx
CREATE INDEX history_jobs_open_idx ON public.history_jobs USING btree (run_after) WHERE (state = ANY (ARRAY['queued'::text, 'leased'::text]));

-- INDEX history_jobs_project_id_066de902
CREATE INDEX history_jobs_project_id_066de902 ON public.history_jobs USING btree (project_id);

-- INDEX history_jobs_wait_once_per_conversation
CREATE UNIQUE INDEX history_jobs_wait_once_per_conversation ON public.history_jobs USING btree (conversation_id) WHERE ((conversation_id IS NOT NULL) AND (state = 'queued'::text));

-- INDEX history_jobs_wait_once_per_project
CREATE UNIQUE INDEX history_jobs_wait_once_per_project ON public.history_jobs USING btree (project_id) WHERE ((project_id IS NOT NULL) AND (state = 'queued'::text));

-- INDEX history_jobs_workspace_id_b019f4c7
CREATE INDEX history_jobs_workspace_id_b019f4c7 ON public.history_jobs USING btree (workspace_id);

-- INDEX huey_schedule_queue_timestamp
CREATE INDEX huey_schedule_queue_timestamp ON public.huey_schedule USING btree (queue, "timestamp");

-- INDEX huey_task_queue_priority_id
CREATE INDEX huey_task_queue_priority_id ON public.huey_task USING btree (queue, priority DESC, id);

-- INDEX integrity_findings_conv_idx
CREATE INDEX integrity_findings_conv_idx ON public.integrity_findings USING btree (conversation_id);

-- INDEX integrity_findings_report_id_f477770a
CREATE INDEX integrity_findings_report_id_f477770a ON public.integrity_findings USING btree (report_id);

-- INDEX integrity_findings_report_id_f477770a_like
CREATE INDEX integrity_findings_report_id_f477770a_like ON public.integrity_findings USING btree (report_id text_pattern_ops);

-- INDEX integrity_findings_report_idx
CREATE INDEX integrity_findings_report_idx ON public.integrity_findings USING btree (report_id, code, finding_id);

-- INDEX integrity_reports_conv_idx
CREATE INDEX integrity_reports_conv_idx ON public.integrity_reports USING btree (conversation_id, started_at DESC);

-- INDEX integrity_reports_conversation_id_d94653a2
CREATE INDEX integrity_reports_conversation_id_d94653a2 ON public.integrity_reports USING btree (conversation_id);

-- INDEX integrity_reports_report_id_d9ce491b_like
CREATE INDEX integrity_reports_report_id_d9ce491b_like ON public.integrity_reports USING btree (report_id text_pattern_ops);

-- INDEX integrity_reports_started_idx
CREATE INDEX integrity_reports_started_idx ON public.integrity_reports USING btree (started_at DESC);

-- INDEX integrity_reports_workspace_id_44faa805
CREATE INDEX integrity_reports_workspace_id_44faa805 ON public.integrity_reports USING btree (workspace_id);

-- INDEX integrity_reports_ws_idx
CREATE INDEX integrity_reports_ws_idx ON public.integrity_reports USING btree (workspace_id, started_at DESC);

-- INDEX integrity_scans_conversation_id_f5aa2b98
CREATE INDEX integrity_scans_conversation_id_f5aa2b98 ON public.integrity_scans USING btree (conversation_id);

-- INDEX integrity_scans_open_idx
CREATE INDEX integrity_scans_open_idx ON public.integrity_scans USING btree (run_after) WHERE (state = ANY (ARRAY['queued'::text, 'leased'::text]));

-- INDEX integrity_scans_plan_id_a881fc04
CREATE INDEX integrity_scans_plan_id_a881fc04 ON public.integrity_scans USING btree (plan_id);

-- INDEX integrity_scans_plan_id_a881fc04_like
CREATE INDEX integrity_scans_plan_id_a881fc04_like ON public.integrity_scans USING btree (plan_id text_pattern_ops);

-- INDEX integrity_scans_report_id_3f7de63e
CREATE INDEX integrity_scans_report_id_3f7de63e ON public.integrity_scans USING btree (report_id);

-- INDEX integrity_scans_report_id_3f7de63e_like
CREATE INDEX integrity_scans_report_id_3f7de63e_like ON public.integrity_scans USING btree (report_id text_pattern_ops);

-- INDEX integrity_scans_wait_once
CREATE UNIQUE INDEX integrity_scans_wait_once ON public.integrity_scans USING btree (workspace_id, conversation_id, mode, with_plan) NULLS NOT DISTINCT WHERE (state = 'queued'::text);

-- INDEX integrity_scans_workspace_id_fd899295
CREATE INDEX integrity_scans_workspace_id_fd899295 ON public.integrity_scans USING btree (workspace_id);

-- INDEX journal_entries_are_kept_once
CREATE UNIQUE INDEX journal_entries_are_kept_once ON public.journal_entries USING btree (conversation_id, subpath, uuid) WHERE (uuid IS NOT NULL);

-- INDEX journal_entries_conversation_id_5f37bbc0
CREATE INDEX journal_entries_conversation_id_5f37bbc0 ON public.journal_entries USING btree (conversation_id);

-- INDEX journal_entries_erased_by_id_6f817a53
CREATE INDEX journal_entries_erased_by_id_6f817a53 ON public.journal_entries USING btree (erased_by_id);

-- INDEX large_files_conv_idx
CREATE INDEX large_files_conv_idx ON public.large_files USING btree (conversation_id, created_at);

-- INDEX large_files_found_idx
CREATE INDEX large_files_found_idx ON public.large_files USING gin (public.lcm_tsv(((COALESCE(file_name, ''::text) || '
'::text) || COALESCE(exploration_summary, ''::text))));

-- INDEX lcm_cache_expires
CREATE INDEX lcm_cache_expires ON public.lcm_cache USING btree (expires);

-- INDEX map_events_run_id_d7336783
CREATE INDEX map_events_run_id_d7336783 ON public.map_events USING btree (run_id);

-- INDEX map_events_run_id_d7336783_like
CREATE INDEX map_events_run_id_d7336783_like ON public.map_events USING btree (run_id text_pattern_ops);

-- INDEX map_events_workspace_id_fc6d74fa
CREATE INDEX map_events_workspace_id_fc6d74fa ON public.map_events USING btree (workspace_id);

-- INDEX map_items_open_idx
CREATE INDEX map_items_open_idx ON public.map_items USING btree (run_id, run_after) WHERE (state = ANY (ARRAY['queued'::text, 'leased'::text]));

-- INDEX map_items_run_id_521df946
CREATE INDEX map_items_run_id_521df946 ON public.map_items USING btree (run_id);

-- INDEX map_items_run_id_521df946_like
CREATE INDEX map_items_run_id_521df946_like ON public.map_items USING btree (run_id text_pattern_ops);

-- INDEX map_items_run_idx
CREATE INDEX map_items_run_idx ON public.map_items USING btree (run_id, state, "position");

-- INDEX map_runs_conv_idx
CREATE INDEX map_runs_conv_idx ON public.map_runs USING btree (conversation_id, created_at DESC);

-- INDEX map_runs_conversation_id_b9ab5aa0
CREATE INDEX map_runs_conversation_id_b9ab5aa0 ON public.map_runs USING btree (conversation_id);

-- INDEX map_runs_failures_file_id_e8227e06
CREATE INDEX map_runs_failures_file_id_e8227e06 ON public.map_runs USING btree (failures_file_id);

-- INDEX map_runs_failures_file_id_e8227e06_like
CREATE INDEX map_runs_failures_file_id_e8227e06_like ON public.map_runs USING btree (failures_file_id text_pattern_ops);

-- INDEX map_runs_input_file_id_41f7a83d
CREATE INDEX map_runs_input_file_id_41f7a83d ON public.map_runs USING btree (input_file_id);

-- INDEX map_runs_input_file_id_41f7a83d_like
CREATE INDEX map_runs_input_file_id_41f7a83d_like ON public.map_runs USING btree (input_file_id text_pattern_ops);

-- INDEX map_runs_open_idx
CREATE INDEX map_runs_open_idx ON public.map_runs USING btree (last_claim_at NULLS FIRST) WHERE (state = ANY (ARRAY['queued'::text, 'running'::text]));

-- INDEX map_runs_output_file_id_f328f48c
CREATE INDEX map_runs_output_file_id_f328f48c ON public.map_runs USING btree (output_file_id);

-- INDEX map_runs_output_file_id_f328f48c_like
CREATE INDEX map_runs_output_file_id_f328f48c_like ON public.map_runs USING btree (output_file_id text_pattern_ops);

-- INDEX map_runs_parent_run_id_214665ab
CREATE INDEX map_runs_parent_run_id_214665ab ON public.map_runs USING btree (parent_run_id);

-- INDEX map_runs_parent_run_id_214665ab_like
CREATE INDEX map_runs_parent_run_id_214665ab_like ON public.map_runs USING btree (parent_run_id text_pattern_ops);

-- INDEX map_runs_run_id_5b782712_like
CREATE INDEX map_runs_run_id_5b782712_like ON public.map_runs USING btree (run_id text_pattern_ops);

-- INDEX map_runs_workspace_id_792a89d9
CREATE INDEX map_runs_workspace_id_792a89d9 ON public.map_runs USING btree (workspace_id);

-- INDEX map_runs_workspace_idx
CREATE INDEX map_runs_workspace_idx ON public.map_runs USING btree (workspace_id, created_at DESC);

-- INDEX memberships_user_id_5a99f855
CREATE INDEX memberships_user_id_5a99f855 ON public.memberships USING btree (user_id);

-- INDEX memberships_workspace_id_3ba13890
CREATE INDEX memberships_workspace_id_3ba13890 ON public.memberships USING btree (workspace_id);

-- INDEX message_parts_message_idx
CREATE INDEX message_parts_message_idx ON public.message_parts USING btree (message_id);

-- INDEX message_parts_tool_idx
CREATE INDEX message_parts_tool_idx ON public.message_parts USING btree (tool_name, message_id) WHERE (tool_name IS NOT NULL);

-- INDEX message_parts_type_idx
CREATE INDEX message_parts_type_idx ON public.message_parts USING btree (part_type);

-- INDEX messages_cold_idx
CREATE INDEX messages_cold_idx ON public.messages USING btree (cold_block_id) WHERE (cold_block_id IS NOT NULL);

-- INDEX messages_content_hash_idx
CREATE INDEX messages_content_hash_idx ON public.messages USING btree (content_hash);

-- INDEX messages_conv_seq_idx
CREATE INDEX messages_conv_seq_idx ON public.messages USING btree (conversation_id, seq);

-- INDEX messages_erased_idx
CREATE INDEX messages_erased_idx ON public.messages USING btree (conversation_id) WHERE (erased_by_id IS NOT NULL);

-- INDEX messages_system_idx
CREATE INDEX messages_system_idx ON public.messages USING btree (conversation_id, seq) WHERE (role = 'system'::public.message_role);

-- INDEX messages_take_an_idempotency_key_once
CREATE UNIQUE INDEX messages_take_an_idempotency_key_once ON public.messages USING btree (conversation_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);

-- INDEX messages_tsv_gin_idx
CREATE INDEX messages_tsv_gin_idx ON public.messages USING gin (content_tsv);

-- INDEX model_endpoints_name_12ae77cf_like
CREATE INDEX model_endpoints_name_12ae77cf_like ON public.model_endpoints USING btree (name text_pattern_ops);

-- INDEX projects_workspace_id_82651d7a
CREATE INDEX projects_workspace_id_82651d7a ON public.projects USING btree (workspace_id);

-- INDEX quarantines_conv_idx
CREATE INDEX quarantines_conv_idx ON public.quarantines USING btree (conversation_id);

-- INDEX quarantines_hold_a_thing_once
CREATE UNIQUE INDEX quarantines_hold_a_thing_once ON public.quarantines USING btree (target) WHERE (released_at IS NULL);

-- INDEX refused_passages_embedder_id_f12b2dce
CREATE INDEX refused_passages_embedder_id_f12b2dce ON public.refused_passages USING btree (embedder_id);

-- INDEX refused_passages_message_id_499dbcad
CREATE INDEX refused_passages_message_id_499dbcad ON public.refused_passages USING btree (message_id);

-- INDEX repair_plans_plan_id_ba1138ba_like
CREATE INDEX repair_plans_plan_id_ba1138ba_like ON public.repair_plans USING btree (plan_id text_pattern_ops);

-- INDEX repair_plans_report_id_00c87208
CREATE INDEX repair_plans_report_id_00c87208 ON public.repair_plans USING btree (report_id);

-- INDEX repair_plans_report_id_00c87208_like
CREATE INDEX repair_plans_report_id_00c87208_like ON public.repair_plans USING btree (report_id text_pattern_ops);

-- INDEX repair_plans_report_idx
CREATE INDEX repair_plans_report_idx ON public.repair_plans USING btree (report_id, created_at DESC);

-- INDEX repair_steps_plan_id_a26b67c4
CREATE INDEX repair_steps_plan_id_a26b67c4 ON public.repair_steps USING btree (plan_id);

-- INDEX repair_steps_plan_id_a26b67c4_like
CREATE INDEX repair_steps_plan_id_a26b67c4_like ON public.repair_steps USING btree (plan_id text_pattern_ops);

-- INDEX session_summaries_begin_once_per_conversation
CREATE UNIQUE INDEX session_summaries_begin_once_per_conversation ON public.session_summaries USING btree (conversation_id) WHERE ((conversation_id IS NOT NULL) AND (supersedes_id IS NULL));

-- INDEX session_summaries_conversation_id_28f94ab4
CREATE INDEX session_summaries_conversation_id_28f94ab4 ON public.session_summaries USING btree (conversation_id);

-- INDEX session_summaries_degraded_idx
CREATE INDEX session_summaries_degraded_idx ON public.session_summaries USING btree (summary_id) WHERE is_degraded;

-- INDEX session_summaries_erased_by_id_9779d463
CREATE INDEX session_summaries_erased_by_id_9779d463 ON public.session_summaries USING btree (erased_by_id);

-- INDEX session_summaries_erased_idx
CREATE INDEX session_summaries_erased_idx ON public.session_summaries USING btree (summary_id) WHERE (erased_by_id IS NOT NULL);

-- INDEX session_summaries_project_id_8525720d
CREATE INDEX session_summaries_project_id_8525720d ON public.session_summaries USING btree (project_id);

-- INDEX session_summaries_project_idx
CREATE INDEX session_summaries_project_idx ON public.session_summaries USING btree (project_id, depth, latest_at);

-- INDEX session_summaries_summary_id_a1312c83_like
CREATE INDEX session_summaries_summary_id_a1312c83_like ON public.session_summaries USING btree (summary_id text_pattern_ops);

-- INDEX session_summaries_supersedes_id_b1025859_like
CREATE INDEX session_summaries_supersedes_id_b1025859_like ON public.session_summaries USING btree (supersedes_id text_pattern_ops);

-- INDEX session_summaries_tsv_gin_idx
CREATE INDEX session_summaries_tsv_gin_idx ON public.session_summaries USING gin (content_tsv);

-- INDEX session_summaries_workspace_id_33e2f0a5
CREATE INDEX session_summaries_workspace_id_33e2f0a5 ON public.session_summaries USING btree (workspace_id);

-- INDEX session_summary_children_child_id_a657796b
CREATE INDEX session_summary_children_child_id_a657796b ON public.session_summary_children USING btree (child_id);

-- INDEX session_summary_children_child_id_a657796b_like
CREATE INDEX session_summary_children_child_id_a657796b_like ON public.session_summary_children USING btree (child_id text_pattern_ops);

-- INDEX session_summary_children_parent_id_aaefcea4
CREATE INDEX session_summary_children_parent_id_aaefcea4 ON public.session_summary_children USING btree (parent_id);

-- INDEX session_summary_children_parent_id_aaefcea4_like
CREATE INDEX session_summary_children_parent_id_aaefcea4_like ON public.session_summary_children USING btree (parent_id text_pattern_ops);

-- INDEX session_summary_memories_memory_summary_id_575e2530
CREATE INDEX session_summary_memories_memory_summary_id_575e2530 ON public.session_summary_memories USING btree (memory_summary_id);

-- INDEX session_summary_memories_memory_summary_id_575e2530_like
CREATE INDEX session_summary_memories_memory_summary_id_575e2530_like ON public.session_summary_memories USING btree (memory_summary_id text_pattern_ops);

-- INDEX session_summary_memories_message_id_09b960c7
CREATE INDEX session_summary_memories_message_id_09b960c7 ON public.session_summary_memories USING btree (message_id);

-- INDEX session_summary_memories_name_a_message_once
CREATE UNIQUE INDEX session_summary_memories_name_a_message_once ON public.session_summary_memories USING btree (summary_id, message_id) WHERE (message_id IS NOT NULL);

-- INDEX session_summary_memories_name_a_summary_once
CREATE UNIQUE INDEX session_summary_memories_name_a_summary_once ON public.session_summary_memories USING btree (summary_id, memory_summary_id) WHERE (memory_summary_id IS NOT NULL);

-- INDEX session_summary_memories_summary_id_0dddc9d6
CREATE INDEX session_summary_memories_summary_id_0dddc9d6 ON public.session_summary_memories USING btree (summary_id);

-- INDEX session_summary_memories_summary_id_0dddc9d6_like
CREATE INDEX session_summary_memories_summary_id_0dddc9d6_like ON public.session_summary_memories USING btree (summary_id text_pattern_ops);

-- INDEX summaries_conv_created_idx
CREATE INDEX summaries_conv_created_idx ON public.summaries USING btree (conversation_id, created_at);

-- INDEX summaries_conv_last_idx
CREATE INDEX summaries_conv_last_idx ON public.summaries USING btree (conversation_id, last_seq);

-- INDEX summaries_conv_range_idx
CREATE INDEX summaries_conv_range_idx ON public.summaries USING btree (conversation_id, first_seq, last_seq);

-- INDEX summaries_degraded_idx
CREATE INDEX summaries_degraded_idx ON public.summaries USING btree (conversation_id) WHERE is_degraded;

-- INDEX summaries_tsv_gin_idx
CREATE INDEX summaries_tsv_gin_idx ON public.summaries USING gin (content_tsv);

-- INDEX summary_messages_message_idx
CREATE INDEX summary_messages_message_idx ON public.summary_messages USING btree (message_id);

-- INDEX summary_parents_parent_idx
CREATE INDEX summary_parents_parent_idx ON public.summary_parents USING btree (parent_summary_id);

-- INDEX uploads_conversation_idx
CREATE INDEX uploads_conversation_idx ON public.uploads USING btree (conversation_id);

-- INDEX uploads_touched_idx
CREATE INDEX uploads_touched_idx ON public.uploads USING btree (touched_at);

-- SEQUENCE api_keys_api_key_id_seq
ALTER TABLE public.api_keys ALTER COLUMN api_key_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.api_keys_api_key_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE audit_log_audit_id_seq
ALTER TABLE public.audit_log ALTER COLUMN audit_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_log_audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE auth_group_id_seq
ALTER TABLE public.auth_group ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_group_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE auth_group_permissions_id_seq
ALTER TABLE public.auth_group_permissions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_group_permissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE auth_permission_id_seq
ALTER TABLE public.auth_permission ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_permission_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE auth_user_groups_id_seq
ALTER TABLE public.auth_user_groups ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_user_groups_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE auth_user_id_seq
ALTER TABLE public.auth_user ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_user_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE auth_user_user_permissions_id_seq
ALTER TABLE public.auth_user_user_permissions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_user_user_permissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE axes_accessattempt_id_seq
ALTER TABLE public.axes_accessattempt ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.axes_accessattempt_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE axes_accessfailurelog_id_seq
ALTER TABLE public.axes_accessfailurelog ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.axes_accessfailurelog_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE axes_accesslog_id_seq
ALTER TABLE public.axes_accesslog ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.axes_accesslog_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE cold_blocks_cold_block_id_seq
ALTER TABLE public.cold_blocks ALTER COLUMN cold_block_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.cold_blocks_cold_block_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE compaction_boundaries_boundary_id_seq
ALTER TABLE public.compaction_boundaries ALTER COLUMN boundary_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.compaction_boundaries_boundary_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE compaction_jobs_job_id_seq
ALTER TABLE public.compaction_jobs ALTER COLUMN job_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.compaction_jobs_job_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE conversations_conversation_id_seq
ALTER TABLE public.conversations ALTER COLUMN conversation_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.conversations_conversation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE django_admin_log_id_seq
ALTER TABLE public.django_admin_log ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_admin_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE django_content_type_id_seq
ALTER TABLE public.django_content_type ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_content_type_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE django_migrations_id_seq
ALTER TABLE public.django_migrations ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE embedded_conversations_job_id_seq
ALTER TABLE public.embedded_conversations ALTER COLUMN job_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.embedded_conversations_job_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE embedders_embedder_id_seq
ALTER TABLE public.embedders ALTER COLUMN embedder_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.embedders_embedder_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE file_references_reference_id_seq
ALTER TABLE public.file_references ALTER COLUMN reference_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.file_references_reference_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE gateway_exchanges_exchange_id_seq
ALTER TABLE public.gateway_exchanges ALTER COLUMN exchange_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.gateway_exchanges_exchange_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE head_moves_head_move_id_seq
ALTER TABLE public.head_moves ALTER COLUMN head_move_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.head_moves_head_move_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE history_jobs_job_id_seq
ALTER TABLE public.history_jobs ALTER COLUMN job_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.history_jobs_job_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE huey_schedule_id_seq
CREATE SEQUENCE public.huey_schedule_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

-- SEQUENCE huey_task_id_seq
CREATE SEQUENCE public.huey_task_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

-- SEQUENCE integrity_findings_finding_id_seq
ALTER TABLE public.integrity_findings ALTER COLUMN finding_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.integrity_findings_finding_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE integrity_scans_scan_id_seq
ALTER TABLE public.integrity_scans ALTER COLUMN scan_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.integrity_scans_scan_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE journal_entries_journal_entry_id_seq
ALTER TABLE public.journal_entries ALTER COLUMN journal_entry_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.journal_entries_journal_entry_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE map_events_event_id_seq
ALTER TABLE public.map_events ALTER COLUMN event_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.map_events_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE map_items_item_id_seq
ALTER TABLE public.map_items ALTER COLUMN item_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.map_items_item_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE memberships_membership_id_seq
ALTER TABLE public.memberships ALTER COLUMN membership_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.memberships_membership_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE messages_message_id_seq
ALTER TABLE public.messages ALTER COLUMN message_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.messages_message_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE projects_project_id_seq
ALTER TABLE public.projects ALTER COLUMN project_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.projects_project_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE quarantines_quarantine_id_seq
ALTER TABLE public.quarantines ALTER COLUMN quarantine_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.quarantines_quarantine_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE refused_passages_refusal_id_seq
ALTER TABLE public.refused_passages ALTER COLUMN refusal_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.refused_passages_refusal_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE repair_steps_step_id_seq
ALTER TABLE public.repair_steps ALTER COLUMN step_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.repair_steps_step_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE upload_chunks_upload_chunk_id_seq
ALTER TABLE public.upload_chunks ALTER COLUMN upload_chunk_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.upload_chunks_upload_chunk_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE workspaces_workspace_id_seq
ALTER TABLE public.workspaces ALTER COLUMN workspace_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.workspaces_workspace_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- SEQUENCE OWNED BY huey_schedule_id_seq
ALTER SEQUENCE public.huey_schedule_id_seq OWNED BY public.huey_schedule.id;

-- SEQUENCE OWNED BY huey_task_id_seq
ALTER SEQUENCE public.huey_task_id_seq OWNED BY public.huey_task.id;

-- TABLE api_keys
CREATE TABLE public.api_keys (
    CONSTRAINT api_keys_have_scopes_that_there_are CHECK (((scopes <@ ARRAY['read'::text, 'write'::text, 'admin'::text]) AND (
CASE
    WHEN (scopes IS NULL) THEN NULL::integer
    ELSE COALESCE(array_length(scopes, 1), 0)
END >= 1))),
    api_key_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    expires_at timestamp with time zone,
    key_hash bytea NOT NULL,
    last_used_at timestamp with time zone,
    name text NOT NULL,
    prefix text NOT NULL,
    revoked_at timestamp with time zone,
    row_seal bytea,
    scopes text[] NOT NULL,
    workspace_id bigint NOT NULL
);

-- TABLE assembly_receipts
CREATE TABLE public.assembly_receipts (
    conversation_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    figures jsonb NOT NULL,
    lines jsonb NOT NULL,
    receipt_id text NOT NULL,
    row_seal bytea
);

-- TABLE audit_chain
CREATE TABLE public.audit_chain (
    CONSTRAINT audit_chain_counts_from_one CHECK ((number >= 1)),
    audit_id bigint NOT NULL,
    chain_hash bytea NOT NULL,
    number bigint NOT NULL
);

-- TABLE audit_head
CREATE TABLE public.audit_head (
    CONSTRAINT audit_head_is_one_row CHECK ((head_id = 1)),
    chain_hash bytea DEFAULT '\x'::bytea NOT NULL,
    head_id smallint DEFAULT 1 NOT NULL,
    number bigint DEFAULT 0 NOT NULL
);

-- TABLE audit_log
CREATE TABLE public.audit_log (
    CONSTRAINT audit_log_names_who_and_what CHECK (((actor <> ''::text) AND (act <> ''::text))),
    act text NOT NULL,
    actor text NOT NULL,
    audit_id bigint NOT NULL,
    conversation_id bigint,
    detail jsonb DEFAULT '{}'::jsonb NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    target text DEFAULT ''::text NOT NULL,
    transaction_id xid8 DEFAULT pg_current_xact_id() NOT NULL,
    workspace_id bigint
);

-- TABLE auth_group
CREATE TABLE public.auth_group (
    id integer NOT NULL,
    name character varying(150) NOT NULL
);

-- TABLE auth_group_permissions
CREATE TABLE public.auth_group_permissions (
    group_id integer NOT NULL,
    id bigint NOT NULL,
    permission_id integer NOT NULL
);

-- TABLE auth_permission
CREATE TABLE public.auth_permission (
    codename character varying(100) NOT NULL,
    content_type_id integer NOT NULL,
    id integer NOT NULL,
    name character varying(255) NOT NULL
);

-- TABLE auth_user
CREATE TABLE public.auth_user (
    date_joined timestamp with time zone NOT NULL,
    email character varying(254) NOT NULL,
    first_name character varying(150) NOT NULL,
    id integer NOT NULL,
    is_active boolean NOT NULL,
    is_staff boolean NOT NULL,
    is_superuser boolean NOT NULL,
    last_login timestamp with time zone,
    last_name character varying(150) NOT NULL,
    password character varying(128) NOT NULL,
    username character varying(150) NOT NULL
);

-- TABLE auth_user_groups
CREATE TABLE public.auth_user_groups (
    group_id integer NOT NULL,
    id bigint NOT NULL,
    user_id integer NOT NULL
);

-- TABLE auth_user_user_permissions
CREATE TABLE public.auth_user_user_permissions (
    id bigint NOT NULL,
    permission_id integer NOT NULL,
    user_id integer NOT NULL
);

-- TABLE axes_accessattempt
CREATE TABLE public.axes_accessattempt (
    CONSTRAINT axes_accessattempt_failures_since_start_check CHECK ((failures_since_start >= 0)),
    attempt_time timestamp with time zone NOT NULL,
    failures_since_start integer NOT NULL,
    get_data text NOT NULL,
    http_accept character varying(1025) NOT NULL,
    id integer NOT NULL,
    ip_address inet,
    path_info character varying(255) NOT NULL,
    post_data text NOT NULL,
    user_agent character varying(255) NOT NULL,
    username character varying(255)
);

-- TABLE axes_accessattemptexpiration
CREATE TABLE public.axes_accessattemptexpiration (
    access_attempt_id integer NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

-- TABLE axes_accessfailurelog
CREATE TABLE public.axes_accessfailurelog (
    attempt_time timestamp with time zone NOT NULL,
    http_accept character varying(1025) NOT NULL,
    id integer NOT NULL,
    ip_address inet,
    locked_out boolean NOT NULL,
    path_info character varying(255) NOT NULL,
    user_agent character varying(255) NOT NULL,
    username character varying(255)
);

-- TABLE axes_accesslog
CREATE TABLE public.axes_accesslog (
    attempt_time timestamp with time zone NOT NULL,
    http_accept character varying(1025) NOT NULL,
    id integer NOT NULL,
    ip_address inet,
    logout_time timestamp with time zone,
    path_info character varying(255) NOT NULL,
    session_hash character varying(64) NOT NULL,
    user_agent character varying(255) NOT NULL,
    username character varying(255)
);

-- TABLE cold_blocks
CREATE TABLE public.cold_blocks (
    CONSTRAINT cold_blocks_cover_a_range CHECK (((1 <= first_seq) AND (first_seq <= last_seq) AND (message_count >= 1))),
    bytes_before bigint NOT NULL,
    cold_block_id bigint NOT NULL,
    conversation_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    message_count integer NOT NULL,
    packed bytea NOT NULL,
    packed_hash bytea NOT NULL,
    row_seal bytea
);
ALTER TABLE ONLY public.cold_blocks ALTER COLUMN packed SET STORAGE EXTERNAL;

-- TABLE cold_progress
CREATE TABLE public.cold_progress (
    conversation_id bigint NOT NULL,
    moved_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    through_seq bigint NOT NULL
);

-- TABLE compaction_boundaries
CREATE TABLE public.compaction_boundaries (
    boundary_id bigint NOT NULL,
    conversation_id bigint NOT NULL,
    host_reference text NOT NULL,
    last_seq bigint NOT NULL,
    metadata jsonb NOT NULL,
    recorded_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    row_seal bytea
);

-- TABLE compaction_jobs
CREATE TABLE public.compaction_jobs (
    attempts integer NOT NULL,
    conversation_id bigint NOT NULL,
    fence integer NOT NULL,
    finished_at timestamp with time zone,
    job_id bigint NOT NULL,
    last_error text NOT NULL,
    leased_until timestamp with time zone,
    reason text NOT NULL,
    request_id text DEFAULT ''::text NOT NULL,
    requested_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    run_after timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    state text NOT NULL
);

-- TABLE compaction_plans
CREATE TABLE public.compaction_plans (
    CONSTRAINT compaction_plans_add_up CHECK (((tokens_expected >= 0) AND (tokens_expected <= tokens_before))),
    context_hash text NOT NULL,
    conversation_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    executed_at timestamp with time zone,
    figures jsonb NOT NULL,
    last_seq bigint NOT NULL,
    plan_id text NOT NULL,
    policy jsonb NOT NULL,
    refusal text DEFAULT ''::text NOT NULL,
    requested_at timestamp with time zone,
    row_seal bytea,
    run_id text,
    steps jsonb NOT NULL,
    summarizer text NOT NULL,
    tokens_before bigint NOT NULL,
    tokens_expected bigint NOT NULL
);

-- TABLE compaction_runs
CREATE TABLE public.compaction_runs (
    CONSTRAINT compaction_runs_add_up CHECK (((tokens_after >= 0) AND (tokens_before >= 0) AND ((tokens_after <= tokens_before) OR (redone_summaries > 0)))),
    condensed_summaries integer NOT NULL,
    conversation_id bigint NOT NULL,
    details jsonb DEFAULT '"{}"'::jsonb NOT NULL,
    finished_at timestamp with time zone,
    job_id bigint,
    leaf_summaries integer NOT NULL,
    outcome text NOT NULL,
    reason text NOT NULL,
    redone_summaries integer DEFAULT 0 NOT NULL,
    row_seal bytea,
    run_id text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    tokens_after bigint NOT NULL,
    tokens_before bigint NOT NULL
);

-- TABLE context_items
CREATE TABLE public.context_items (
    CONSTRAINT context_items_check CHECK ((((item_type = 'message'::public.context_item_type) AND (message_id IS NOT NULL) AND (summary_id IS NULL)) OR ((item_type = 'summary'::public.context_item_type) AND (summary_id IS NOT NULL) AND (message_id IS NULL)))),
    conversation_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    item_type public.context_item_type NOT NULL,
    message_id bigint,
    ordinal bigint NOT NULL,
    summary_id text,
    token_count integer NOT NULL
);

-- TABLE conversation_checks
CREATE TABLE public.conversation_checks (
    checked_at timestamp with time zone NOT NULL,
    conversation_id bigint NOT NULL,
    is_clean boolean NOT NULL,
    row_version text NOT NULL
);

-- TABLE conversations
CREATE TABLE public.conversations (
    CONSTRAINT conversations_say_what_their_parent_is CHECK ((((parent_id IS NULL) AND (parent_link IS NULL)) OR ((parent_link = ANY (ARRAY['subagent'::text, 'fork'::text])) AND (NOT ((parent_id = conversation_id) AND (parent_id IS NOT NULL)))))),
    active_messages bigint DEFAULT 0 NOT NULL,
    active_tokens bigint DEFAULT 0 NOT NULL,
    chain_head bytea DEFAULT '\x'::bytea NOT NULL,
    cold_messages bigint DEFAULT 0 NOT NULL,
    conversation_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    inactive int8multirange DEFAULT '{}'::int8multirange NOT NULL,
    journal_size bigint DEFAULT 0 NOT NULL,
    last_used_on date DEFAULT ((now() AT TIME ZONE 'UTC'::text))::date NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    moves integer DEFAULT 0 NOT NULL,
    next_seq bigint DEFAULT 1 NOT NULL,
    overrides jsonb DEFAULT '{}'::jsonb NOT NULL,
    parent_id bigint,
    parent_link text,
    project_id bigint,
    quarantined integer DEFAULT 0 NOT NULL,
    rest_until_seq bigint DEFAULT 0 NOT NULL,
    row_seal bytea,
    session_id text NOT NULL,
    title text,
    total_tokens bigint DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    workspace_id bigint NOT NULL
)
WITH (fillfactor='70');

-- TABLE django_admin_log
CREATE TABLE public.django_admin_log (
    CONSTRAINT django_admin_log_action_flag_check CHECK ((action_flag >= 0)),
    action_flag smallint NOT NULL,
    action_time timestamp with time zone NOT NULL,
    change_message text NOT NULL,
    content_type_id integer,
    id integer NOT NULL,
    object_id text,
    object_repr character varying(200) NOT NULL,
    user_id integer NOT NULL
);

-- TABLE django_content_type
CREATE TABLE public.django_content_type (
    app_label character varying(100) NOT NULL,
    id integer NOT NULL,
    model character varying(100) NOT NULL
);

-- TABLE django_migrations
CREATE TABLE public.django_migrations (
    app character varying(255) NOT NULL,
    applied timestamp with time zone NOT NULL,
    id bigint NOT NULL,
    name character varying(255) NOT NULL
);

-- TABLE django_session
CREATE TABLE public.django_session (
    expire_date timestamp with time zone NOT NULL,
    session_data text NOT NULL,
    session_key character varying(40) NOT NULL
);

-- TABLE embedded_conversations
CREATE TABLE public.embedded_conversations (
    attempts integer DEFAULT 0 NOT NULL,
    conversation_id bigint NOT NULL,
    embedder_id bigint NOT NULL,
    fence integer DEFAULT 0 NOT NULL,
    finished_at timestamp with time zone,
    job_id bigint NOT NULL,
    last_error text DEFAULT ''::text NOT NULL,
    leased_until timestamp with time zone,
    passages bigint DEFAULT 0 NOT NULL,
    passages_refused bigint DEFAULT 0 NOT NULL,
    run_after timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    state text DEFAULT 'queued'::text NOT NULL,
    upto_seq bigint DEFAULT 0 NOT NULL
);

-- TABLE embedders
CREATE TABLE public.embedders (
    CONSTRAINT embedders_have_a_dimension CHECK ((dimension >= 1)),
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    dimension integer NOT NULL,
    embedder_id bigint NOT NULL,
    model text NOT NULL,
    question_model text NOT NULL,
    state text NOT NULL,
    switched_at timestamp with time zone,
    url text NOT NULL
);

-- TABLE erasures
CREATE TABLE public.erasures (
    act_id bigint,
    bytes_left text[] DEFAULT '{}'::text[] NOT NULL,
    confirmation text NOT NULL,
    conversation_id bigint NOT NULL,
    erasure_id text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    file_ids text[] NOT NULL,
    fingerprint text NOT NULL,
    is_whole boolean DEFAULT false NOT NULL,
    message_ids bigint[] NOT NULL,
    requested_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    requested_by text NOT NULL,
    row_seal bytea
);

-- TABLE file_references
CREATE TABLE public.file_references (
    CONSTRAINT file_references_stand_somewhere CHECK ((((start_at IS NULL) AND (length IS NULL)) OR ((start_at IS NOT NULL) AND (length IS NOT NULL) AND (start_at >= 0) AND (length > 0)))),
    field text NOT NULL,
    file_id text NOT NULL,
    length integer,
    message_id bigint NOT NULL,
    part_ordinal integer,
    reference_id bigint NOT NULL,
    start_at integer
);

-- TABLE gateway_exchanges
CREATE TABLE public.gateway_exchanges (
    answer_chain bytea,
    answer_seq bigint,
    conversation_id bigint NOT NULL,
    error text NOT NULL,
    exchange_id bigint NOT NULL,
    exchange_key uuid NOT NULL,
    is_complete boolean NOT NULL,
    milliseconds integer,
    model text NOT NULL,
    received_at timestamp with time zone NOT NULL,
    request_chain bytea NOT NULL,
    request_seq bigint NOT NULL,
    response_id text,
    side text NOT NULL,
    status smallint,
    surface text NOT NULL,
    tokens_in bigint,
    tokens_out bigint,
    workspace_id bigint NOT NULL
);

-- TABLE grants
CREATE TABLE public.grants (
    CONSTRAINT grants_are_never_exceeded CHECK (((tokens_used >= 0) AND (tokens_used <= token_cap))),
    CONSTRAINT grants_go_three_levels_down_at_most CHECK (((depth >= 1) AND (depth <= 3))),
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    depth integer NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    grant_id text NOT NULL,
    item_ids text[] NOT NULL,
    question text NOT NULL,
    reads integer DEFAULT 0 NOT NULL,
    refusals jsonb DEFAULT '"{}"'::jsonb NOT NULL,
    revoked_at timestamp with time zone,
    row_seal bytea,
    token_cap integer NOT NULL,
    tokens_used integer DEFAULT 0 NOT NULL,
    workspace_id bigint NOT NULL
);

-- TABLE head_moves
CREATE TABLE public.head_moves (
    CONSTRAINT head_moves_lead_to_a_message CHECK (((head_seq >= 0) AND (head_seq < at_seq) AND (number >= 1))),
    at_seq bigint NOT NULL,
    conversation_id bigint NOT NULL,
    head_move_id bigint NOT NULL,
    head_seq bigint NOT NULL,
    number integer NOT NULL,
    reason text NOT NULL,
    recorded_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    row_seal bytea
);

-- TABLE history_jobs
CREATE TABLE public.history_jobs (
    CONSTRAINT history_jobs_are_about_one_thing CHECK ((((conversation_id IS NULL) OR (project_id IS NULL)) AND (1 = (
CASE
    WHEN (conversation_id IS NULL) THEN 1
    ELSE 0
END +
CASE
    WHEN (project_id IS NULL) THEN 1
    ELSE 0
END)))),
    attempts integer NOT NULL,
    conversation_id bigint,
    fence integer NOT NULL,
    finished_at timestamp with time zone,
    job_id bigint NOT NULL,
    last_error text NOT NULL,
    leased_until timestamp with time zone,
    project_id bigint,
    reason text NOT NULL,
    requested_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    run_after timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    state text NOT NULL,
    workspace_id bigint NOT NULL
);

-- TABLE huey_counter
CREATE TABLE public.huey_counter (
    key text NOT NULL,
    queue text NOT NULL,
    value bigint DEFAULT 0 NOT NULL
);

-- TABLE huey_kv
CREATE TABLE public.huey_kv (
    key text NOT NULL,
    queue text NOT NULL,
    value bytea NOT NULL
);

-- TABLE huey_schedule
CREATE TABLE public.huey_schedule (
    "timestamp" double precision NOT NULL,
    data bytea NOT NULL,
    id bigint NOT NULL,
    queue text NOT NULL
);

-- TABLE huey_task
CREATE TABLE public.huey_task (
    data bytea NOT NULL,
    id bigint NOT NULL,
    priority double precision DEFAULT 0.0 NOT NULL,
    queue text NOT NULL
);

-- TABLE integrity_findings
CREATE TABLE public.integrity_findings (
    code text NOT NULL,
    conversation_id bigint,
    detail text NOT NULL,
    finding_id bigint NOT NULL,
    report_id text NOT NULL,
    row_seal bytea,
    severity text NOT NULL,
    target text NOT NULL
);

-- TABLE integrity_reports
CREATE TABLE public.integrity_reports (
    conversation_id bigint,
    conversations_checked bigint DEFAULT 0 NOT NULL,
    costs jsonb DEFAULT '"{}"'::jsonb NOT NULL,
    counts jsonb DEFAULT '"{}"'::jsonb NOT NULL,
    finished_at timestamp with time zone,
    is_clean boolean DEFAULT true NOT NULL,
    messages_checked bigint DEFAULT 0 NOT NULL,
    mode text NOT NULL,
    report_id text NOT NULL,
    row_seal bytea,
    started_at timestamp with time zone NOT NULL,
    unchecked jsonb DEFAULT '"[]"'::jsonb NOT NULL,
    workspace_id bigint
);

-- TABLE integrity_scans
CREATE TABLE public.integrity_scans (
    "position" bigint DEFAULT 0 NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    conversation_id bigint,
    fence integer DEFAULT 0 NOT NULL,
    finished_at timestamp with time zone,
    last_error text DEFAULT ''::text NOT NULL,
    leased_until timestamp with time zone,
    mode text NOT NULL,
    plan_id text,
    report_id text,
    requested_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    run_after timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    scan_id bigint NOT NULL,
    state text DEFAULT 'queued'::text NOT NULL,
    with_plan boolean DEFAULT false NOT NULL,
    workspace_id bigint
);

-- TABLE journal_entries
CREATE TABLE public.journal_entries (
    "position" bigint NOT NULL,
    CONSTRAINT journal_entries_are_numbered_from_one CHECK (("position" >= 1)),
    CONSTRAINT journal_entries_hold_something CHECK (((entry IS NOT NULL) OR (erased_by_id IS NOT NULL))),
    conversation_id bigint NOT NULL,
    entry text,
    entry_hash bytea NOT NULL,
    erased_by_id bigint,
    journal_entry_id bigint NOT NULL,
    recorded_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    row_seal bytea,
    subpath text NOT NULL,
    uuid text
);

-- TABLE large_files
CREATE TABLE public.large_files (
    byte_size bigint,
    content_hash bytea,
    conversation_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    erased_by_id bigint,
    exploration_summary text,
    file_id text NOT NULL,
    file_name text,
    mime_type text,
    row_seal bytea,
    storage_uri text NOT NULL
);

-- TABLE lcm_cache
CREATE TABLE public.lcm_cache (
    cache_key character varying(255) NOT NULL,
    expires timestamp with time zone NOT NULL,
    value text NOT NULL
);

-- TABLE map_events
CREATE TABLE public.map_events (
    "position" integer,
    CONSTRAINT map_events_name_who_on_one_line CHECK (((NOT (actor = ''::text)) AND (NOT (actor ~~ '%
%'::text)))),
    actor text NOT NULL,
    at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    details json NOT NULL,
    event text NOT NULL,
    event_id bigint NOT NULL,
    hash bytea DEFAULT '\x'::bytea NOT NULL,
    input_hash bytea DEFAULT '\x'::bytea NOT NULL,
    output_hash bytea DEFAULT '\x'::bytea NOT NULL,
    previous_hash bytea DEFAULT '\x'::bytea NOT NULL,
    row_seal bytea,
    run_id text NOT NULL,
    seq integer DEFAULT 0 NOT NULL,
    workspace_id bigint NOT NULL
);

-- TABLE map_items
CREATE TABLE public.map_items (
    "position" integer NOT NULL,
    CONSTRAINT map_items_count_from_one CHECK (("position" >= 1)),
    CONSTRAINT map_items_fail_for_a_reason CHECK (((NOT (state = 'failed'::text)) OR (error_kind IS NOT NULL))),
    CONSTRAINT map_items_have_an_output_when_done CHECK ((((output IS NOT NULL) AND (output_hash IS NOT NULL) AND (state = 'done'::text)) OR ((NOT (state = 'done'::text)) AND (output IS NULL) AND (output_hash IS NULL)))),
    attempts integer DEFAULT 0 NOT NULL,
    error_kind text,
    faults integer DEFAULT 0 NOT NULL,
    fence integer DEFAULT 0 NOT NULL,
    finished_at timestamp with time zone,
    input text NOT NULL,
    input_hash bytea NOT NULL,
    item_id bigint NOT NULL,
    last_error text DEFAULT ''::text NOT NULL,
    leased_until timestamp with time zone,
    output text,
    output_hash bytea,
    refused_answers integer DEFAULT 0 NOT NULL,
    row_seal bytea,
    run_after timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    run_id text NOT NULL,
    started_at timestamp with time zone,
    state text DEFAULT 'queued'::text NOT NULL,
    tokens_in bigint DEFAULT 0 NOT NULL,
    tokens_out bigint DEFAULT 0 NOT NULL,
    validation_errors text DEFAULT ''::text NOT NULL,
    worker text DEFAULT ''::text NOT NULL
);

-- TABLE map_runs
CREATE TABLE public.map_runs (
    CONSTRAINT map_runs_delegate_only_with_retention CHECK (((NOT (kind = 'agentic'::text)) OR (retain ~ '[^ \t\r\n]'::text))),
    CONSTRAINT map_runs_have_possible_figures CHECK (((concurrency >= 1) AND (max_attempts >= 1) AND (timeout_s >= 1) AND (total >= 1) AND (spent_in >= 0) AND (spent_out >= 0))),
    CONSTRAINT map_runs_pause_for_a_reason CHECK ((((NOT (state = 'paused'::text)) AND (pause_reason = ''::text)) OR ((state = 'paused'::text) AND (NOT (pause_reason = ''::text))))),
    CONSTRAINT map_runs_prompts_hold_the_item CHECK ((prompt ~~ '%{{item}}%'::text)),
    CONSTRAINT map_runs_reduce_the_scope_of_a_grant CHECK (((NOT (kind = 'agentic'::text)) OR (grant_id IS NULL) OR ((delegated_scope ~ '[^ \t\r\n]'::text) AND (kept_work ~ '[^ \t\r\n]'::text)))),
    budget_tokens bigint,
    concurrency integer NOT NULL,
    conversation_id bigint,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    delegated_scope text DEFAULT ''::text NOT NULL,
    failures_file_id text,
    finished_at timestamp with time zone,
    grant_id text,
    idempotency_key text,
    input_file_id text NOT NULL,
    input_hash bytea NOT NULL,
    kept_work text DEFAULT ''::text NOT NULL,
    kind text NOT NULL,
    last_claim_at timestamp with time zone,
    max_attempts integer NOT NULL,
    model text DEFAULT ''::text NOT NULL,
    output_file_id text,
    output_schema text NOT NULL,
    parent_run_id text,
    pause_reason text DEFAULT ''::text NOT NULL,
    prompt text NOT NULL,
    prompt_hash bytea NOT NULL,
    read_only boolean DEFAULT true NOT NULL,
    retain text DEFAULT ''::text NOT NULL,
    row_seal bytea,
    run_id text NOT NULL,
    schema_hash bytea NOT NULL,
    spent_in bigint DEFAULT 0 NOT NULL,
    spent_out bigint DEFAULT 0 NOT NULL,
    started_at timestamp with time zone,
    state text NOT NULL,
    temperature double precision,
    timeout_s integer NOT NULL,
    total integer NOT NULL,
    workspace_id bigint NOT NULL
);

-- TABLE memberships
CREATE TABLE public.memberships (
    CONSTRAINT memberships_have_roles_that_there_are CHECK ((role = ANY (ARRAY['reader'::text, 'operator'::text, 'admin'::text]))),
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    membership_id bigint NOT NULL,
    role text NOT NULL,
    row_seal bytea,
    user_id integer NOT NULL,
    workspace_id bigint NOT NULL
);

-- TABLE message_parts
CREATE TABLE public.message_parts (
    compaction_auto boolean,
    exact json,
    file_mime text,
    file_name text,
    file_url text,
    is_ignored boolean,
    is_synthetic boolean,
    message_id bigint NOT NULL,
    metadata jsonb,
    ordinal integer NOT NULL,
    part_hash bytea NOT NULL,
    part_id text NOT NULL,
    part_type public.message_part_type NOT NULL,
    patch_files text[],
    patch_hash text,
    session_id text NOT NULL,
    snapshot_hash text,
    step_cost numeric,
    step_reason text,
    step_tokens_in integer,
    step_tokens_out integer,
    subtask_agent text,
    subtask_desc text,
    subtask_prompt text,
    text_content text,
    tool_call_id text,
    tool_error text,
    tool_input jsonb,
    tool_name text,
    tool_output text,
    tool_status text,
    tool_title text
);

-- TABLE messages
CREATE TABLE public.messages (
    CONSTRAINT messages_are_numbered_from_one CHECK ((seq >= 1)),
    CONSTRAINT messages_cost_no_less_than_nothing CHECK ((token_count >= 0)),
    author text,
    chain_hash bytea NOT NULL,
    chained_parts integer DEFAULT 0 NOT NULL,
    cold_block_id bigint,
    content text NOT NULL,
    content_hash bytea NOT NULL,
    content_tsv tsvector GENERATED ALWAYS AS (public.lcm_tsv_at(content, conversation_id, seq)) STORED,
    conversation_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    entry_hash bytea NOT NULL,
    erased_by_id bigint,
    exact json,
    idempotency_key text,
    message_id bigint NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    metadata_hash bytea,
    record_hash bytea,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    role public.message_role NOT NULL,
    seq bigint NOT NULL,
    token_count integer NOT NULL,
    token_counter text NOT NULL
)
WITH (toast_tuple_target='8160');
ALTER TABLE ONLY public.messages ALTER COLUMN content_tsv SET STATISTICS 300;

-- TABLE model_endpoints
CREATE TABLE public.model_endpoints (
    calls bigint DEFAULT 0 NOT NULL,
    consecutive_failures integer DEFAULT 0 NOT NULL,
    failures bigint DEFAULT 0 NOT NULL,
    last_failure text DEFAULT ''::text NOT NULL,
    last_failure_at timestamp with time zone,
    last_success_at timestamp with time zone,
    name text NOT NULL,
    open_until timestamp with time zone,
    probing_until timestamp with time zone,
    temperature_refused_by text DEFAULT ''::text NOT NULL,
    tokens_in bigint DEFAULT 0 NOT NULL,
    tokens_out bigint DEFAULT 0 NOT NULL,
    window_calls integer DEFAULT 0 NOT NULL,
    window_started_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    window_tokens bigint DEFAULT 0 NOT NULL
);

-- TABLE projects
CREATE TABLE public.projects (
    CONSTRAINT projects_have_a_name CHECK ((NOT (name = ''::text))),
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    name text NOT NULL,
    project_id bigint NOT NULL,
    row_seal bytea,
    workspace_id bigint NOT NULL
);

-- TABLE quarantines
CREATE TABLE public.quarantines (
    conversation_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    quarantine_id bigint NOT NULL,
    reason text NOT NULL,
    released_at timestamp with time zone,
    row_seal bytea,
    target text NOT NULL
);

-- TABLE refused_passages
CREATE TABLE public.refused_passages (
    embedder_id bigint NOT NULL,
    message_id bigint NOT NULL,
    passage integer NOT NULL,
    reason text NOT NULL,
    refusal_id bigint NOT NULL,
    refused_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL
);

-- TABLE repair_plans
CREATE TABLE public.repair_plans (
    applied_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    ledger_file_id text DEFAULT ''::text NOT NULL,
    outcome jsonb DEFAULT '"{}"'::jsonb NOT NULL,
    plan_id text NOT NULL,
    report_id text NOT NULL,
    row_seal bytea,
    state text DEFAULT 'proposed'::text NOT NULL,
    undone_at timestamp with time zone,
    unplanned jsonb DEFAULT '"[]"'::jsonb NOT NULL
);

-- TABLE repair_steps
CREATE TABLE public.repair_steps (
    CONSTRAINT repair_steps_are_applied_only_when_approved CHECK (((state = ANY (ARRAY['proposed'::text, 'refused'::text])) OR (NOT (approved_by = ''::text)))),
    after jsonb DEFAULT '"{}"'::jsonb NOT NULL,
    applied_at timestamp with time zone,
    approved_at timestamp with time zone,
    approved_by text DEFAULT ''::text NOT NULL,
    before jsonb DEFAULT '"{}"'::jsonb NOT NULL,
    codes jsonb DEFAULT '"[]"'::jsonb NOT NULL,
    conversation_id bigint,
    operation text NOT NULL,
    ordinal integer NOT NULL,
    plan_id text NOT NULL,
    reversible boolean NOT NULL,
    risk text NOT NULL,
    row_seal bytea,
    state text DEFAULT 'proposed'::text NOT NULL,
    step_id bigint NOT NULL,
    target text NOT NULL,
    undo jsonb,
    why text NOT NULL
);

-- TABLE session_summaries
CREATE TABLE public.session_summaries (
    CONSTRAINT session_summaries_add_up CHECK (((earliest_at <= latest_at) AND (token_count >= 0))),
    CONSTRAINT session_summaries_cover_a_conversation_or_a_project CHECK ((((conversation_id IS NOT NULL) AND (depth = 0) AND (first_seq >= 1) AND (first_seq IS NOT NULL) AND (last_seq >= first_seq) AND (last_seq IS NOT NULL)) OR ((conversation_id IS NULL) AND (depth > 0) AND (first_seq IS NULL) AND (last_seq IS NULL) AND (project_id IS NOT NULL)))),
    CONSTRAINT session_summaries_have_the_confidence_of_their_level CHECK ((((confidence = (0.7)::double precision) AND (level = 'normal'::text)) OR ((confidence = (0.5)::double precision) AND (level = 'aggressive'::text)) OR ((confidence = (0.3)::double precision) AND (level = 'deterministic'::text)))),
    CONSTRAINT session_summaries_have_the_depth_of_their_kind CHECK ((((depth = 0) AND (kind = 'session'::text)) OR ((depth = 1) AND (kind = 'arc'::text)) OR ((depth = 2) AND (kind = 'epoch'::text)))),
    CONSTRAINT session_summaries_supersede_others CHECK ((NOT ((supersedes_id = summary_id) AND (supersedes_id IS NOT NULL)))),
    confidence double precision NOT NULL,
    content text NOT NULL,
    content_tsv tsvector GENERATED ALWAYS AS (public.lcm_tsv(content)) STORED,
    conversation_id bigint,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    depth smallint NOT NULL,
    earliest_at timestamp with time zone NOT NULL,
    erased_by_id bigint,
    first_seq bigint,
    is_degraded boolean DEFAULT false NOT NULL,
    kind text NOT NULL,
    last_seq bigint,
    latest_at timestamp with time zone NOT NULL,
    level text NOT NULL,
    model text NOT NULL,
    project_id bigint,
    prompt_version text DEFAULT ''::text NOT NULL,
    quality jsonb NOT NULL,
    retention double precision,
    row_seal bytea,
    summary_hash bytea NOT NULL,
    summary_id text NOT NULL,
    supersedes_id text,
    token_count integer NOT NULL,
    token_counter text NOT NULL,
    workspace_id bigint NOT NULL
);

-- TABLE session_summary_children
CREATE TABLE public.session_summary_children (
    CONSTRAINT session_summary_children_are_others CHECK (((NOT (parent_id = child_id)) AND (ordinal >= 0))),
    child_id text NOT NULL,
    ordinal integer NOT NULL,
    parent_id text NOT NULL
);

-- TABLE session_summary_memories
CREATE TABLE public.session_summary_memories (
    CONSTRAINT session_summary_memories_count_from_zero CHECK ((ordinal >= 0)),
    CONSTRAINT session_summary_memories_point_at_one_thing CHECK ((((item_type = 'message'::public.context_item_type) AND (memory_summary_id IS NULL) AND (message_id IS NOT NULL)) OR ((item_type = 'summary'::public.context_item_type) AND (memory_summary_id IS NOT NULL) AND (message_id IS NULL)))),
    item_type public.context_item_type NOT NULL,
    memory_summary_id text,
    message_id bigint,
    ordinal integer NOT NULL,
    summary_id text NOT NULL
);

-- TABLE summaries
CREATE TABLE public.summaries (
    CONSTRAINT summaries_cover_a_range CHECK (((1 <= first_seq) AND (first_seq <= last_seq))),
    CONSTRAINT summaries_know_their_level CHECK ((level = ANY (ARRAY['normal'::text, 'aggressive'::text, 'deterministic'::text]))),
    CONSTRAINT summaries_of_messages_are_leaves CHECK (((kind = 'leaf'::public.summary_kind) = (depth = 0))),
    content text NOT NULL,
    content_tsv tsvector GENERATED ALWAYS AS (public.lcm_tsv_at(content, conversation_id, last_seq)) STORED,
    conversation_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    depth integer NOT NULL,
    descendant_count integer NOT NULL,
    duration_ms integer DEFAULT 0 NOT NULL,
    earliest_at timestamp with time zone NOT NULL,
    erased_by_id bigint,
    file_ids jsonb DEFAULT '[]'::jsonb NOT NULL,
    first_seq bigint NOT NULL,
    is_degraded boolean DEFAULT false NOT NULL,
    kind public.summary_kind NOT NULL,
    last_seq bigint NOT NULL,
    latest_at timestamp with time zone NOT NULL,
    level text NOT NULL,
    model text NOT NULL,
    prompt_hash text DEFAULT ''::text NOT NULL,
    quality jsonb DEFAULT '{}'::jsonb NOT NULL,
    retention double precision,
    row_seal bytea,
    run_id text NOT NULL,
    source_count integer NOT NULL,
    source_tokens bigint NOT NULL,
    summary_hash bytea NOT NULL,
    summary_id text NOT NULL,
    supersedes_id text,
    token_count integer NOT NULL,
    token_counter text NOT NULL,
    tokens_in integer DEFAULT 0 NOT NULL,
    tokens_out integer DEFAULT 0 NOT NULL
)
WITH (toast_tuple_target='8160');

-- TABLE summary_messages
CREATE TABLE public.summary_messages (
    message_id bigint NOT NULL,
    ordinal integer NOT NULL,
    summary_id text NOT NULL
);

-- TABLE summary_parents
CREATE TABLE public.summary_parents (
    CONSTRAINT summary_parents_are_others CHECK ((summary_id <> parent_summary_id)),
    ordinal integer NOT NULL,
    parent_summary_id text NOT NULL,
    summary_id text NOT NULL
);

-- TABLE upload_chunks
CREATE TABLE public.upload_chunks (
    CONSTRAINT upload_chunks_are_numbered_from_zero CHECK ((number >= 0)),
    content_hash bytea NOT NULL,
    number integer NOT NULL,
    upload_chunk_id bigint NOT NULL,
    upload_id text NOT NULL
);

-- TABLE uploads
CREATE TABLE public.uploads (
    CONSTRAINT uploads_have_a_size CHECK (((byte_size >= 0) AND (chunk_bytes > 0))),
    byte_size bigint NOT NULL,
    chunk_bytes integer NOT NULL,
    content_hash bytea,
    conversation_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    file_id text,
    file_name text,
    mime_type text,
    touched_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    upload_id text NOT NULL
);

-- TABLE workspaces
CREATE TABLE public.workspaces (
    CONSTRAINT workspaces_wait_at_least_a_day CHECK ((cold_after_days >= 1)),
    cold_after_days integer,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    name text NOT NULL,
    row_seal bytea,
    workspace_id bigint NOT NULL
);

-- TEXT SEARCH CONFIGURATION lcm_words
CREATE TEXT SEARCH CONFIGURATION public.lcm_words (
    PARSER = pg_catalog."default" );
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR asciiword WITH english_stem;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR word WITH public.lcm_russian_stem;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR numword WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR email WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR url WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR host WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR sfloat WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR version WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR hword_numpart WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR hword_part WITH public.lcm_russian_stem;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR hword_asciipart WITH english_stem;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR numhword WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR asciihword WITH english_stem;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR hword WITH public.lcm_russian_stem;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR url_path WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR file WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR "float" WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR "int" WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lcm_words
    ADD MAPPING FOR uint WITH simple;

-- TEXT SEARCH DICTIONARY lcm_russian_stem
CREATE TEXT SEARCH DICTIONARY public.lcm_russian_stem (
    TEMPLATE = pg_catalog.snowball,
    language = 'russian' );

-- TRIGGER api_keys api_keys_are_sealed
CREATE TRIGGER api_keys_are_sealed BEFORE INSERT OR UPDATE OF api_key_id, workspace_id, name, prefix, key_hash, scopes, created_at, expires_at, revoked_at, row_seal ON public.api_keys FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('api_key_id', 'workspace_id', 'name', 'prefix', 'key_hash', 'scopes', 'created_at', 'expires_at', 'revoked_at');

-- TRIGGER assembly_receipts assembly_receipts_are_sealed
CREATE TRIGGER assembly_receipts_are_sealed BEFORE INSERT OR UPDATE OF receipt_id, conversation_id, figures, lines, row_seal ON public.assembly_receipts FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('receipt_id', 'conversation_id', 'figures', 'lines');

-- TRIGGER audit_chain audit_chain_is_immutable
CREATE TRIGGER audit_chain_is_immutable BEFORE DELETE OR UPDATE ON public.audit_chain FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER audit_chain audit_chain_is_kept
CREATE TRIGGER audit_chain_is_kept BEFORE TRUNCATE ON public.audit_chain FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER audit_head audit_head_is_kept
CREATE TRIGGER audit_head_is_kept BEFORE TRUNCATE ON public.audit_head FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER audit_head audit_head_is_not_removed
CREATE TRIGGER audit_head_is_not_removed BEFORE DELETE ON public.audit_head FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER audit_head audit_head_only_advances
CREATE TRIGGER audit_head_only_advances BEFORE UPDATE ON public.audit_head FOR EACH ROW WHEN ((new.number <> (old.number + 1))) EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER audit_log audit_log_is_chained
CREATE CONSTRAINT TRIGGER audit_log_is_chained AFTER INSERT ON public.audit_log DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.lcm_chain_act();

-- TRIGGER audit_log audit_log_is_immutable
CREATE TRIGGER audit_log_is_immutable BEFORE DELETE OR UPDATE ON public.audit_log FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER audit_log audit_log_is_kept
CREATE TRIGGER audit_log_is_kept BEFORE TRUNCATE ON public.audit_log FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER cold_blocks cold_blocks_are_immutable
CREATE TRIGGER cold_blocks_are_immutable BEFORE UPDATE ON public.cold_blocks FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER cold_blocks cold_blocks_are_kept
CREATE TRIGGER cold_blocks_are_kept BEFORE TRUNCATE ON public.cold_blocks FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER cold_blocks cold_blocks_are_sealed
CREATE TRIGGER cold_blocks_are_sealed BEFORE INSERT OR UPDATE OF cold_block_id, conversation_id, first_seq, last_seq, message_count, packed_hash, bytes_before, created_at, row_seal ON public.cold_blocks FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('cold_block_id', 'conversation_id', 'first_seq', 'last_seq', 'message_count', 'packed_hash', 'bytes_before', 'created_at');

-- TRIGGER compaction_boundaries compaction_boundaries_are_sealed
CREATE TRIGGER compaction_boundaries_are_sealed BEFORE INSERT OR UPDATE OF boundary_id, conversation_id, host_reference, last_seq, recorded_at, metadata, row_seal ON public.compaction_boundaries FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('boundary_id', 'conversation_id', 'host_reference', 'last_seq', 'recorded_at', 'metadata');

-- TRIGGER compaction_plans compaction_plans_are_sealed
CREATE TRIGGER compaction_plans_are_sealed BEFORE INSERT OR UPDATE OF plan_id, conversation_id, created_at, last_seq, tokens_before, tokens_expected, context_hash, summarizer, policy, steps, figures, requested_at, refusal, executed_at, run_id, row_seal ON public.compaction_plans FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('plan_id', 'conversation_id', 'created_at', 'last_seq', 'tokens_before', 'tokens_expected', 'context_hash', 'summarizer', 'policy', 'steps', 'figures', 'requested_at', 'refusal', 'executed_at', 'run_id');

-- TRIGGER compaction_runs compaction_runs_are_sealed
CREATE TRIGGER compaction_runs_are_sealed BEFORE INSERT OR UPDATE OF run_id, conversation_id, job_id, reason, outcome, started_at, finished_at, tokens_before, tokens_after, leaf_summaries, condensed_summaries, redone_summaries, details, row_seal ON public.compaction_runs FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('run_id', 'conversation_id', 'job_id', 'reason', 'outcome', 'started_at', 'finished_at', 'tokens_before', 'tokens_after', 'leaf_summaries', 'condensed_summaries', 'redone_summaries', 'details');

-- TRIGGER conversations conversations_are_sealed
CREATE TRIGGER conversations_are_sealed BEFORE INSERT OR UPDATE OF conversation_id, workspace_id, session_id, title, created_at, metadata, overrides, project_id, parent_id, parent_link, row_seal ON public.conversations FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('conversation_id', 'workspace_id', 'session_id', 'title', 'created_at', 'metadata', 'overrides', 'project_id', 'parent_id', 'parent_link');

-- TRIGGER erasures erasures_are_sealed
CREATE TRIGGER erasures_are_sealed BEFORE INSERT OR UPDATE OF erasure_id, conversation_id, requested_by, requested_at, expires_at, message_ids, file_ids, is_whole, fingerprint, confirmation, act_id, bytes_left, row_seal ON public.erasures FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('erasure_id', 'conversation_id', 'requested_by', 'requested_at', 'expires_at', 'message_ids', 'file_ids', 'is_whole', 'fingerprint', 'confirmation', 'act_id', 'bytes_left');

-- TRIGGER file_references file_references_are_immutable
CREATE TRIGGER file_references_are_immutable BEFORE DELETE OR UPDATE ON public.file_references FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER file_references file_references_are_kept
CREATE TRIGGER file_references_are_kept BEFORE TRUNCATE ON public.file_references FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER grants grants_are_sealed
CREATE TRIGGER grants_are_sealed BEFORE INSERT OR UPDATE OF grant_id, workspace_id, question, item_ids, depth, token_cap, tokens_used, reads, created_at, expires_at, revoked_at, refusals, row_seal ON public.grants FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('grant_id', 'workspace_id', 'question', 'item_ids', 'depth', 'token_cap', 'tokens_used', 'reads', 'created_at', 'expires_at', 'revoked_at', 'refusals');

-- TRIGGER head_moves head_moves_are_immutable
CREATE TRIGGER head_moves_are_immutable BEFORE DELETE OR UPDATE ON public.head_moves FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER head_moves head_moves_are_kept
CREATE TRIGGER head_moves_are_kept BEFORE TRUNCATE ON public.head_moves FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER head_moves head_moves_are_sealed
CREATE TRIGGER head_moves_are_sealed BEFORE INSERT OR UPDATE OF conversation_id, number, at_seq, head_seq, recorded_at, reason, row_seal ON public.head_moves FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('conversation_id', 'number', 'at_seq', 'head_seq', 'recorded_at', 'reason');

-- TRIGGER head_moves head_moves_follow_each_other
CREATE TRIGGER head_moves_follow_each_other BEFORE INSERT ON public.head_moves FOR EACH ROW EXECUTE FUNCTION public.lcm_follow_move();

-- TRIGGER integrity_findings integrity_findings_are_sealed
CREATE TRIGGER integrity_findings_are_sealed BEFORE INSERT OR UPDATE OF finding_id, report_id, code, severity, conversation_id, target, detail, row_seal ON public.integrity_findings FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('finding_id', 'report_id', 'code', 'severity', 'conversation_id', 'target', 'detail');

-- TRIGGER integrity_reports integrity_reports_are_sealed
CREATE TRIGGER integrity_reports_are_sealed BEFORE INSERT OR UPDATE OF report_id, workspace_id, conversation_id, mode, started_at, finished_at, conversations_checked, messages_checked, counts, costs, is_clean, unchecked, row_seal ON public.integrity_reports FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('report_id', 'workspace_id', 'conversation_id', 'mode', 'started_at', 'finished_at', 'conversations_checked', 'messages_checked', 'counts', 'costs', 'is_clean', 'unchecked');

-- TRIGGER journal_entries journal_entries_are_immutable
CREATE TRIGGER journal_entries_are_immutable BEFORE UPDATE ON public.journal_entries FOR EACH ROW EXECUTE FUNCTION public.lcm_keep_journal_entry();

-- TRIGGER journal_entries journal_entries_are_kept
CREATE TRIGGER journal_entries_are_kept BEFORE TRUNCATE ON public.journal_entries FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER journal_entries journal_entries_are_not_removed
CREATE TRIGGER journal_entries_are_not_removed BEFORE DELETE ON public.journal_entries FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER journal_entries journal_entries_are_sealed
CREATE TRIGGER journal_entries_are_sealed BEFORE INSERT OR UPDATE OF conversation_id, subpath, "position", uuid, entry_hash, recorded_at, erased_by_id, row_seal ON public.journal_entries FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('conversation_id', 'subpath', 'position', 'uuid', 'entry_hash', 'recorded_at', 'erased_by_id');

-- TRIGGER large_files large_files_are_immutable
CREATE TRIGGER large_files_are_immutable BEFORE UPDATE ON public.large_files FOR EACH ROW EXECUTE FUNCTION public.lcm_keep_file();

-- TRIGGER large_files large_files_are_kept
CREATE TRIGGER large_files_are_kept BEFORE TRUNCATE ON public.large_files FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER large_files large_files_are_not_removed
CREATE TRIGGER large_files_are_not_removed BEFORE DELETE ON public.large_files FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER large_files large_files_are_sealed
CREATE TRIGGER large_files_are_sealed BEFORE INSERT OR UPDATE OF file_id, conversation_id, file_name, mime_type, byte_size, storage_uri, exploration_summary, created_at, content_hash, erased_by_id, row_seal ON public.large_files FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('file_id', 'conversation_id', 'file_name', 'mime_type', 'byte_size', 'storage_uri', 'exploration_summary', 'created_at', 'content_hash', 'erased_by_id');

-- TRIGGER map_events map_events_are_chained
CREATE TRIGGER map_events_are_chained BEFORE INSERT ON public.map_events FOR EACH ROW EXECUTE FUNCTION public.lcm_chain_map_event();

-- TRIGGER map_events map_events_are_immutable
CREATE TRIGGER map_events_are_immutable BEFORE DELETE OR UPDATE ON public.map_events FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER map_events map_events_are_kept
CREATE TRIGGER map_events_are_kept BEFORE TRUNCATE ON public.map_events FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER map_events map_events_are_sealed
CREATE TRIGGER map_events_are_sealed BEFORE INSERT OR UPDATE OF event_id, workspace_id, run_id, seq, row_seal ON public.map_events FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('event_id', 'workspace_id', 'run_id', 'seq');

-- TRIGGER map_items map_items_are_as_submitted
CREATE TRIGGER map_items_are_as_submitted BEFORE UPDATE OF item_id, run_id, "position", input, input_hash ON public.map_items FOR EACH ROW WHEN ((((new.input <> old.input) AND (new.input <> ''::text)) OR ((((new.item_id IS DISTINCT FROM old.item_id) OR (new.run_id IS DISTINCT FROM old.run_id)) OR (new."position" IS DISTINCT FROM old."position")) OR (new.input_hash IS DISTINCT FROM old.input_hash)))) EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER map_items map_items_are_completed_once
CREATE TRIGGER map_items_are_completed_once BEFORE UPDATE OF state, output, output_hash ON public.map_items FOR EACH ROW WHEN (((old.state = 'done'::text) AND ((new.state <> 'done'::text) OR ((new.output <> old.output) AND (new.output <> ''::text)) OR (new.output_hash <> old.output_hash)))) EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER map_items map_items_are_kept
CREATE TRIGGER map_items_are_kept BEFORE TRUNCATE ON public.map_items FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER map_items map_items_are_not_removed
CREATE TRIGGER map_items_are_not_removed BEFORE DELETE ON public.map_items FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER map_items map_items_are_sealed
CREATE TRIGGER map_items_are_sealed BEFORE INSERT OR UPDATE OF item_id, run_id, "position", input_hash, state, run_after, leased_until, started_at, finished_at, fence, attempts, refused_answers, faults, last_error, error_kind, validation_errors, output_hash, worker, tokens_in, tokens_out, row_seal ON public.map_items FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('item_id', 'run_id', 'position', 'input_hash', 'state', 'run_after', 'leased_until', 'started_at', 'finished_at', 'fence', 'attempts', 'refused_answers', 'faults', 'last_error', 'error_kind', 'validation_errors', 'output_hash', 'worker', 'tokens_in', 'tokens_out');

-- TRIGGER map_runs map_runs_are_as_requested
CREATE TRIGGER map_runs_are_as_requested BEFORE UPDATE OF run_id, workspace_id, conversation_id, kind, input_file_id, prompt, output_schema, model, concurrency, max_attempts, temperature, timeout_s, retain, delegated_scope, kept_work, grant_id, read_only, parent_run_id, idempotency_key, total, prompt_hash, schema_hash, input_hash, created_at ON public.map_runs FOR EACH ROW WHEN ((((new.prompt <> old.prompt) AND (new.prompt <> '{{item}}'::text)) OR (((((((((((((((((((((((new.run_id IS DISTINCT FROM old.run_id) OR (new.workspace_id IS DISTINCT FROM old.workspace_id)) OR (new.conversation_id IS DISTINCT FROM old.conversation_id)) OR (new.kind IS DISTINCT FROM old.kind)) OR (new.input_file_id IS DISTINCT FROM old.input_file_id)) OR (new.output_schema IS DISTINCT FROM old.output_schema)) OR (new.model IS DISTINCT FROM old.model)) OR (new.concurrency IS DISTINCT FROM old.concurrency)) OR (new.max_attempts IS DISTINCT FROM old.max_attempts)) OR (new.temperature IS DISTINCT FROM old.temperature)) OR (new.timeout_s IS DISTINCT FROM old.timeout_s)) OR (new.retain IS DISTINCT FROM old.retain)) OR (new.delegated_scope IS DISTINCT FROM old.delegated_scope)) OR (new.kept_work IS DISTINCT FROM old.kept_work)) OR (new.grant_id IS DISTINCT FROM old.grant_id)) OR (new.read_only IS DISTINCT FROM old.read_only)) OR (new.parent_run_id IS DISTINCT FROM old.parent_run_id)) OR (new.idempotency_key IS DISTINCT FROM old.idempotency_key)) OR (new.total IS DISTINCT FROM old.total)) OR (new.prompt_hash IS DISTINCT FROM old.prompt_hash)) OR (new.schema_hash IS DISTINCT FROM old.schema_hash)) OR (new.input_hash IS DISTINCT FROM old.input_hash)) OR (new.created_at IS DISTINCT FROM old.created_at)))) EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER map_runs map_runs_are_kept
CREATE TRIGGER map_runs_are_kept BEFORE TRUNCATE ON public.map_runs FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER map_runs map_runs_are_not_removed
CREATE TRIGGER map_runs_are_not_removed BEFORE DELETE ON public.map_runs FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER map_runs map_runs_are_sealed
CREATE TRIGGER map_runs_are_sealed BEFORE INSERT OR UPDATE OF run_id, workspace_id, conversation_id, kind, state, pause_reason, input_file_id, output_file_id, failures_file_id, prompt, output_schema, model, concurrency, max_attempts, temperature, timeout_s, budget_tokens, spent_in, spent_out, retain, delegated_scope, kept_work, grant_id, read_only, parent_run_id, idempotency_key, total, prompt_hash, schema_hash, input_hash, created_at, started_at, finished_at, last_claim_at, row_seal ON public.map_runs FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('run_id', 'workspace_id', 'conversation_id', 'kind', 'state', 'pause_reason', 'input_file_id', 'output_file_id', 'failures_file_id', 'prompt', 'output_schema', 'model', 'concurrency', 'max_attempts', 'temperature', 'timeout_s', 'budget_tokens', 'spent_in', 'spent_out', 'retain', 'delegated_scope', 'kept_work', 'grant_id', 'read_only', 'parent_run_id', 'idempotency_key', 'total', 'prompt_hash', 'schema_hash', 'input_hash', 'created_at', 'started_at', 'finished_at', 'last_claim_at');

-- TRIGGER memberships memberships_are_sealed
CREATE TRIGGER memberships_are_sealed BEFORE INSERT OR UPDATE OF membership_id, user_id, workspace_id, role, created_at, row_seal ON public.memberships FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('membership_id', 'user_id', 'workspace_id', 'role', 'created_at');

-- TRIGGER message_parts message_parts_are_immutable
CREATE TRIGGER message_parts_are_immutable BEFORE UPDATE ON public.message_parts FOR EACH ROW EXECUTE FUNCTION public.lcm_keep_part();

-- TRIGGER message_parts message_parts_are_kept
CREATE TRIGGER message_parts_are_kept BEFORE TRUNCATE ON public.message_parts FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER message_parts message_parts_are_not_removed
CREATE TRIGGER message_parts_are_not_removed BEFORE DELETE ON public.message_parts FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER messages messages_are_immutable
CREATE TRIGGER messages_are_immutable BEFORE UPDATE ON public.messages FOR EACH ROW EXECUTE FUNCTION public.lcm_keep_message();

-- TRIGGER messages messages_are_kept
CREATE TRIGGER messages_are_kept BEFORE TRUNCATE ON public.messages FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER messages messages_are_not_removed
CREATE TRIGGER messages_are_not_removed BEFORE DELETE ON public.messages FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER messages messages_take_their_vectors_along
CREATE TRIGGER messages_take_their_vectors_along AFTER UPDATE ON public.messages REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_forget_vectors_of_texts();

-- TRIGGER projects projects_are_sealed
CREATE TRIGGER projects_are_sealed BEFORE INSERT OR UPDATE OF project_id, workspace_id, name, created_at, row_seal ON public.projects FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('project_id', 'workspace_id', 'name', 'created_at');

-- TRIGGER quarantines quarantines_are_sealed
CREATE TRIGGER quarantines_are_sealed BEFORE INSERT OR UPDATE OF quarantine_id, conversation_id, target, reason, created_at, released_at, row_seal ON public.quarantines FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('quarantine_id', 'conversation_id', 'target', 'reason', 'created_at', 'released_at');

-- TRIGGER quarantines quarantines_take_vectors_along
CREATE TRIGGER quarantines_take_vectors_along AFTER INSERT OR UPDATE OF released_at ON public.quarantines FOR EACH ROW EXECUTE FUNCTION public.lcm_forget_vectors_of_quarantined();

-- TRIGGER repair_plans repair_plans_are_sealed
CREATE TRIGGER repair_plans_are_sealed BEFORE INSERT OR UPDATE OF plan_id, report_id, created_at, state, applied_at, undone_at, ledger_file_id, unplanned, outcome, row_seal ON public.repair_plans FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('plan_id', 'report_id', 'created_at', 'state', 'applied_at', 'undone_at', 'ledger_file_id', 'unplanned', 'outcome');

-- TRIGGER repair_steps repair_steps_are_sealed
CREATE TRIGGER repair_steps_are_sealed BEFORE INSERT OR UPDATE OF step_id, plan_id, ordinal, operation, conversation_id, target, before, after, risk, reversible, why, codes, state, approved_by, approved_at, applied_at, undo, row_seal ON public.repair_steps FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('step_id', 'plan_id', 'ordinal', 'operation', 'conversation_id', 'target', 'before', 'after', 'risk', 'reversible', 'why', 'codes', 'state', 'approved_by', 'approved_at', 'applied_at', 'undo');

-- TRIGGER session_summaries session_summaries_are_immutable
CREATE TRIGGER session_summaries_are_immutable BEFORE UPDATE ON public.session_summaries FOR EACH ROW EXECUTE FUNCTION public.lcm_keep_session_summary();

-- TRIGGER session_summaries session_summaries_are_kept
CREATE TRIGGER session_summaries_are_kept BEFORE TRUNCATE ON public.session_summaries FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER session_summaries session_summaries_are_not_removed
CREATE TRIGGER session_summaries_are_not_removed BEFORE DELETE ON public.session_summaries FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER session_summaries session_summaries_are_sealed
CREATE TRIGGER session_summaries_are_sealed BEFORE INSERT OR UPDATE OF summary_id, workspace_id, project_id, conversation_id, depth, kind, token_count, token_counter, first_seq, last_seq, earliest_at, latest_at, level, confidence, model, prompt_version, retention, quality, is_degraded, summary_hash, supersedes_id, erased_by_id, created_at, row_seal ON public.session_summaries FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('summary_id', 'workspace_id', 'project_id', 'conversation_id', 'depth', 'kind', 'token_count', 'token_counter', 'first_seq', 'last_seq', 'earliest_at', 'latest_at', 'level', 'confidence', 'model', 'prompt_version', 'retention', 'quality', 'is_degraded', 'summary_hash', 'supersedes_id', 'erased_by_id', 'created_at');

-- TRIGGER session_summaries session_summaries_have_a_source
CREATE CONSTRAINT TRIGGER session_summaries_have_a_source AFTER INSERT ON public.session_summaries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.lcm_require_history_source();

-- TRIGGER session_summary_children session_summary_children_are_immutable
CREATE TRIGGER session_summary_children_are_immutable BEFORE DELETE OR UPDATE ON public.session_summary_children FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER session_summary_children session_summary_children_are_kept
CREATE TRIGGER session_summary_children_are_kept BEFORE TRUNCATE ON public.session_summary_children FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER session_summary_memories session_summary_memories_are_immutable
CREATE TRIGGER session_summary_memories_are_immutable BEFORE DELETE OR UPDATE ON public.session_summary_memories FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER session_summary_memories session_summary_memories_are_kept
CREATE TRIGGER session_summary_memories_are_kept BEFORE TRUNCATE ON public.session_summary_memories FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER summaries summaries_are_immutable
CREATE TRIGGER summaries_are_immutable BEFORE UPDATE ON public.summaries FOR EACH ROW EXECUTE FUNCTION public.lcm_keep_summary();

-- TRIGGER summaries summaries_are_kept
CREATE TRIGGER summaries_are_kept BEFORE TRUNCATE ON public.summaries FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER summaries summaries_are_not_removed
CREATE TRIGGER summaries_are_not_removed BEFORE DELETE ON public.summaries FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER summaries summaries_are_sealed
CREATE TRIGGER summaries_are_sealed BEFORE INSERT OR UPDATE OF summary_id, conversation_id, kind, token_count, token_counter, created_at, file_ids, depth, first_seq, last_seq, earliest_at, latest_at, source_count, descendant_count, source_tokens, level, model, quality, summary_hash, run_id, retention, is_degraded, supersedes_id, prompt_hash, tokens_in, tokens_out, duration_ms, erased_by_id, row_seal ON public.summaries FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('summary_id', 'conversation_id', 'kind', 'token_count', 'token_counter', 'created_at', 'file_ids', 'depth', 'first_seq', 'last_seq', 'earliest_at', 'latest_at', 'source_count', 'descendant_count', 'source_tokens', 'level', 'model', 'quality', 'summary_hash', 'run_id', 'retention', 'is_degraded', 'supersedes_id', 'prompt_hash', 'tokens_in', 'tokens_out', 'duration_ms', 'erased_by_id');

-- TRIGGER summaries summaries_have_a_source
CREATE CONSTRAINT TRIGGER summaries_have_a_source AFTER INSERT ON public.summaries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.lcm_require_source();

-- TRIGGER summary_messages summary_messages_are_immutable
CREATE TRIGGER summary_messages_are_immutable BEFORE DELETE OR UPDATE ON public.summary_messages FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER summary_messages summary_messages_are_kept
CREATE TRIGGER summary_messages_are_kept BEFORE TRUNCATE ON public.summary_messages FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER summary_parents summary_parents_are_immutable
CREATE TRIGGER summary_parents_are_immutable BEFORE DELETE OR UPDATE ON public.summary_parents FOR EACH ROW EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER summary_parents summary_parents_are_kept
CREATE TRIGGER summary_parents_are_kept BEFORE TRUNCATE ON public.summary_parents FOR EACH STATEMENT EXECUTE FUNCTION public.lcm_refuse_change();

-- TRIGGER workspaces workspaces_are_sealed
CREATE TRIGGER workspaces_are_sealed BEFORE INSERT OR UPDATE OF workspace_id, name, created_at, cold_after_days, row_seal ON public.workspaces FOR EACH ROW EXECUTE FUNCTION public.lcm_seal_row('workspace_id', 'name', 'created_at', 'cold_after_days');

-- TYPE context_item_type
CREATE TYPE public.context_item_type AS ENUM (
    'message',
    'summary'
);

-- TYPE message_part_type
CREATE TYPE public.message_part_type AS ENUM (
    'text',
    'reasoning',
    'tool',
    'patch',
    'file',
    'subtask',
    'compaction',
    'step_start',
    'step_finish',
    'snapshot',
    'agent',
    'retry'
);

-- TYPE message_role
CREATE TYPE public.message_role AS ENUM (
    'system',
    'user',
    'assistant',
    'tool'
);

-- TYPE summary_kind
CREATE TYPE public.summary_kind AS ENUM (
    'leaf',
    'condensed'
);
