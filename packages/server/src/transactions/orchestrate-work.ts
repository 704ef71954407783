import { endLease, enterRoot, issueLease, leaveRoot } from '../features/delegation/autonomy/store.ts';
import type { ScriptBegin, ScriptEnd } from '../features/delegation/orchestrate/api.ts';
import { takenOver } from '../features/conversations/turns/store.ts';
import { holdsBoot } from '../features/operations/nodes/store.ts';
import { operation } from '../kernel/db/operation.ts';

/** Adds a script to its root and grants its lease; `denied` when the root was stopped, and then neither exists. */
export const beginScript = operation('orchestrate.begin', async (tx, { root, lease }: ScriptBegin): Promise<void> => {
  if (!(await holdsBoot(tx, lease.bootId))) throw takenOver();
  await enterRoot(tx, root);
  await issueLease(tx, lease);
});

/** Does nothing once the boot is dead: who claimed it has ended its scripts, or will. */
export const endScript = operation('orchestrate.end', async (tx, { leaseId, bootId, root }: ScriptEnd): Promise<void> => {
  if (!(await holdsBoot(tx, bootId))) return;
  await endLease(tx, { leaseId, atMs: root.atMs });
  await leaveRoot(tx, root);
});
