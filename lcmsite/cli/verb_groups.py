"""The content of `lcm --help`: the verbs in groups, with a sentence and an example for each.

The verbs themselves come from the catalogue and from the modules beside this one. A verb that is not listed here is
shown in the group "Other" with the first line of its description; a test asks for a line.
"""

from __future__ import annotations

from typing import NamedTuple


class Help(NamedTuple):
    """What `lcm --help` and `lcm VERB --help` say about a verb."""

    sentence: str
    example: str


GROUPS: dict[str, dict[str, Help]] = {
    "Serve": {
        "up": Help("Run LCM: database, web server and workers, until Ctrl-C.", "lcm up --sample"),
        "migrate": Help("Bring the database's tables up to date.", "lcm migrate"),
        "mcp": Help("Serve the agent tools on standard input and output (MCP).", "LCM_API_KEY=lcm_... lcm mcp"),
        "completion": Help(
            "Print a script that completes verbs and options with Tab.",
            "lcm completion bash > ~/.local/share/bash-completion/completions/lcm",
        ),
    },
    "Conversations": {
        "open": Help(
            "Open a conversation by its session, or create it.", "lcm open my-session --title 'Harbour project'"
        ),
        "append": Help(
            "Append messages to a conversation.", """lcm append my-session '[{"role": "user", "content": "Hello"}]'"""
        ),
        "import": Help("Import a history from a file.", "lcm import history.jsonl --compact"),
        "list": Help("List conversations by id.", "lcm list --limit 20"),
        "browse": Help("List conversations with their context and pressure.", "lcm browse --sort active_tokens"),
        "find": Help("Find a conversation by its session.", "lcm find my-session"),
        "show": Help("Show one conversation.", "lcm show my-session"),
        "messages": Help(
            "List the messages of a conversation, oldest first.", "lcm messages my-session --after-seq 100 --limit 20"
        ),
        "message": Help("Show one message with its parts.", "lcm message msg_12 --whole"),
        "items": Help("List the slots of the active context.", "lcm items my-session"),
        "configure": Help(
            "Replace the settings that a conversation overrides.",
            """lcm configure my-session '{"fresh_tail_count": 12}'""",
        ),
    },
    "Remember": {
        "assemble": Help(
            "Assemble the context for the next model call, within a budget.",
            "lcm assemble my-session --budget 8000 --query 'port 5433'",
        ),
        "grep": Help("Search messages, summaries and files.", "lcm grep my-session 'port 5433' --limit 5"),
        "describe": Help(
            "Describe a summary, message, file, run or conversation by its id.", "lcm describe sum_0123456789abcdef"
        ),
        "expand": Help(
            "Open a summary: show what it was made from.", "lcm expand sum_0123456789abcdef --include-messages"
        ),
        "describe-range": Help(
            "Show what the context holds for a range of messages.", "lcm describe-range my-session 100 200"
        ),
        "expand-range": Help(
            "Open a range of messages, page by page.", "lcm expand-range my-session 100 200 --only-messages"
        ),
        "expand-query": Help(
            "Answer a question from old messages, with the ids it relies on.",
            "lcm expand-query 'Which port did we choose?' --ids sum_0123456789abcdef",
        ),
        "lineage": Help("Show all summaries of a conversation and their sources.", "lcm lineage my-session"),
        "lineage-window": Help(
            "Show the summaries and messages between two messages.",
            "lcm lineage-window my-session --from-seq 1 --to-seq 200",
        ),
        "impact": Help("Show which summaries were derived from a message or a summary.", "lcm impact msg_12"),
        "recall": Help(
            "Write a section of past summaries for a host that compacts by itself.",
            "lcm recall my-session --budget 2000",
        ),
        "receipts": Help("List the kept receipts of a conversation, newest first.", "lcm receipts my-session"),
        "receipt": Help("Show a receipt: what was in a context, and why.", "lcm receipt rcp_0123456789abcdef"),
        "compare-receipts": Help(
            "Compare two receipts.", "lcm compare-receipts rcp_0123456789abcdef rcp_fedcba9876543210"
        ),
    },
    "Make room": {
        "evaluate": Help("Show whether a conversation is under pressure.", "lcm evaluate my-session"),
        "compact": Help("Compact a conversation now.", "lcm compact my-session"),
        "plan": Help("Plan a compaction without doing it.", "lcm plan my-session"),
        "plans": Help("List the plans of a conversation, newest first.", "lcm plans my-session"),
        "show-plan": Help("Show a plan with its steps.", "lcm show-plan plan_0123456789abcdef"),
        "execute-plan": Help("Execute a plan exactly as it is.", "lcm execute-plan plan_0123456789abcdef"),
        "redo": Help("Make degraded summaries again, with a model.", "lcm redo my-session"),
        "backfill": Help("Queue the summaries that automatic compaction skipped.", "lcm backfill my-session"),
        "runs": Help("List compaction runs, newest first.", "lcm runs my-session --outcome failed"),
        "run": Help("Show one compaction run.", "lcm run run_0123456789abcdef"),
        "jobs": Help("List background jobs, newest first.", "lcm jobs --state failed"),
        "job": Help("Show one background job and its runs.", "lcm job 7"),
        "flush": Help("Summarize pending messages before the host compacts.", "lcm flush my-session turn-42"),
        "boundary": Help(
            "Record where the host has cut its own context.", "lcm boundary my-session turn-42 --last-seq 180"
        ),
        "boundaries": Help("List the recorded boundaries of a conversation.", "lcm boundaries my-session"),
        "coverage": Help(
            "Check that everything before a boundary can be recovered.",
            "lcm coverage my-session --host-reference turn-42",
        ),
    },
    "Files": {
        "upload": Help("Store a file of any size.", "lcm upload my-session report.pdf"),
        "download": Help("Save a stored file and verify its bytes.", "lcm download file_0123456789abcdef report.pdf"),
        "files": Help("List files, newest first.", "lcm files my-session"),
        "file": Help("Show the details of a file.", "lcm file file_0123456789abcdef"),
        "read-lines": Help(
            "Print lines of a file as text.", "lcm read-lines file_0123456789abcdef --first-line 100 --line-count 50"
        ),
        "read-file": Help("Print a range of bytes of a file.", "lcm read-file file_0123456789abcdef --length 4096"),
        "store-file": Help("Store a small file in one request.", "lcm store-file my-session report.pdf"),
        "begin-upload": Help(
            "Start an upload in chunks.", "lcm begin-upload my-session 73400320 --file-name video.mp4"
        ),
        "put-chunk": Help("Send one chunk of an upload.", "lcm put-chunk upload_0123456789abcdef 0 first-chunk.bin"),
        "uploads": Help("List the unfinished uploads of a conversation.", "lcm uploads my-session"),
        "show-upload": Help(
            "Show the progress of an upload and its missing chunks.", "lcm show-upload upload_0123456789abcdef"
        ),
        "finish-upload": Help("Turn a complete upload into a file.", "lcm finish-upload upload_0123456789abcdef"),
        "abort-upload": Help("Cancel an upload and delete its chunks.", "lcm abort-upload upload_0123456789abcdef"),
    },
    "Trust": {
        "check": Help("Check the integrity of one conversation, or of all.", "lcm check my-session --with-plan"),
        "integrity": Help("Show when everything was last checked, and whether it is clean.", "lcm integrity"),
        "scan": Help("Show the progress of a check in the background.", "lcm scan 3"),
        "reports": Help("List integrity reports, newest first.", "lcm reports --extent full"),
        "report": Help("Show the findings of a report.", "lcm report report_0123456789abcdef"),
        "plan-repairs": Help("Plan repairs for the findings of a report.", "lcm plan-repairs report_0123456789abcdef"),
        "repair-plans": Help("List repair plans, newest first.", "lcm repair-plans --state proposed"),
        "repairs": Help("Show a repair plan with its steps.", "lcm repairs repair_0123456789abcdef"),
        "approve-repairs": Help(
            "Approve or refuse steps of a repair plan.", "lcm approve-repairs repair_0123456789abcdef 1,2 --refused 3"
        ),
        "apply-repairs": Help(
            "Apply the approved steps in one transaction.", "lcm apply-repairs repair_0123456789abcdef"
        ),
        "undo-repairs": Help("Undo an applied repair plan exactly.", "lcm undo-repairs repair_0123456789abcdef"),
        "quarantines": Help("List quarantined content, newest first.", "lcm quarantines"),
        "quarantine": Help("Hide damaged content from every model.", "lcm quarantine msg_12 'altered by hand'"),
        "release": Help("Release quarantined content.", "lcm release 5"),
        "rebuild": Help("Rebuild the context and counters of a conversation.", "lcm rebuild my-session"),
        "ledger export": Help(
            "Export conversations as JSON Lines that anybody can verify.",
            "lcm ledger export my-session -o my-session.jsonl",
        ),
        "ledger verify": Help(
            "Recompute every hash of a ledger, or of the database.", "lcm ledger verify my-session.jsonl"
        ),
        "ledger import": Help(
            "Import whole conversations from a ledger.", "lcm ledger import my-session.jsonl --skip-existing"
        ),
        "anchor": Help(
            "Sign the heads of all hash chains and keep the file.", "lcm anchor -o /mnt/elsewhere/anchor.json"
        ),
        "anchor list": Help("List the anchors kept here, newest first.", "lcm anchor list"),
        "anchor show": Help("Print the newest anchor as it is.", "lcm anchor show"),
        "anchor key": Help("Print the public key that verifies anchors.", "lcm anchor key"),
        "anchor verify": Help(
            "Compare the stored hash chains with an anchor.", "lcm anchor verify /mnt/elsewhere/anchor.json"
        ),
    },
    "Operate": {
        "settings": Help("Show the settings in force, in groups.", "lcm settings"),
        "activity": Help("Show tokens saved, pressure, jobs and recent runs.", "lcm activity --hours 48"),
        "storage": Help("Show how much storage messages, summaries and files take.", "lcm storage"),
        "retention": Help("Show when unused conversations go cold.", "lcm retention"),
        "set-retention": Help(
            "Set after how many days without use conversations go cold.", "lcm set-retention --cold-after-days 90"
        ),
        "archive": Help("Move a conversation to the cold tier.", "lcm archive my-session"),
        "thaw": Help("Bring a cold conversation back to the hot tier.", "lcm thaw my-session"),
        "backup": Help("Back up everything into a directory, and verify it.", "lcm backup /mnt/backups/today"),
        "restore": Help("Restore a backup into an empty database.", "lcm restore /mnt/backups/today"),
        "models": Help("List the language models with their state and cost.", "lcm models"),
        "reset-model": Help("Resume a paused language model at once.", "lcm reset-model chat"),
        "trigram-index build": Help("Build the index that makes regular expressions fast.", "lcm trigram-index build"),
        "trigram-index status": Help(
            "Show whether the trigram index is available, built and used.", "lcm trigram-index status"
        ),
        "trigram-index drop": Help("Remove the trigram index.", "lcm trigram-index drop"),
    },
    "Administer": {
        "workspace create": Help("Create a workspace.", "lcm workspace create research"),
        "workspace list": Help("List all workspaces.", "lcm workspace list"),
        "key create": Help(
            "Create an API key of the workspace and print it once.", "lcm key create my-agent --scope write --days 90"
        ),
        "key list": Help("List the workspace's API keys.", "lcm key list"),
        "key revoke": Help("Revoke an API key for good.", "lcm key revoke lcm_4f2a"),
        "user create": Help(
            "Add a user to the workspace and print the password once.", "lcm user create ann --role operator"
        ),
        "user list": Help("List the members of the workspace.", "lcm user list"),
        "user role": Help("Change a member's role to reader, operator or admin.", "lcm user role ann --role admin"),
        "user remove": Help("Remove a user from the workspace.", "lcm user remove ann"),
        "user password": Help("Set a new password for a user and print it once.", "lcm user password ann"),
        "grants": Help("List grants for delegated questions, newest first.", "lcm grants"),
        "grant": Help("Show one grant and its use.", "lcm grant grant_0123456789abcdef"),
        "revoke-grant": Help("Revoke a grant.", "lcm revoke-grant grant_0123456789abcdef"),
        "audit": Help("List administrative acts, newest first.", "lcm audit --act erase"),
        "preview-erasure": Help(
            "Preview what an erasure would remove.", "lcm preview-erasure my-session --from-seq 10 --to-seq 12"
        ),
        "erase": Help(
            "Erase previewed content for good.",
            "lcm erase era_0123456789abcdef 'erase 3 messages of conversation 7 for good'",
        ),
    },
}

HELP = {verb: help for verbs in GROUPS.values() for verb, help in verbs.items()}
