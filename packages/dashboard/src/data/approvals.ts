import type { Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import type { LiveEvents } from './live.ts';
import { createStore, type Store } from './store.ts';

export type ApprovalRequest = Result<'admin.approval.pending'>['requests'][number];

/** The outcome of a request that this tab has shown. */
export interface Decision {
  readonly request: ApprovalRequest;
  readonly approved: boolean;
  readonly approvedBy: string;
  readonly reason: string | undefined;
}

export interface ApprovalsState {
  /** Pending calls, oldest first. */
  readonly requests: readonly ApprovalRequest[];
  /** Count of all pending calls, including those that are not loaded. */
  readonly total: number;
  /** The latest decisions received, newest first. */
  readonly decided: readonly Decision[];
  readonly loading: boolean;
  readonly error: unknown;
}

export interface Approvals {
  readonly state: Store<ApprovalsState>;
  /** Reloads the pending calls. */
  reload(): void;
  close(): void;
}

const maxDecided = 20;
const maxShown = 200;
const settleMs = 60;

/** Pending approvals, kept up to date by the event stream; stays empty for a token that may not decide. */
export function createApprovals(client: Pick<Client, 'call'>, live: Pick<LiveEvents, 'listen'>, admin: boolean): Approvals {
  const state = createStore<ApprovalsState>({ requests: [], total: 0, decided: [], loading: admin, error: undefined });
  let timer: ReturnType<typeof setTimeout> | undefined;
  let round = 0;

  async function readPending(): Promise<Pick<ApprovalsState, 'requests' | 'total'>> {
    let page = await client.call('admin.approval.pending');
    const requests = [...page.requests];
    while (page.requests.length > 0 && requests.length < Math.min(page.total, maxShown)) {
      page = await client.call('admin.approval.pending', { after: requests.at(-1)?.requestId });
      requests.push(...page.requests);
    }
    return { requests, total: Math.max(page.total, requests.length) };
  }

  function load(): void {
    round += 1;
    const mine = round;
    readPending().then(
      (pending) => {
        if (mine === round) state.set({ ...state.get(), ...pending, loading: false, error: undefined });
      },
      (error: unknown) => {
        if (mine === round) state.set({ ...state.get(), loading: false, error });
      },
    );
  }

  /** One step may request several calls at once. */
  function loadSoon(): void {
    clearTimeout(timer);
    timer = setTimeout(load, settleMs);
  }

  if (!admin) return { state, reload: () => undefined, close: () => undefined };
  load();
  const stop = live.listen(({ kind, payload }) => {
    if (kind === 'approval:requested' || kind === 'gap') return loadSoon();
    if (kind !== 'approval:resolved') return;
    const now = state.get();
    const decided = readDecision(payload, now.requests);
    // A list in flight may be older than this decision.
    loadSoon();
    if (decided !== undefined)
      state.set({
        ...now,
        requests: now.requests.filter((one) => one !== decided.request),
        total: Math.max(0, now.total - 1),
        decided: [decided, ...now.decided].slice(0, maxDecided),
      });
  });
  return {
    state,
    reload: load,
    close() {
      clearTimeout(timer);
      stop();
    },
  };
}

function readDecision(payload: unknown, requests: readonly ApprovalRequest[]): Decision | undefined {
  if (typeof payload !== 'object' || payload === null || !('requestId' in payload) || !('approved' in payload)) return undefined;
  const request = requests.find(({ requestId }) => requestId === payload.requestId);
  if (request === undefined) return undefined;
  return {
    request,
    approved: payload.approved === true,
    approvedBy: 'approvedBy' in payload && typeof payload.approvedBy === 'string' ? payload.approvedBy : 'someone',
    reason: 'reason' in payload && typeof payload.reason === 'string' ? payload.reason : undefined,
  };
}
