-- After the commit: lets go of the bell of the one who left, if somebody may be waiting for it.
-- :bell; reads @remain
DO IF(@remain = 1, RELEASE_LOCK(:bell), 0);
