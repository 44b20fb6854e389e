-- Files are found by name and by description. As there are few files, no column stores their lexemes: only the index
-- does. The expression must equal `FILE_TEXT` in `retrieval/search/filters.py`, or the index is not used.
CREATE INDEX large_files_found_idx ON large_files
  USING gin (lcm_tsv(coalesce(file_name, '') || E'\n' || coalesce(exploration_summary, '')));
