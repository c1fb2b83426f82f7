-- Lets go of the bell of the one who leaves, if somebody may be waiting for it. In front of the commit: the sleeper wakes
-- while the log is flushed, and its read (heard.sql) waits for the commit.
-- :bell; reads @remain
DO IF(@remain = 1, RELEASE_LOCK(:bell), 0);
