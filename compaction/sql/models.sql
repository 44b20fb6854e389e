-- name: admit_call
-- Count a call if it may be made. Returns no row if the circuit breaker or the spend guard forbids the call.
-- The conditions are checked on the locked row, so only one of several concurrent calls probes an open breaker.
INSERT INTO model_endpoints AS m (name, window_started_at, window_calls, calls) VALUES (%(name)s, %(now)s, 1, 1)
ON CONFLICT (name) DO UPDATE SET
    probing_until = CASE WHEN m.open_until IS NOT NULL THEN %(probe_ends)s END,
    window_started_at = CASE WHEN m.window_started_at <= %(window_began)s THEN %(now)s ELSE m.window_started_at END,
    window_calls = CASE WHEN m.window_started_at <= %(window_began)s THEN 1 ELSE m.window_calls + 1 END,
    window_tokens = CASE WHEN m.window_started_at <= %(window_began)s THEN 0 ELSE m.window_tokens END,
    calls = m.calls + 1
WHERE (m.open_until IS NULL OR (m.open_until <= %(now)s AND coalesce(m.probing_until <= %(now)s, true)))
  AND (m.window_started_at <= %(window_began)s
       OR ((%(max_calls)s = 0 OR m.window_calls < %(max_calls)s)
           AND (%(max_tokens)s = 0 OR m.window_tokens < %(max_tokens)s)))
RETURNING m.name

-- name: why_not_called
-- Why a call is not made: whether the circuit breaker allows a call, until when it forbids calls, whether the spend
-- guard allows a call, and when its window began.
SELECT m.open_until IS NULL OR (m.open_until <= %(now)s AND coalesce(m.probing_until <= %(now)s, true)),
       greatest(m.open_until, m.probing_until),
       m.window_started_at <= %(window_began)s
           OR ((%(max_calls)s = 0 OR m.window_calls < %(max_calls)s)
               AND (%(max_tokens)s = 0 OR m.window_tokens < %(max_tokens)s)),
       m.window_started_at
FROM model_endpoints AS m WHERE m.name = %(name)s

-- name: record_success
-- Close the circuit breaker and count the tokens of the call.
-- A call that outlasts its spending window counts in the next window; otherwise long calls would never be counted.
UPDATE model_endpoints AS m SET
    consecutive_failures = 0, open_until = NULL, probing_until = NULL, last_success_at = %(now)s,
    window_started_at = CASE WHEN m.window_started_at <= %(window_began)s THEN %(now)s ELSE m.window_started_at END,
    window_calls = CASE WHEN m.window_started_at <= %(window_began)s THEN 0 ELSE m.window_calls END,
    window_tokens = CASE WHEN m.window_started_at <= %(window_began)s THEN 0 ELSE m.window_tokens END
        + %(tokens_in)s + %(tokens_out)s,
    tokens_in = m.tokens_in + %(tokens_in)s,
    tokens_out = m.tokens_out + %(tokens_out)s
WHERE m.name = %(name)s
RETURNING m.name

-- name: record_failure
-- Count a failed call with its tokens, and open the circuit breaker after too many failures. While the breaker is open,
-- failures of calls that began earlier do not count. After the pause, one call is the probe: any answer, even a
-- refusal, shows that the endpoint is reachable.
UPDATE model_endpoints AS m SET
    consecutive_failures = m.consecutive_failures + CASE
        WHEN m.open_until > %(now)s THEN 0
        WHEN (m.open_until IS NOT NULL AND NOT %(is_request_fault)s) OR %(is_fault)s THEN 1
        ELSE 0 END,
    open_until = CASE
        WHEN m.open_until > %(now)s THEN m.open_until
        WHEN (m.open_until IS NOT NULL AND NOT %(is_request_fault)s)
            OR (%(is_fault)s AND m.consecutive_failures + 1 >= %(most_failures)s)
        THEN %(now)s + make_interval(secs => %(pause)s * least(
            %(max_pause_factor)s, power(2, least(10, greatest(0, m.consecutive_failures + 1 - %(most_failures)s))))) END,
    probing_until = CASE WHEN m.open_until > %(now)s THEN m.probing_until END,
    failures = m.failures + 1, last_failure = %(reason)s, last_failure_at = %(now)s,
    window_started_at = CASE WHEN m.window_started_at <= %(window_began)s THEN %(now)s ELSE m.window_started_at END,
    window_calls = CASE WHEN m.window_started_at <= %(window_began)s THEN 0 ELSE m.window_calls END,
    window_tokens = CASE WHEN m.window_started_at <= %(window_began)s THEN 0 ELSE m.window_tokens END
        + %(tokens_in)s + %(tokens_out)s,
    tokens_in = m.tokens_in + %(tokens_in)s,
    tokens_out = m.tokens_out + %(tokens_out)s
WHERE m.name = %(name)s
RETURNING m.open_until

-- name: callable_models
-- Those of the given models that may be called now, each with whether its circuit breaker is closed.
SELECT wanted.name, m.open_until IS NULL
FROM unnest(%(names)s::text[]) WITH ORDINALITY AS wanted(name, place)
LEFT JOIN model_endpoints AS m ON m.name = wanted.name
WHERE m.name IS NULL
   OR ((m.open_until IS NULL OR (m.open_until <= %(now)s AND coalesce(m.probing_until <= %(now)s, true)))
       AND (m.window_started_at <= %(window_began)s
            OR ((%(max_calls)s = 0 OR m.window_calls < %(max_calls)s)
                AND (%(max_tokens)s = 0 OR m.window_tokens < %(max_tokens)s))))
ORDER BY wanted.place

-- name: limit_waits
-- End pauses and spending windows that are further ahead than any that begins now: they are from before the clock was
-- set back.
UPDATE model_endpoints SET
    window_started_at = CASE WHEN window_started_at > %(furthest)s THEN %(window_began)s ELSE window_started_at END,
    open_until = CASE WHEN open_until > %(furthest)s THEN %(now)s ELSE open_until END,
    probing_until = CASE WHEN probing_until > %(furthest)s THEN %(now)s ELSE probing_until END
WHERE greatest(window_started_at, open_until, probing_until) > %(furthest)s
RETURNING name

-- name: refuse_temperature
-- Record that this model refuses requests with a temperature, until the endpoint is reset or has another model.
UPDATE model_endpoints AS m SET temperature_refused_by = %(model)s WHERE m.name = %(name)s RETURNING m.name
