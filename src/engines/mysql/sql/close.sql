-- Writes down in the name's row what the queue has become.
-- :name; reads @base @granted @remain
UPDATE holdfast_names SET
  last_token = IF(@granted > 0, @base + @granted, last_token),
  expires_us = IF(queued = 1 AND @remain = 0, :clock, expires_us),
  token = IF(@remain = 1, NULL, token),
  owner = IF(@remain = 1, NULL, owner),
  bell = IF(@remain = 1, NULL, bell),
  queued = @remain
WHERE name = :name;
