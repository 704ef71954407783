import { CronCounter, CronGateVerdict, type CronRun, once } from '@gatehouse/contract';
import * as z from 'zod';
import { type CallContext, isAdmin } from '../../../../kernel/call-context.ts';
import { parseJson } from '../../../../kernel/json.ts';
import { viewOfWaitJson } from '../../../../runtime/waiting-view.ts';
import type { RunRow } from './occurrence-store.ts';
import { outcomeOf } from './sends.ts';
import { identityOf } from './work.ts';

/** Maximum number of characters of script output shown in a list. */
const shownLogs = 1000;
const Counters = once(() => z.array(CronCounter()));

/** Returns a run as its caller may see it. */
export function runView(row: RunRow, call: CallContext): CronRun {
  const isOwner = isAdmin(call);
  const { startedAtMs, terminalAtMs } = row;
  const delivery = outcomeOf(row.deliveryStatus, row.sends);
  const waiting = row.waitingJson === null ? undefined : viewOfWaitJson(row.waitingJson, isOwner);
  return {
    ...identityOf(row),
    ...(terminalAtMs !== null && { terminalAtMs, durationMs: Math.max(0, terminalAtMs - startedAtMs) }),
    // Waits for an approver's decision.
    status: waiting?.kind === 'approval' ? 'dispatched' : row.status,
    deliveryStatus: delivery.status,
    ...(delivery.isPending && { deliveryPending: true as const }),
    ...(row.effectsRefused > 0 && { effectsRefused: row.effectsRefused }),
    ...(row.errorKind !== null && { errorKind: row.errorKind }),
    ...(row.reason !== null && { reason: row.reason }),
    ...(row.gateJson !== null && { wakeGate: verdictView(row.gateJson) }),
    ...(row.countersJson !== null && { counters: Counters().parse(parseJson(row.countersJson)) }),
    ...(isOwner && row.cause !== null && { cause: row.cause }),
    ...(waiting !== undefined && { waiting }),
  };
}

const StoredVerdict = once(() =>
  CronGateVerdict()
    .extend({ logs: z.string().default('') })
    .strip(),
);

/** Returns the verdict with the end of the output and the beginning of a long reason. */
function verdictView(gateJson: string): CronGateVerdict {
  const { outcome, reason, logs } = StoredVerdict().parse(parseJson(gateJson));
  return {
    outcome,
    ...(reason !== undefined && { reason }),
    ...(logs !== '' && { logs: logs.slice(-shownLogs).toWellFormed() }),
  };
}
