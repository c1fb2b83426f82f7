-- Like begin.sql, for a name that may have no row yet.
-- :name
START TRANSACTION;
INSERT INTO holdfast_names (name, last_token) VALUES (:name, 0) ON DUPLICATE KEY UPDATE turn = 1 - turn;
