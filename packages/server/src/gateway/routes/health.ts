import type { Health } from '@gatehouse/contract';
import type { HttpCall } from '../http-call.ts';
import { sendJson } from '../reply.ts';

/** `/health` and `/api/health`: alive is 200; with `?ready` 503 until the daemon is ready, while it drains, and while its lease is not renewed (decisions §4). */
export function createHealthRoute(deps: {
  readonly health: () => Health | Promise<Health>;
  readonly draining: () => boolean;
}): (call: HttpCall) => Promise<void> {
  return async (call) => {
    const found = await deps.health();
    const health: Health = deps.draining() ? { ...found, status: 'draining' } : found;
    // Without its lease it refuses everything, and another node may be the active one already.
    const ready = (health.status === 'ok' || health.status === 'degraded') && health.checks['lease']?.status !== 'failed';
    call.setHeader('cache-control', 'no-store');
    sendJson(call, !ready && new URLSearchParams(call.search).has('ready') ? 503 : 200, health);
  };
}
