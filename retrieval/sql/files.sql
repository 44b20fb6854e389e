-- Files are found by their names and by what was seen in them. There are few of them, and so no column is kept for this:
-- the index alone holds the lexemes. The expression is that of `retrieval/search/searchables.py`, to the letter.
CREATE INDEX large_files_found_idx ON large_files
  USING gin (lcm_tsv(coalesce(file_name, '') || E'\n' || coalesce(exploration_summary, '')));
