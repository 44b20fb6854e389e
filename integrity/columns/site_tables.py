"""The tables of the site: workspaces, keys, members, and those of third parties."""

from __future__ import annotations

from integrity.columns.declaration import Table, operational, operational_table, site_row_sealed

BELONGS = "rows_belong_to_something"
AUDITED_ON_SITE = "audited_site_rows_are_there"

WORKSPACES = Table(
    name="workspaces",
    id="'workspace_' || t.workspace_id",
    in_workspace="t.workspace_id = %(workspace_id)s",
    columns=site_row_sealed("workspace_id name created_at cold_after_days", BELONGS),
    removal=(BELONGS,),
    removal_note="the removal of an empty one is not detected",
)

API_KEYS = Table(
    name="api_keys",
    id="'key_' || t.api_key_id",
    in_workspace="t.workspace_id = %(workspace_id)s",
    columns=site_row_sealed(
        "api_key_id workspace_id name prefix key_hash scopes created_at expires_at revoked_at", BELONGS
    )
    | operational("last_used_at", "written by use"),
    removal=(AUDITED_ON_SITE,),
)

MEMBERSHIPS = Table(
    name="memberships",
    id="'membership_' || t.membership_id",
    in_workspace="t.workspace_id = %(workspace_id)s",
    columns=site_row_sealed("membership_id user_id workspace_id role created_at", BELONGS),
    removal_note="the audit log names removed members",
)

_UPLOAD = "an unfinished upload; the finished file is sealed"
_ACCOUNTS = "Django's accounts; access to data is a membership"
_DJANGO = "Django's own"
_LOGINS = "django-axes' own: failed logins"
_TASKS = "Huey's own: wake-ups, each with its own durable row elsewhere"

TABLES = (
    WORKSPACES,
    API_KEYS,
    MEMBERSHIPS,
    operational_table(
        "uploads",
        "upload_id conversation_id file_name mime_type byte_size chunk_bytes content_hash file_id created_at"
        " touched_at",
        _UPLOAD,
    ),
    operational_table("upload_chunks", "upload_chunk_id upload_id number content_hash", _UPLOAD),
    operational_table(
        "auth_user",
        "id password last_login is_superuser username first_name last_name email is_staff is_active date_joined",
        _ACCOUNTS,
    ),
    operational_table("auth_group", "id name", _ACCOUNTS),
    operational_table("auth_group_permissions", "id group_id permission_id", _ACCOUNTS),
    operational_table("auth_permission", "id name content_type_id codename", _ACCOUNTS),
    operational_table("auth_user_groups", "id user_id group_id", _ACCOUNTS),
    operational_table("auth_user_user_permissions", "id user_id permission_id", _ACCOUNTS),
    operational_table(
        "django_admin_log",
        "id action_time object_id object_repr action_flag change_message content_type_id user_id",
        _DJANGO,
    ),
    operational_table("django_content_type", "id app_label model", _DJANGO),
    operational_table("django_migrations", "id app name applied", _DJANGO),
    operational_table("django_session", "session_key session_data expire_date", _DJANGO),
    operational_table(
        "axes_accessattempt",
        "id user_agent ip_address username http_accept path_info attempt_time get_data post_data failures_since_start",
        _LOGINS,
    ),
    operational_table("axes_accessattemptexpiration", "access_attempt_id expires_at", _LOGINS),
    operational_table(
        "axes_accessfailurelog",
        "id user_agent ip_address username http_accept path_info attempt_time locked_out",
        _LOGINS,
    ),
    operational_table(
        "axes_accesslog",
        "id user_agent ip_address username http_accept path_info attempt_time logout_time session_hash",
        _LOGINS,
    ),
    operational_table("lcm_cache", "cache_key value expires", _DJANGO),
    operational_table("huey_counter", "queue key value", _TASKS),
    operational_table("huey_kv", "queue key value", _TASKS),
    operational_table("huey_schedule", "id queue data timestamp", _TASKS),
    operational_table("huey_task", "id queue data priority", _TASKS),
)
