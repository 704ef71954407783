/*
 * SQL of the lease on PostgreSQL. It runs on a separate connection of the main thread, so that no queue of writes delays it, and
 * the time is always that of the database.
 *
 * `active_node` has one row: the boot that may write, and its fence. Each commit of that boot reads the row `FOR SHARE`; a take-over
 * changes it, so it waits for commits under way, and refuses all later ones. Renewals write `node`, which no commit locks.
 */

const now = `floor(extract(epoch from clock_timestamp()) * 1000)::bigint`;

/** $1 boot, $2 home, $3 address, $4 version, $5 lease. A standby that was silent and was claimed owned nothing: it starts over. */
export const register = `
  INSERT INTO node (boot_id, home_id, address, version, role, state, lease_until_ms, started_at_ms, renewed_at_ms, claimed_by)
  VALUES ($1, $2, $3, $4, 'standby', 'live', ${now} + $5, ${now}, ${now}, '')
  ON CONFLICT (boot_id) DO UPDATE
  SET role = 'standby', state = 'live', claimed_by = '', lease_until_ms = excluded.lease_until_ms, renewed_at_ms = excluded.renewed_at_ms`;

/** $1 boot, $2 lease, $3 address. */
export const renewStandby = `
  UPDATE node SET lease_until_ms = ${now} + $2, renewed_at_ms = ${now}, address = $3
  WHERE boot_id = $1 AND state = 'live' RETURNING ${now} AS "nowMs"`;

/** $1 boot, $2 lease, $3 address, $4 fence. Waits for a take-over under way, and fails after it. */
export const renewActive = `
  WITH held AS (SELECT 1 FROM active_node WHERE id = 1 AND boot_id = $1 AND fence = $4 FOR SHARE)
  UPDATE node SET lease_until_ms = ${now} + $2, renewed_at_ms = ${now}, address = $3
  FROM held WHERE boot_id = $1 AND state IN ('live', 'draining') RETURNING ${now} AS "nowMs"`;

/** The holder of the lease: `free` after a stop in order, `lapsed` after silence. */
export const readHolder = `
  SELECT ${now} AS "nowMs", a.boot_id AS "bootId", a.fence, a.schema_version AS "schemaVersion",
    (SELECT max(compatible_from) FROM schema_migration) AS "compatibleFrom", n.version, n.address,
    CASE WHEN n.boot_id IS NULL OR n.state NOT IN ('live', 'draining') THEN 'free' WHEN n.lease_until_ms <= ${now} THEN 'lapsed' ELSE 'held' END AS state
  FROM active_node a LEFT JOIN node n ON n.boot_id = a.boot_id WHERE a.id = 1`;

/** Locks the row, before `readHolder` in the same transaction, whose snapshot is then newer than every renewal: those wait for this lock. */
export const lockHolder = `SELECT 1 FROM active_node WHERE id = 1 FOR UPDATE`;

/** $1 boot, $2 schema version of the program. */
export const takeOver = `
  UPDATE active_node SET boot_id = $1, fence = fence + 1, since_ms = ${now}, schema_version = $2 WHERE id = 1 RETURNING fence`;

/** $1 boot, $2 lease. No row when this standby was claimed meanwhile. */
export const becomeActive = `
  UPDATE node SET role = 'active', lease_until_ms = ${now} + $2, renewed_at_ms = ${now} WHERE boot_id = $1 AND state = 'live' RETURNING 1`;

/** $1 boot, $2 fence. */
export const release = `UPDATE active_node SET boot_id = '' WHERE id = 1 AND boot_id = $1 AND fence = $2`;

/** $1 boot. */
export const endNode = `UPDATE node SET state = 'ended' WHERE boot_id = $1 AND state IN ('live', 'draining')`;

/** Whether the schema has the tables above: a new database has not. */
export const hasTables = `SELECT to_regclass('active_node') IS NOT NULL AS found`;

/** $1 fingerprint; returns the one that the database keeps. */
export const keepFingerprint = `
  WITH kept AS (INSERT INTO installation (id, key_fingerprint) VALUES (1, $1) ON CONFLICT (id) DO NOTHING RETURNING key_fingerprint)
  SELECT key_fingerprint AS "fingerprint" FROM kept UNION ALL SELECT key_fingerprint FROM installation WHERE id = 1 LIMIT 1`;
