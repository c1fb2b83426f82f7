-- Writes down in the name's row what the queue has become.
-- :name; reads @now @base @granted
SET @remain = IF(EXISTS (SELECT 1 FROM holdfast_requests WHERE name = :name), 1, 0);
UPDATE holdfast_names SET
  last_token = IF(@granted > 0, @base + @granted, last_token),
  expires_us = IF(queued = 1 AND @remain = 0, @now, expires_us),
  token = IF(@remain = 1, NULL, token),
  owner = IF(@remain = 1, NULL, owner),
  bell = IF(@remain = 1, NULL, bell),
  queued = @remain
WHERE name = :name;
