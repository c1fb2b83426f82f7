-- The rule: the held requests are a prefix of the queue; the request at position n (from 1) belongs to it when n is at
-- most the smallest `most` among those up to and including it (an exclusive one has 1). Grants what joins the prefix, each
-- with a token of its own. Behind a request with `most` = 1 at the head nobody can be held, so no one looks there.
-- Sets @granted, @base below the new tokens, @upto, and @remain: whether any requests stand. Source: `heldPrefix` in
-- engine/queue.ts.
-- :name
SET @upto = (SELECT IF(most = 1, place, 9223372036854775807)
    FROM holdfast_requests WHERE name = :name ORDER BY place LIMIT 1),
  @base = (SELECT GREATEST(last_token, :clock) FROM holdfast_names WHERE name = :name);
UPDATE holdfast_requests AS waiting JOIN (
  SELECT place,
    COUNT(*) OVER ahead AS position,
    MIN(most) OVER ahead AS smallest,
    SUM(token IS NULL) OVER ahead AS fresh
  FROM holdfast_requests WHERE name = :name AND place <= @upto
  WINDOW ahead AS (ORDER BY place ROWS UNBOUNDED PRECEDING)
) AS queue ON queue.place = waiting.place
SET waiting.token = @base + queue.fresh,
  waiting.since_us = :clock,
  waiting.kept_us = IF(waiting.min_hold_us > 0, :clock + waiting.min_hold_us, 0)
WHERE waiting.name = :name AND waiting.token IS NULL AND queue.position <= queue.smallest;
SET @granted = ROW_COUNT(), @remain = IF(@upto IS NULL, 0, 1);
