-- Why these owners' requests ended, where it was not by themselves.
-- :owners
SELECT owner, reason FROM holdfast_endings WHERE owner IN (:owners);
