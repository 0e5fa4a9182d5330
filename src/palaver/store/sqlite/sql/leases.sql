-- name: lease_get
SELECT holder, token, until FROM leases WHERE name = ?;

-- name: lease_set
INSERT INTO leases VALUES (?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, token = excluded.token, until = excluded.until;
