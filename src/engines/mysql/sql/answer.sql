-- How requests in rows stand. A pending one also learns in how many µs the earliest lease or minimum hold ahead of it
-- ends, and the bell of the request to watch: an exclusive one the one just ahead, a shared one the nearest that lets
-- nobody in beside it.
-- :owners
SELECT mine.owner, mine.token,
  IF(mine.token IS NULL, (SELECT MIN(GREATEST(other.expires_us, other.kept_us)) FROM holdfast_requests AS other
    WHERE other.name = mine.name AND other.place < mine.place), NULL) - :clock AS recheck_us,
  IF(mine.token IS NOT NULL, NULL, IF(mine.most = 1,
    (SELECT other.bell FROM holdfast_requests AS other
      WHERE other.name = mine.name AND other.place < mine.place ORDER BY other.place DESC LIMIT 1),
    (SELECT other.bell FROM holdfast_requests AS other
      WHERE other.name = mine.name AND other.place < mine.place AND other.most = 1 ORDER BY other.place DESC LIMIT 1))) AS bell
FROM holdfast_requests AS mine
WHERE mine.owner IN (:owners) AND mine.expires_us > :clock;
