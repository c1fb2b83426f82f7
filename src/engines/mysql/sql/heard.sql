-- Behind a bell: which of these owners have been granted. The bell rings before its transaction commits, so this waits for
-- the commit of whoever changes these rows. It learns of grants, it never makes one.
-- :owners
SELECT owner, token FROM holdfast_requests WHERE owner IN (:owners) AND token IS NOT NULL AND expires_us > :clock
LOCK IN SHARE MODE;
