-- Directly behind pass.sql: lets go of the bell of the one who left, if the next one was granted.
-- :bell
DO IF(ROW_COUNT() = 1, RELEASE_LOCK(:bell), 0);
