-- A conversation stays in the workspace of its project and of its parent, whoever writes it.
ALTER TABLE conversations
  ADD CONSTRAINT conversations_share_the_workspace_of_their_project
    FOREIGN KEY (project_id, workspace_id) REFERENCES projects (project_id, workspace_id),
  ADD CONSTRAINT conversations_share_the_workspace_of_their_parent
    FOREIGN KEY (parent_id, workspace_id) REFERENCES conversations (conversation_id, workspace_id);
