-- Ends the transaction that begin.sql, begin-new.sql or renew.sql opened: the one flush of the log.
COMMIT;
