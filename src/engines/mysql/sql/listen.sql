-- Sleeps until the bell is free (its holder rang, or its connection ended) or the time is over; sets 1 or 0. The bell is
-- put back at once for others who wait for it.
-- :bell :seconds (whole ones: MySQL rounds)
SELECT GET_LOCK(:bell, :seconds) AS rung;
DO RELEASE_LOCK(:bell);
