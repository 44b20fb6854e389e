-- Functions that turn a text into its tsvector: lexemes, the parts of compound tokens (`getSummary`, `src/store/x.ts`),
-- folded accents, and two-character terms for scripts without spaces. All are IMMUTABLE, so that a generated column may
-- use them; queries go through the same functions.

-- Stems words of ASCII letters as English, and others as Russian, which changes those of Cyrillic letters. PostgreSQL's own
-- `russian` leaves out words such as `не` and `нет`, too.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_ts_config WHERE cfgname = 'lcm_words' AND pg_ts_config_is_visible(oid)) THEN
    CREATE TEXT SEARCH DICTIONARY lcm_russian_stem (TEMPLATE = snowball, Language = russian);
    CREATE TEXT SEARCH CONFIGURATION lcm_words (COPY = pg_catalog.english);
    ALTER TEXT SEARCH CONFIGURATION lcm_words ALTER MAPPING FOR word, hword, hword_part WITH lcm_russian_stem;
  END IF;
END
$$;

-- Removes accents, and the vowel signs and other marks of Arabic, Hebrew and Indic scripts; unifies compatibility forms and
-- writes letters such as `ß` and `ı` as ASCII. It does so if a regular expression finds any. `й` is not folded, because
-- the stemmer knows endings by it. The result is composed again (NFC), because Hangul must not stay decomposed.
-- Punctuation and symbols beyond ASCII, such as `€` and `°`, become a blank, and so does U+FFFD, which replaces NUL: with
-- the locale C, PostgreSQL takes every such character for a letter. So do `<`, `>` and `&`, because its parser drops
-- words in what it takes for markup, such as `Vec<Order>` and `a<b or c>d`. A blank separates emoji from words.
CREATE OR REPLACE FUNCTION lcm_fold(content text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN octet_length(content) = length(content) THEN translate(content, '<>&', '   ')
  ELSE regexp_replace(
    CASE
      WHEN content !~ U&'[\00A0-\1FFF\2070-\209F\2100-\218F\2460-\24FF\2E80-\2FDF\3099\309A\3130-\33FF\F900-\FFEF\+01D400-\+01D7FF]'
        THEN content
      ELSE translate(replace(replace(replace(normalize(regexp_replace(
        normalize(content, NFKD),
        U&'(?<![\0418\0438])\0306|[\0300-\0305\0307-\036F\0591-\05BD\05BF-\05C7\0610-\061A\0640\064B-\065F\0670\06D6-\06ED\093C\09BC\0A3C]', '', 'g'
      ), NFC), 'ß', 'ss'), 'œ', 'oe'), 'Œ', 'OE'), U&'ıøØłŁđĐ\0901', U&'ioOlLdD\0902')
    END,
    U&'[<>&\00A0-\00A9\00AB-\00B1\00B4\00B6-\00B8\00BB\00BF\00D7\00F7\060C\061B\061F\06D4\0964\0965\200B\2010-\206F\20A0-\20CF\2190-\25FF\2900-\2BFF\3000-\3003\3008-\3020\3030\FE00-\FE0F\FEFF\FFFD]|([\2600-\27FF\+01F000-\+01FAFF])',
    ' \1 ', 'g'
  )
END;

-- For scripts without spaces between words (Chinese, Japanese, Korean, Thai, Lao, Burmese, Khmer): replaces every run
-- of characters by its overlapping pairs, in order, so that a phrase can be found: `数据库` by `数 数据 据库 库`. The blanks
-- around a run separate it from adjacent Latin words.
CREATE OR REPLACE FUNCTION lcm_bigrams(content text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN octet_length(content) = length(content) THEN content
  WHEN content !~ U&'[\0E00-\0EFF\1000-\109F\1780-\17FF\3040-\30FF\3400-\4DBF\4E00-\9FFF\AC00-\D7AF]' THEN content
  ELSE regexp_replace(
    regexp_replace(
      content, U&'([\0E00-\0EFF\1000-\109F\1780-\17FF\3040-\30FF\3400-\4DBF\4E00-\9FFF\AC00-\D7AF]+)', ' \1 ', 'g'
    ),
    U&'([\0E00-\0EFF\1000-\109F\1780-\17FF\3040-\30FF\3400-\4DBF\4E00-\9FFF\AC00-\D7AF])', '\1 \1', 'g'
  )
END;

-- The parts of every compound token, separated by blanks: `src/getHTTPBody.ts` as `src getHTTPBody ts get HTTP Body`.
CREATE OR REPLACE FUNCTION lcm_compound_parts(content text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN content ~ '[[:alnum:]][_./\\:@#=-]+[[:alnum:]]' THEN (
    SELECT regexp_replace(coalesce(string_agg(found[1], ' '), ''), '[_./\\:@#=-]+', ' ', 'g')
    FROM regexp_matches(content, '([[:alnum:]]+(?:[_./\\:@#=-]+[[:alnum:]]+)+)', 'g') AS found
  )
  ELSE ''
END || CASE
  WHEN content ~ '[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}' THEN (
    SELECT ' ' || regexp_replace(
      regexp_replace(coalesce(string_agg(found[1], ' '), ''), '([a-z0-9])([A-Z])', '\1 \2', 'g'),
      '([A-Z])([A-Z][a-z]{2})', '\1 \2', 'g')
    FROM regexp_matches(content, '([[:alnum:]]*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2})[[:alnum:]]*)', 'g') AS found
  )
  ELSE ''
END;

-- Inserts a blank after every 250 characters without one: PostgreSQL's parser takes quadratic time for some such runs,
-- like `a_a_a_...`, and no search needs a word of that length.
CREATE OR REPLACE FUNCTION lcm_broken(content text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN octet_length(content) < 1000 THEN content
  ELSE regexp_replace(content, '(\S{250})', '\1 ', 'g')
END;

-- In PL/pgSQL, because an SQL function would be inlined and its argument computed several times. The function sets its
-- own search path, because a restored dump computes the generated columns again with an empty search path.
CREATE OR REPLACE FUNCTION lcm_tsv_of(content text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
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

-- A tsvector holds at most 1 MB of lexemes and positions and refuses more: a text that is all distinct words is
-- cut in half until it fits. Losing a search term is allowed; losing the message is not.
CREATE OR REPLACE FUNCTION lcm_tsv_of_large(content text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
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

CREATE OR REPLACE FUNCTION lcm_tsv(content text) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN octet_length(content) <= 20000 THEN lcm_tsv_of(content)
  ELSE lcm_tsv_of_large(left(content, 250000))
END;

-- Converts a query in websearch syntax (words, "a phrase", or, -without). A run of Chinese becomes the phrase of its
-- pairs. A compound token matches as it is, or as the phrase of its parts. If the query has quotes, no phrases are
-- added.
CREATE OR REPLACE FUNCTION lcm_tsquery(query text) RETURNS tsquery
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
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
    -- Remove the single characters at the ends of a run: in a matching text they may have other neighbours.
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

-- Lexemes for the position of a text: one for its conversation and, if it has a seq, one for its block of 1,024 seqs.
-- With them, the index for words finds the texts of one conversation, or the newest of these, however many other texts
-- there are. They contain a blank, so they differ from the lexemes of any text.
CREATE OR REPLACE FUNCTION lcm_places(conversation_id bigint, seq bigint) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN array_to_tsvector(CASE
  WHEN seq IS NULL THEN ARRAY['in ' || conversation_id]
  ELSE ARRAY['in ' || conversation_id, 'in ' || conversation_id || '/' || seq / 1024]
END);

CREATE OR REPLACE FUNCTION lcm_tsv_at_of_large(content text, places tsvector) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
  size integer := 250000;
BEGIN
  LOOP
    BEGIN
      RETURN lcm_tsv(left(content, size)) || places;
    -- The lexemes of places may exceed the size limit by a few bytes.
    EXCEPTION WHEN program_limit_exceeded THEN
      size := size / 2;
    END;
  END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION lcm_tsv_at(content text, conversation_id bigint, seq bigint) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN octet_length(content) <= 20000 THEN lcm_tsv(content) || lcm_places(conversation_id, seq)
  ELSE lcm_tsv_at_of_large(content, lcm_places(conversation_id, seq))
END;

-- Run again after a change, this file computes the search columns of texts with markup or beyond ASCII again where they
-- differ, and the index of files. Triggers are disabled meanwhile, because rows are immutable; the texts stay as they are.
DO $$
DECLARE
  searched record;
BEGIN
  FOR searched IN
    SELECT adrelid::regclass AS name, pg_get_expr(adbin, adrelid) AS expression
    FROM pg_attribute JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE attname = 'content_tsv' AND attgenerated = 's' AND pg_table_is_visible(attrelid)
  LOOP
    EXECUTE format('ALTER TABLE %s DISABLE TRIGGER USER', searched.name);
    EXECUTE format(
      'UPDATE %s SET content = content WHERE (octet_length(content) <> length(content) OR content ~ ''[<>&]'')'
      ' AND content_tsv IS DISTINCT FROM %s',
      searched.name, searched.expression
    );
    EXECUTE format('ALTER TABLE %s ENABLE TRIGGER USER', searched.name);
  END LOOP;
  IF to_regclass('large_files') IS NOT NULL THEN
    REINDEX TABLE large_files;
  END IF;
END
$$;
