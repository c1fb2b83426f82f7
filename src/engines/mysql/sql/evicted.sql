-- How many holders evict.sql ended; reads @evicted.
SELECT @evicted AS evicted;
