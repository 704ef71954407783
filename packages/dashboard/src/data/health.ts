import type { Client } from '@gatehouse/client';
import type { Health } from '@gatehouse/contract';
import type { LiveEvents } from './live.ts';
import { createStore, type Store } from './store.ts';

export interface HealthState {
  readonly health: Health | undefined;
  /** True when the last check got no answer. */
  readonly lost: boolean;
}

export interface HealthWatch {
  readonly state: Store<HealthState>;
  /** Checks now, for example after a change that emits no event. */
  ask(): void;
  close(): void;
}

const refreshMs = 60_000;
/** Polling interval while the gateway does not respond: a user may be waiting for a restart. */
const lostRefreshMs = 3_000;

/**
 * Watches the health of the gateway: checks when the event stream opens or breaks, when an event reports a fault, and every minute while
 * the tab is visible; more often while the gateway does not respond.
 */
export function watchHealth(client: Pick<Client, 'health'>, live: Pick<LiveEvents, 'listen' | 'state'>): HealthWatch {
  const state = createStore<HealthState>({ health: undefined, lost: false });
  let { connection } = live.state.get();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isClosed = false;

  function ask(): void {
    clearTimeout(timer);
    if (isClosed) return;
    const isHidden = document.visibilityState === 'hidden';
    timer = setTimeout(ask, state.get().lost ? lostRefreshMs : refreshMs);
    if (isHidden) return;
    client.health({ timeoutMs: 10_000 }).then(
      (health) => state.set({ health, lost: false }),
      () => {
        if (isClosed || state.get().lost) return;
        state.set({ ...state.get(), lost: true });
        ask();
      },
    );
  }

  const stopListening = live.listen(({ kind }) => {
    if (/^(provider|model:auth_cooldown|config:|system|gap)/.test(kind)) ask();
  });
  const stopWatching = live.state.subscribe(() => {
    const now = live.state.get().connection;
    if (now === connection) return;
    connection = now;
    ask();
  });
  document.addEventListener('visibilitychange', ask);
  ask();
  return {
    state,
    ask,
    close() {
      isClosed = true;
      clearTimeout(timer);
      stopListening();
      stopWatching();
      document.removeEventListener('visibilitychange', ask);
    },
  };
}
