import { endLease, enterRoot, issueLease, leaveRoot } from '../features/delegation/autonomy/store.ts';
import type { ScriptBegin, ScriptEnd } from '../features/delegation/orchestrate/api.ts';
import { operation } from '../kernel/db/operation.ts';

/** Adds a script to its root and grants its lease; `denied` when the root was stopped, and then neither exists. */
export const beginScript = operation('orchestrate.begin', async (tx, { root, lease }: ScriptBegin): Promise<void> => {
  await enterRoot(tx, root);
  await issueLease(tx, lease);
});

export const endScript = operation('orchestrate.end', async (tx, { leaseId, root }: ScriptEnd): Promise<void> => {
  await endLease(tx, { leaseId, atMs: root.atMs });
  await leaveRoot(tx, root);
});
